// Node's environment, and one thing more: when a test fails, what the services logged is shown.
import { TestEnvironment } from 'jest-environment-node'

// A class and a default export, because jest asks for both.
export default class E2eEnvironment extends TestEnvironment {
  /** @param {import('@jest/types').Circus.Event} event */
  handleTestEvent(event) {
    const { showServiceLogs } = /** @type {any} */ (this.global)
    if (event.name === 'test_done' && event.test.errors.length > 0) showServiceLogs?.(event.test.name)
  }
}
