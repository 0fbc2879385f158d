// Runs end-to-end test files side by side, as many as jest has workers, the longest first, and one at a time those that
// need the machine for themselves. Most files wait more than they compute.
import jestRunner from 'jest-runner'

/** A second file would take the CPU time or the memory that these look at. */
const alone = [
  'hostile', // memory
  'load-on-backend', // requests in a time
  'rooms-slow-readers', // memory
  'slow-viewer', // memory
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

/** @param {Test} test */
const isAlone = test => placeIn(alone, test) >= 0

/** @param {Test} test */
const turnOf = test => {
  const place = placeIn(longest, test)
  return place < 0 ? longest.length : place
}

// A class and a default export, because jest asks for both.
export default class E2eRunner extends TestRunner {
  /** @type {InstanceType<typeof TestRunner>['runTests']} */
  async runTests(tests, watcher, options) {
    const others = tests.filter(test => !isAlone(test)).sort((one, other) => turnOf(one) - turnOf(other))
    if (others.length > 0) await super.runTests(others, watcher, options)
    await super.runTests(tests.filter(isAlone), watcher, { ...options, serial: true })
  }
}
