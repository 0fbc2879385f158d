// node-environment.js with two additions: a failed test shows the services' logs, and no process outlives a test
// file, even after Ctrl-C.
import NodeEnvironment from './node-environment.js'
import type { FromSetup } from './setup.ts'

const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM']

// A class and a default export, because jest asks for both.
export default class E2eEnvironment extends NodeEnvironment {
  killAll = () => this.fromSetup().killServices?.()
  interrupt = () => process.exit(130)

  async setup() {
    await super.setup()
    process.once('exit', this.killAll)
    for (const signal of signals) process.once(signal, this.interrupt)
  }

  handleTestEvent(event: { name: string; test?: { name: string; errors: unknown[] } }) {
    if (event.name !== 'test_done' || !event.test?.errors.length) return
    this.fromSetup().showServiceLogs?.(event.test.name)
  }

  /** Not an afterAll: that does not run when a file fails before its first test. */
  async teardown() {
    try {
      await this.fromSetup().cleanUp?.()
    } finally {
      this.killAll()
      process.off('exit', this.killAll)
      for (const signal of signals) process.off(signal, this.interrupt)
      await super.teardown()
    }
  }

  /** The values that setup.ts left in the tests' realm. */
  fromSetup(): Partial<FromSetup> {
    return (this.global ?? {}) as any
  }
}
