// Runs end-to-end test files side by side, as many as jest has workers, the longest first. Those that look at memory follow
// in twos, and last, by itself, comes what needs the machine for itself. Most files wait more than they compute.
import type { Test, TestEvents } from 'jest-runner'
import jestRunner from 'jest-runner'

/**
 * These look at how far the memory of their own processes grows, which is more where collecting garbage must wait for a
 * core: two at a time.
 */
const memory = ['strangers/slow-viewer', 'rooms/slow-readers', 'strangers/hostile']

/** A second file would take the CPU time that these look at. */
const alone = [
  'values/load-on-backend', // requests in a time
]

/**
 * Those that take 20 s or more, by how long they take; the rest follows as jest orders it. In a fresh checkout jest
 * orders by the files' sizes, and some of the smallest take half a minute: they would begin last, with little beside
 * them.
 */
const longest = [
  'clients/browsers',
  'loadtest/scenarios',
  'clients/fallback',
  'clients/shared',
  'access/authorize',
  'rooms/notify',
  'journal/journal',
  'journal/valkey',
  'loadtest/seeds',
  'values/handed-over',
  'operation/start',
  'faults/rooms-valkey',
  'faults/together',
  'clients/chat',
  'faults/one-way',
  'faults/rooms',
  'faults/starved',
  'strangers/floods',
  'strangers/fuzz-nodes',
  'faults/fetcher',
  'clients/python',
  'strangers/fuzz-system',
  'rooms/presence',
  'strangers/fuzz-parsers',
  'values/pushed',
  'strangers/fuzz-python',
  'operation/monitoring',
  'operation/deploy-pages',
  'values/deltas',
  'rooms/faults',
  'clients/compression',
  'clients/rooms',
]

// By its types the default export is a module that has one; in Node it is the class.
const TestRunner = jestRunner as unknown as typeof jestRunner.default

/** The place of a test file in a list of names, -1 where it is not there. */
const placeIn = (names: string[], { path }: Test) => names.findIndex(name => path.endsWith(`/test/${name}.test.ts`))

const isIn =
  (names: string[]): ((test: Test) => boolean) =>
  test =>
    placeIn(names, test) >= 0

const turnOf = (test: Test) => {
  const place = placeIn(longest, test)
  return place < 0 ? longest.length : place
}

// A class and a default export, because jest asks for both.
export default class E2eRunner extends TestRunner {
  /** The number of workers is a runner's own. */
  #twos

  constructor(...[config, context]: ConstructorParameters<typeof TestRunner>) {
    super(config, context)
    this.#twos = new TestRunner({ ...config, maxWorkers: Math.min(2, config.maxWorkers) }, context)
  }

  async runTests(...[tests, watcher, options]: Parameters<InstanceType<typeof TestRunner>['runTests']>) {
    const others = tests.filter(test => !isIn([...memory, ...alone])(test))
    others.sort((one, other) => turnOf(one) - turnOf(other))
    if (others.length > 0) await super.runTests(others, watcher, options)
    const twos = tests.filter(isIn(memory))
    if (twos.length > 0) await this.#twos.runTests(twos, watcher, options)
    await super.runTests(tests.filter(isIn(alone)), watcher, { ...options, serial: true })
  }

  on<Name extends keyof TestEvents>(event: Name, listener: (data: TestEvents[Name]) => void | Promise<void>) {
    const stops = [super.on(event, listener), this.#twos.on(event, listener)]
    return () => {
      for (const stop of stops) stop()
    }
  }
}
