// A client whose ways to gateways come and go at random, in a page that is hidden, stands still and is left: each message
// comes once and in order, or a gap that is true; no value is older than one shown; what is wanted comes in the end.
import { connect } from '../../keycast.js'
import { createJudge } from '../../test-judge.js'
import { createWaysWorld, KEYS, ROOMS } from '../../test-ways-world.js'
import { createFallback } from './fallback.js'

/** By then the best way was tried again, whatever was tried before, and all was asked for. */
const HEALED_MS = 1_300_000

/** @param {number} seed @param {number} steps */
async function live(seed, steps) {
  const hasTokens = seed % 3 === 0
  const world = createWaysWorld(seed, { hasTokens })
  const { integer, pick, ways, page } = world
  const Fallback = createFallback(world.parts)
  const token = async () => `token ${integer(1_000)}`
  const keycast = connect('ws://gateway/ws', {
    WebSocket: Fallback,
    environment: world.environment,
    ...(hasTokens ? { token } : {}),
  })
  /** @type {string[]} */
  const problems = []
  const fail = (/** @type {string} */ problem) => problems.push(`at ${world.now()}: ${problem}`)

  const judge = createJudge(world, keycast, fail)
  /** Others publish. @param {string} key */
  const say = key => world.keep(key, `others-${world.now()}-${integer(1e9)}`, `of others ${integer(1e9)}`)

  const modes = {
    socket: ['open', 'open', 'refused', 'silent'],
    stream: ['open', 'open', 'open', 'refused', 'silent', 'full'],
  }
  const acts = [
    ...judge.acts,
    () => world.change(pick(KEYS)),
    () => world.change(pick(KEYS)),
    () => say(pick(ROOMS)),
    () => say(pick(ROOMS)),
    () => {
      ways.socket = pick(modes.socket)
      if (integer(2)) world.cut(integer(3) === 0)
    },
    () => {
      ways.stream = pick(modes.stream)
      if (integer(2)) world.cut(integer(3) === 0)
    },
    () => {
      ways.waits = pick(modes.socket)
    },
    () => {
      const gateway = pick(world.gateways)
      gateway.isUp = !gateway.isUp || integer(2) === 0
    },
    () => world.cut(integer(3) === 0),
    () => integer(4) || world.trim(pick(ROOMS), integer(5)),
    () => integer(10) || world.begin(pick(ROOMS)),
    () => world.delete(pick(ROOMS)),
    () => {
      page.isThrottled = integer(2) === 0
      if (page.isHidden || integer(2)) world.show(!page.isHidden)
    },
    () => (page.isOffline || integer(3) === 0) && world.fire(page.isOffline ? 'online' : 'offline'),
    async () => {
      world.fire('pagehide')
      await world.sleep(pick([10, 60_000, 3_600_000]), integer(2) === 0)
      world.fire('pageshow')
    },
    async () => {
      await world.sleep(pick([10, 1_000, 20_000, 45_000, 3_600_000]), integer(2) === 0)
      if (integer(2)) world.fire('resume')
    },
    () => world.jump(pick([-3_600_000, 3_600_000, -1_000])),
  ]

  for (let step = 0; step < steps; step++) {
    await pick(acts)()
    for (let more = integer(3); more > 0; more--) await pick(acts)()
    await world.pass(pick([0, 1, 10, 100, 1_000, 6_000, 30_000]))
    judge.inspect()
    if (problems.length > 0) break
  }

  Object.assign(ways, { socket: 'open', stream: 'open', waits: 'open' })
  for (const gateway of world.gateways) gateway.isUp = true
  if (page.isOffline) world.fire('online')
  if (page.isHidden) world.show(false)
  const isOk = problems.length === 0
  for (let left = isOk ? HEALED_MS : 0; left > 0; left -= 100_000) {
    await world.pass(100_000)
    for (const key of KEYS) world.change(key)
    for (const key of ROOMS) say(key)
    await world.pass(5_000)
  }
  if (isOk) {
    if (keycast.state.name !== 'open') fail(`the connection is ${keycast.state.name}`)
    judge.finish()
    if (![...world.sessions].some(session => session.hasDeltas)) fail('the best way is not taken')
  }
  const sessions = world.sessions.size
  keycast.close()
  await world.pass(40_000)
  if (isOk) {
    const left = [world.timers.size, world.open.size, world.sessions.size, world.listeners()]
    if (left.some(Boolean))
      fail(`left: ${left[0]} timers, ${left[1]} requests, ${left[2]} sessions of ${sessions}, ${left[3]} listeners`)
  }
  return problems
}

/** More of them: `WAYS_SEEDS=1000`, from `WAYS_FIRST` on. */
const { WAYS_SEEDS = '20', WAYS_FIRST = '1', WAYS_STEPS = '80' } = process.env

test('each message comes once and in order, no value is older than one shown, and all comes in the end', async () => {
  /** @type {Record<string, string[]>} */
  const found = {}
  for (let seed = Number(WAYS_FIRST); seed < Number(WAYS_FIRST) + Number(WAYS_SEEDS); seed++) {
    const problems = await live(seed, Number(WAYS_STEPS)).catch(error => [String(error.stack)])
    if (problems.length > 0) found[seed] = problems.slice(0, 4)
  }
  expect(found).toEqual({})
})

/** A client over the first way that is open. @param {object} closed ways */
async function setUp(closed) {
  const world = createWaysWorld(1)
  Object.assign(world.ways, closed)
  const keycast = connect('ws://gateway/ws', {
    WebSocket: createFallback(world.parts),
    environment: world.environment,
  })
  await world.pass(1_000)
  return { ...world, keycast }
}

test('a hidden page goes on over a better way at once: it runs no timer, and would come back when it is seen', async () => {
  const { keycast, ways, show, pass } = await setUp({ socket: 'refused' })
  expect(keycast.state).toMatchObject({ name: 'open', session: 'stream' })
  show(true)
  ways.socket = 'open'
  await pass(10_000)
  expect(keycast.state).toMatchObject({ name: 'open', session: 'socket' })
  keycast.close()
})

test('a room that was opened over requests that wait comes with a better way', async () => {
  const { keycast, ways, pass } = await setUp({ socket: 'refused', stream: 'refused' })
  const room = keycast.room('room:0')
  await pass(1_000)
  expect(room.state).toMatchObject({ health: 'loading', error: { code: 'journal_unavailable', subscribed: true } })
  ways.stream = 'open'
  await pass(20_000)
  expect(room.state).toMatchObject({ health: 'live', error: undefined })
  keycast.close()
})

test('a client that is closed over the first room of a request that waits asks for no other', async () => {
  const { keycast, pass, open } = await setUp({ socket: 'refused', stream: 'refused' })
  keycast.room('room:0', { last: 1 }).on('change', ({ error }) => error && keycast.close())
  keycast.room('room:1')
  await pass(1_000)
  expect([keycast.state.name, open.size]).toEqual(['closed', 0])
})

test('a client that is closed over requests that wait leaves no timer, which would keep a program from ending', async () => {
  const { keycast, pass, timers } = await setUp({ socket: 'refused', stream: 'refused' })
  keycast.value(KEYS[0])
  keycast.room('room:0')
  await pass(5_000)
  keycast.close()
  await pass(0)
  expect(timers.size).toBe(0)
})

test('nor does one that is closed over an event stream, once what it says is said', async () => {
  const { keycast, pass, timers } = await setUp({ socket: 'refused' })
  const said = keycast.room('room:0', { follow: false }).publish('hello')
  await pass(0)
  keycast.close()
  await expect(said).rejects.toMatchObject({ code: 'publish_unknown' })
  await pass(1_000)
  expect(timers.size).toBe(0)
})

test('nor does one that is closed by who hears of an error', async () => {
  const { keycast, pass, timers } = await setUp({ socket: 'refused', stream: 'refused' })
  keycast.value('room:0').on('change', ({ error }) => error && keycast.close())
  await pass(500)
  expect([keycast.state.name, timers.size]).toEqual(['closed', 0])
})

test('a key that no address can hold ends alone', async () => {
  const { keycast, pass } = await setUp({ socket: 'refused', stream: 'refused' })
  const bad = keycast.value('doc:\ud800')
  const good = keycast.value(KEYS[0])
  await pass(10_000)
  expect([bad.state.error?.code, good.state.health, keycast.state.name]).toEqual(['bad_key', 'live', 'open'])
  await expect(keycast.get('doc:\ud800')).rejects.toMatchObject({ code: 'bad_key' })
  keycast.close()
})
