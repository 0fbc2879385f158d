// Around each end-to-end test file: a failed test shows the services' logs, and no process, socket or directory outlives
// the file, even after Ctrl-C.
import { ModuleMocker } from 'jest-mock'
import { cleanUp } from './cleanup.ts'
import { killServices, showLogs } from './processes.ts'

const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM']

// A class and a default export, because jest asks for both.
export default class E2eEnvironment {
  interrupt = () => process.exit(130)
  /** jest asks for these three, and uses none: native.js runs the tests in Node itself. */
  global = {}
  moduleMocker = new ModuleMocker(globalThis)
  getVmContext = () => null

  setup() {
    process.once('exit', killServices)
    for (const signal of signals) process.once(signal, this.interrupt)
  }

  handleTestEvent(event: { name: string; test?: { name: string; errors: unknown[] } }) {
    if (event.name === 'test_done' && event.test?.errors.length) showLogs(event.test.name)
  }

  /** Not an afterAll: that does not run when a file fails before its first test. */
  async teardown() {
    try {
      await cleanUp()
    } finally {
      killServices()
      process.off('exit', killServices)
      for (const signal of signals) process.off(signal, this.interrupt)
    }
  }
}
