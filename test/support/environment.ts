// node-environment.js with two additions: a failed test shows the services' logs, and no process outlives a test
// file, even after Ctrl-C.
import NodeEnvironment from './node-environment.js'

/** @type {NodeJS.Signals[]} */
const signals = ['SIGINT', 'SIGTERM']

// A class and a default export, because jest asks for both.
export default class E2eEnvironment extends NodeEnvironment {
  killAll = () => this.fromSetup().killServices?.()
  interrupt = () => process.exit(130)

  async setup() {
    await super.setup()
    process.once('exit', this.killAll)
    for (const signal of signals) process.once(signal, this.interrupt)
  }

  /** @param {{ name: string, test?: { name: string, errors: unknown[] } }} event */
  handleTestEvent(event) {
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

  /** The values that setup.ts left in the tests' realm. @returns {Partial<import('./setup.ts').FromSetup>} */
  fromSetup() {
    return /** @type {any} */ (this.global ?? {})
  }
}
