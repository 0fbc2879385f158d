// Runs end-to-end test files side by side, as many as jest has workers, the longest first. Those that look at memory follow
// in twos, and last, by itself, comes what needs the machine for itself. Most files wait more than they compute.
import jestRunner from 'jest-runner'

/**
 * These look at how far the memory of their own processes grows, which is more where collecting garbage must wait for a
 * core: two at a time.
 */
const memory = ['slow-viewer', 'rooms-slow-readers', 'hostile']

/** A second file would take the CPU time that these look at. */
const alone = [
  'load-on-backend', // requests in a time
]

/**
 * Those that take over 30 s, by how long they take; the rest follows as jest orders it. In a fresh checkout jest orders by
 * the files' sizes, and the last to begin could be one that takes two minutes, with nothing beside it.
 */
const longest = [
  'loadtest',
  'client-browsers',
  'presence',
  'start',
  'monitoring',
  'chat',
  'authorize',
  'journal',
  'deltas',
  'client-rooms',
  'faults-backend',
  'faults-fetcher',
  'faults-backbone',
  'faults-one-way',
  'confirmed-by-beats',
  'faults-together',
  'page',
  'journal-valkey',
]

// By its types the default export is a module that has one; in Node it is the class.
const TestRunner = /** @type {typeof jestRunner.default} */ (/** @type {unknown} */ (jestRunner))

/** @typedef {import('jest-runner').Test} Test */

/** The place of a test file in a list of names, -1 where it is not there. @param {string[]} names @param {Test} test */
const placeIn = (names, { path }) => names.findIndex(name => path.endsWith(`/test/${name}.test.js`))

/** @param {string[]} names @returns {(test: Test) => boolean} */
const isIn = names => test => placeIn(names, test) >= 0

/** @param {Test} test */
const turnOf = test => {
  const place = placeIn(longest, test)
  return place < 0 ? longest.length : place
}

// A class and a default export, because jest asks for both.
export default class E2eRunner extends TestRunner {
  /** The number of workers is a runner's own. */
  #twos

  /** @param {ConstructorParameters<typeof TestRunner>} given */
  constructor(...[config, context]) {
    super(config, context)
    this.#twos = new TestRunner({ ...config, maxWorkers: Math.min(2, config.maxWorkers) }, context)
  }

  /** @type {InstanceType<typeof TestRunner>['runTests']} */
  async runTests(tests, watcher, options) {
    const others = tests.filter(test => !isIn([...memory, ...alone])(test))
    others.sort((one, other) => turnOf(one) - turnOf(other))
    if (others.length > 0) await super.runTests(others, watcher, options)
    const twos = tests.filter(isIn(memory))
    if (twos.length > 0) await this.#twos.runTests(twos, watcher, options)
    await super.runTests(tests.filter(isIn(alone)), watcher, { ...options, serial: true })
  }

  /** @type {InstanceType<typeof TestRunner>['on']} */
  on(event, listener) {
    const stops = [super.on(event, listener), this.#twos.on(event, listener)]
    return () => {
      for (const stop of stops) stop()
    }
  }
}
