// jest's Node environment, without what makes each test file of a worker slower than the one before. jest enters an
// AsyncLocalStorage for each file and disables none; up to Node 22 every promise copies the stores of all that are
// enabled, so the hundredth file pays a hundred copies a promise.
import { AsyncLocalStorage } from 'node:async_hooks'
import { TestEnvironment } from 'jest-environment-node'

// A class and a default export, because jest asks for both.
export default class NodeEnvironment extends TestEnvironment {
  /** @type {Set<AsyncLocalStorage<unknown>>} */
  #entered = new Set()
  #run = AsyncLocalStorage.prototype.run

  async setup() {
    await super.setup()
    const [entered, run] = [this.#entered, this.#run]
    AsyncLocalStorage.prototype.run = /** @this {AsyncLocalStorage<unknown>} @param {any[]} values */ function (
      ...values
    ) {
      entered.add(this)
      return Reflect.apply(run, this, values)
    }
  }

  async teardown() {
    AsyncLocalStorage.prototype.run = this.#run
    for (const storage of this.#entered) storage.disable()
    await super.teardown()
  }
}
