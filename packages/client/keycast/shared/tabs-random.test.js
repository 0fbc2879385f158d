// Tabs that share a worker at random: they come, stand still, are left and kept for the way back, close and die, and so does
// the worker. Each sees what a client of its own would show it.
import { connect } from '../../keycast.js'
import { createJudge } from '../../test-judge.js'
import { createWaysWorld, KEYS, ROOMS } from '../../test-ways-world.js'
import { createHost } from './host.js'
import { createTab } from './tab.js'

const HEALED_MS = 400_000

const { setTimeout, clearTimeout } = globalThis
const { now } = Date
afterAll(() => {
  Object.assign(globalThis, { setTimeout, clearTimeout })
  Date.now = now
  for (const name of ['addEventListener', 'removeEventListener']) Reflect.deleteProperty(globalThis, name)
})

/** As the platform's: a worker's or a tab's lock ends with it, and then all who waited have it. */
function createLocks() {
  /** @type {Map<string, { end: () => void, waiting: (() => any)[] }>} */
  const held = new Map()
  return {
    /** @param {string} name @param {any} _ @param {() => any} task */
    async request(name, _, task) {
      const waiting = held.get(name)?.waiting
      if (waiting) return void waiting.push(task)
      /** @type {(() => any)[]} */
      const next = []
      const end = () => {
        if (held.get(name)?.waiting !== next) return
        held.delete(name)
        for (const each of next) queueMicrotask(each)
      }
      held.set(name, { end, waiting: next })
      queueMicrotask(() => Promise.resolve(task()).then(end))
    },
    /** @param {string} name */
    kill: name => held.get(name)?.end(),
  }
}

/** @param {number} seed @param {number} steps */
async function live(seed, steps) {
  const world = createWaysWorld(seed)
  const { integer, pick, ways } = world
  /** @type {string[]} */
  const problems = []
  const locks = createLocks()
  const { environment } = world
  // A tab takes these of its page.
  Object.assign(globalThis, { setTimeout: environment.setTimeout, clearTimeout: environment.clearTimeout })
  Date.now = environment.date
  let workers = 0
  /** @type {{ host: ReturnType<typeof createHost>, lock: string, isDead: boolean }} */
  let worker

  /** @param {string} lock @returns {typeof worker} */
  function startHost(lock) {
    const mine = /** @type {typeof worker} */ ({ lock, isDead: false })
    const { WebSocket } = world.parts
    const setTimeout = (/** @type {() => void} */ task, /** @type {number} */ ms) =>
      environment.setTimeout(() => mine.isDead || task(), ms)
    const surroundings = { ...environment, document: undefined, window: undefined, setTimeout }
    mine.host = createHost({
      connect: (url, options) => connect(url, { ...options, WebSocket, environment: surroundings }),
      locks,
      lock,
      now: environment.now,
    })
    return mine
  }
  function begin() {
    worker = startHost(`worker ${workers++}`)
  }
  begin()
  /** By a listener, those of its page. @type {Map<any, Map<string, any>>} */
  const ofPages = new Map()

  /** @param {string} name */
  function openTab(name) {
    const target = /** @type {any} */ (globalThis)
    /** @type {Map<string, (event: any) => void>} */
    const listeners = new Map()
    let isFrozen = false
    /** @type {(() => void)[]} */
    const kept = []
    /** The platform runs nothing of a page that stands still. @param {() => void} task */
    const run = task => {
      if (isFrozen) kept.push(task)
      else task()
    }
    const locksOfTab = new Set()
    target.addEventListener = (/** @type {string} */ event, /** @type {any} */ listener) => {
      listeners.set(event, listener)
      ofPages.set(listener, listeners)
    }
    target.removeEventListener = (/** @type {string} */ event, /** @type {any} */ listener) =>
      ofPages.get(listener)?.delete(event)
    let isDead = false
    /** @param {typeof worker} of */
    const reachOf = of => {
      /** @type {any} */
      const its = {
        onmessage: null,
        postMessage(/** @type {unknown} */ message) {
          const data = structuredClone(message)
          queueMicrotask(() => isDead || of.isDead || run(() => isDead || mine.onmessage?.({ data })))
        },
      }
      /** @type {any} */
      const mine = {
        onmessage: null,
        postMessage(/** @type {unknown} */ message) {
          const data = structuredClone(message)
          queueMicrotask(() => of.isDead || isDead || its.onmessage?.({ data }))
        },
      }
      of.host.join(its)
      return mine
    }
    /** @type {import('./host.js').Locks} */
    const locksOfPage = {
      request(lock, options, task) {
        if (lock.startsWith('keycast tab')) locksOfTab.add(lock)
        return locks.request(lock, options, () => {
          if (isDead) return undefined
          if (!isFrozen) return task()
          return new Promise(resolve => kept.push(() => resolve(isDead ? undefined : task())))
        })
      },
    }
    const keycast = createTab({
      reach: () => reachOf(worker),
      alone() {
        const own = startHost(`alone ${workers++}`)
        own.isDead = isDead
        return { reach: () => reachOf(own), locks: locksOfPage }
      },
      locks: locksOfPage,
      url: 'ws://gateway/ws',
      options: {},
    })
    const judge = createJudge(world, keycast, problem => problems.push(`at ${world.now()}, ${name}: ${problem}`), name)
    let isLeft = false
    const thaw = () => {
      isFrozen = false
      world.wakes()
      for (const task of kept.splice(0)) task()
    }
    return {
      keycast,
      judge,
      listeners,
      isStill: () => isFrozen || isLeft,
      freeze: () => {
        isFrozen = true
      },
      thaw,
      /** Kept for the way back: it stands still, too. */
      leave() {
        if (isLeft) return
        isLeft = true
        listeners.get('pagehide')?.({})
        isFrozen = true
      },
      back() {
        if (!isLeft) return thaw()
        isLeft = false
        thaw()
        listeners.get('pageshow')?.({ persisted: true })
      },
      die() {
        isDead = true
        for (const lock of locksOfTab) locks.kill(/** @type {string} */ (lock))
      },
    }
  }
  let count = 0
  /** @type {ReturnType<typeof openTab>[]} */
  const tabs = []
  const closed = []

  function killWorker() {
    worker.isDead = true
    const { lock } = worker
    for (const one of [...world.open]) one.cut(true)
    world.open.clear()
    begin()
    locks.kill(lock)
  }

  const acts = [
    () => tabs.length < 3 && tabs.push(openTab(`tab ${count++} `)),
    ...Array(8).fill(async () => {
      const tab = pick([...tabs, undefined])
      if (tab && !tab.isStill()) await pick(tab.judge.acts)()
    }),
    () => world.change(pick(KEYS)),
    () => world.keep(pick(ROOMS), `others-${world.now()}-${integer(1e9)}`, `of others ${integer(1e9)}`),
    () => tabs.length && pick(tabs).freeze(),
    () => tabs.length && pick(tabs).back(),
    () => tabs.length && pick(tabs).leave(),
    () => tabs.length && pick(tabs).back(),
    () => {
      if (integer(4)) return
      const [tab] = tabs.splice(integer(tabs.length), 1)
      if (!tab) return
      if (integer(2)) return tab.die()
      tab.back()
      tab.keycast.close()
      closed.push(tab)
      if (tab.listeners.size > 0) problems.push('listeners are left')
    },
    () => integer(3) || killWorker(),
    () => world.cut(integer(3) === 0),
    () => {
      ways.socket = pick(['open', 'open', 'refused', 'silent'])
    },
    () => integer(4) || world.trim(pick(ROOMS), integer(5)),
    () => integer(10) || world.begin(pick(ROOMS)),
    () => world.delete(pick(ROOMS)),
    () => world.sleep(pick([10, 1_000, 20_000, 45_000, 3_600_000]), integer(2) === 0),
  ]
  for (let step = 0; step < steps; step++) {
    for (let more = integer(4); more >= 0; more--) await pick(acts)()
    await world.pass(pick([0, 0, 1, 10, 100, 1_000, 6_000, 30_000]))
    // Those that stand still show what they showed.
    for (const tab of tabs) if (!tab.isStill()) tab.judge.inspect()
    if (problems.length > 0) break
  }
  ways.socket = 'open'
  for (const tab of tabs) tab.back()
  const isOk = problems.length === 0
  for (let left = isOk ? HEALED_MS : 0; left > 0; left -= 100_000) {
    await world.pass(100_000)
    for (const key of KEYS) world.change(key)
    for (const key of ROOMS) world.keep(key, `others-${world.now()}-${integer(1e9)}`, `of others ${integer(1e9)}`)
    await world.pass(5_000)
  }
  if (isOk) for (const tab of tabs) tab.judge.finish()
  for (const tab of tabs) tab.keycast.close()
  await world.pass(40_000)
  const left = [world.timers.size, world.open.size, world.sessions.size]
  if (isOk && left.some(Boolean)) problems.push(`left: ${left[0]} timers, ${left[1]} connections, ${left[2]} sessions`)
  return problems
}

const { TABS_SEEDS = '20', TABS_FIRST = '1', TABS_STEPS = '80' } = process.env

test('tabs that share a worker see what clients of their own would show them', async () => {
  /** @type {Record<string, string[]>} */
  const found = {}
  for (let seed = Number(TABS_FIRST); seed < Number(TABS_FIRST) + Number(TABS_SEEDS); seed++) {
    const problems = await live(seed, Number(TABS_STEPS)).catch(error => [String(error.stack)])
    if (problems.length > 0) found[seed] = problems.slice(0, 4)
  }
  expect(found).toEqual({})
})
