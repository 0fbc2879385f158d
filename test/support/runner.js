// Runs end-to-end test files side by side, as many as jest has workers, and one at a time those that need the machine for
// themselves. Most files wait more than they compute.
import jestRunner from 'jest-runner'

/** A second file would take the CPU time or the memory that these look at. */
const alone = [
  'hostile', // memory
  'load-on-backend', // requests in a time
  'loadtest', // what a second can do
  'rooms-slow-readers', // memory
  'slow-viewer', // memory
]

// By its types the default export is a module that has one; in Node it is the class.
const TestRunner = /** @type {typeof jestRunner.default} */ (/** @type {unknown} */ (jestRunner))

const isAlone = (/** @type {import('jest-runner').Test} */ { path }) =>
  alone.some(name => path.endsWith(`/test/${name}.test.js`))

// A class and a default export, because jest asks for both.
export default class E2eRunner extends TestRunner {
  /** @type {InstanceType<typeof TestRunner>['runTests']} */
  async runTests(tests, watcher, options) {
    const others = tests.filter(test => !isAlone(test))
    if (others.length > 0) await super.runTests(others, watcher, options)
    await super.runTests(tests.filter(isAlone), watcher, { ...options, serial: true })
  }
}
