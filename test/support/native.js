// Runs a test file in Node itself. jest's own loader compiles every module anew for each file, which took half of the
// time of the unit tests. Test files of one worker share the modules that they import, and the globals.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { ModernFakeTimers } from '@jest/fake-timers'
import { ModuleMocker } from 'jest-mock'

const load = createRequire(import.meta.url)
const { default: runInCircus } = load('jest-circus/runner')

const mocker = new ModuleMocker(globalThis)
const timers = new ModernFakeTimers({ config: /** @type {any} */ ({ fakeTimers: {} }), global: globalThis })

/** What tests use of jest's. */
const jest = {
  fn: mocker.fn.bind(mocker),
  spyOn: mocker.spyOn.bind(mocker),
  restoreAllMocks: mocker.restoreAllMocks.bind(mocker),
  useFakeTimers: timers.useFakeTimers.bind(timers),
  useRealTimers: timers.useRealTimers.bind(timers),
  advanceTimersByTime: timers.advanceTimersByTime.bind(timers),
}

let imports = 0

/** How jest-runtime loads, in Node. */
const loading = {
  /**
   * jest-circus itself, which keeps the tests and hooks of a file in its modules and in the global object.
   *
   * @param {string} path
   */
  requireInternalModule(path) {
    delete load.cache[path]
    Reflect.deleteProperty(globalThis, Symbol.for('EVENT_HANDLERS'))
    return load(path)
  },
  unstable_shouldLoadAsEsm: () => true,
  /** A setup file is evaluated for each test file. @param {string} path */
  unstable_importModule: path => import(`${pathToFileURL(path)}?${imports++}`),
}

/**
 * A test framework as jest-runner calls it. A clock or a mock that a file leaves behind goes with it: jest itself waits by
 * that clock.
 *
 * @param {unknown} globalConfig
 * @param {unknown} config
 * @param {{ handleTestEvent?: (event: any) => void }} environment
 * @param {object} runtime
 * @param {unknown[]} others
 */
export default async function runTestFile(globalConfig, config, { handleTestEvent }, runtime, ...others) {
  Object.assign(globalThis, { jest })
  const environment = { handleTestEvent, global: globalThis }
  try {
    return await runInCircus(globalConfig, config, environment, Object.assign(runtime, loading), ...others)
  } finally {
    mocker.restoreAllMocks()
    timers.useRealTimers()
  }
}
