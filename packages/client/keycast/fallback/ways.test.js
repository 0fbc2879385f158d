// A client whose ways to gateways come and go at random, in a page that is hidden, stands still and is left: each message
// comes once and in order, or a gap that is true; no value is older than one shown; what is wanted comes in the end.
import { connect } from '../../keycast.js'
import { createWaysWorld } from '../../test-ways-world.js'
import { createMessageList } from '../rooms/message-list.js'
import { createFallback } from './fallback.js'

const KEYS = ['a:0', 'a:1', 'a:2']
const ROOMS = ['room:0', 'room:1']

/** A connection is found dead in this time while a page is seen: over a WebSocket or a stream, and over requests that wait. */
const FOUND_MS = 45_000
const FOUND_BY_WAITS_MS = 260_000

/** By then the best way was tried again, whatever was tried before, and all was asked for. */
const HEALED_MS = 1_300_000

/** @param {number} seed @param {number} steps */
async function live(seed, steps) {
  const hasTokens = seed % 3 === 0
  const world = createWaysWorld(seed, { hasTokens })
  const { integer, pick, ways, page, values, rooms } = world
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
  const roomOf = (/** @type {string} */ key) => /** @type {any} */ (rooms.get(key))

  /** @type {Map<string, { handle: any, shown: number }>} */
  const watched = new Map()
  /** @type {Set<{ key: string, handle: any, last: any, movedMs: number }>} */
  const followed = new Set()
  /** @type {{ key: string, data: unknown, outcome?: any, error?: any }[]} */
  const published = []
  /** @type {{ key: string, made: import('../rooms/message-list.js').MessageList }[]} */
  const lists = []
  let asked = 0
  let answered = 0

  /** @param {Promise<unknown>} call */
  function ask(call) {
    asked++
    call.then(
      () => answered++,
      error => {
        if (!['journal_unavailable', 'other_epoch', 'fetcher_unavailable'].includes(error.code))
          fail(`a call: ${error}`)
        answered++
      },
    )
  }

  /** @param {string} key */
  function watch(key) {
    if (watched.has(key)) return
    const one = { handle: keycast.value(key), shown: 0 }
    watched.set(key, one)
    one.handle.on('change', () => {
      const { value } = one.handle.state
      if (!value) return
      if (value.order < one.shown) fail(`${key} went back from ${one.shown} to ${value.order}`)
      if (value.order > (values.get(key) ?? 0)) fail(`${key} shows what is to come`)
      one.shown = value.order
    })
  }

  /** @param {string} key */
  function follow(key) {
    const room = roomOf(key)
    const kept = room.all.at(-1)
    const options = pick([
      {},
      { last: 3 },
      { presence: true },
      kept ? { after: { epoch: kept.epoch, seq: kept.seq } } : {},
    ])
    const handle = keycast.room(key, options)
    const one = { key, handle, last: handle.position, movedMs: 0 }
    followed.add(one)
    handle.on('change', () => {
      one.last ??= handle.position
      one.movedMs = world.now()
    })
    handle.on('message', ({ position, data }) => {
      const { epoch, seq } = /** @type {any} */ (one.last ?? {})
      if (one.last && (epoch !== position.epoch || seq + 1 !== position.seq)) {
        fail(`${key}: ${JSON.stringify(position)} came after ${JSON.stringify(one.last)}`)
      }
      one.last = position
      one.movedMs = world.now()
      const kept = room.all.find(
        (/** @type {any} */ each) => each.epoch === position.epoch && each.seq === position.seq,
      )
      if (kept?.data !== data) fail(`${key}: ${data} at ${JSON.stringify(position)} is not what was kept`)
    })
    handle.on('gap', ({ position, reason }) => {
      const { epoch, seq } = /** @type {any} */ (one.last ?? {})
      if (reason === 'epoch' ? epoch === position.epoch : !(epoch === position.epoch && seq + 1 < room.oldest)) {
        fail(`${key}: a gap (${reason}) from ${JSON.stringify(one.last)} to ${JSON.stringify(position)} that is none`)
      }
      one.last = position
      one.movedMs = world.now()
    })
  }

  /** @param {string} key */
  function publish(key) {
    const one = /** @type {(typeof published)[0]} */ ({ key, data: `message ${published.length}` })
    published.push(one)
    const room = keycast.room(key, { follow: false })
    room.publish(one.data, { deadlineMs: pick([5_000, 30_000, 3_600_000]) }).then(
      (/** @type {any} */ outcome) => {
        one.outcome = outcome
      },
      (/** @type {any} */ error) => {
        one.error = error
      },
    )
    room.close()
  }

  /** A list of a page: nothing twice, and no hole. @param {string} key */
  function list(key) {
    const made = createMessageList(keycast, key, { last: 4, keep: pick([5, 2_000]) })
    made.on('change', ({ messages, pending }) => {
      for (const [index, { position, messageId }] of messages.entries()) {
        const next = messages[index + 1]?.position
        if (next && (next.epoch !== position.epoch || next.seq !== position.seq + 1))
          fail(`${key}: a list with a hole, ${JSON.stringify(position)} ${JSON.stringify(next)}`)
        if (pending.some(each => each.messageId === messageId)) fail(`${key}: ${messageId} is there, and pending`)
      }
    })
    lists.push({ key, made })
  }

  /** Others publish. @param {string} key */
  const say = key => world.keep(key, `others-${world.now()}-${integer(1e9)}`, `of others ${integer(1e9)}`)

  const modes = {
    socket: ['open', 'open', 'refused', 'silent'],
    stream: ['open', 'open', 'open', 'refused', 'silent', 'full'],
  }
  const acts = [
    () => world.change(pick(KEYS)),
    () => world.change(pick(KEYS)),
    () => say(pick(ROOMS)),
    () => say(pick(ROOMS)),
    () => watch(pick(KEYS)),
    () => followed.size < 6 && follow(pick(ROOMS)),
    () => publish(pick(ROOMS)),
    () => publish(pick(ROOMS)),
    () => lists.length < 2 && list(pick(ROOMS)),
    () => {
      const [one] = lists
      if (one) pick([() => one.made.send('of the list'), one.made.older])()
      if (one && integer(5) === 0) lists.shift()?.made.close()
    },
    () => {
      const [key, one] = pick([...watched, ['', undefined]])
      one?.handle.close()
      watched.delete(key)
    },
    () => {
      const one = pick([...followed, undefined])
      one?.handle.close()
      if (one) followed.delete(one)
    },
    () => ask(keycast.get(pick(KEYS))),
    () => {
      const one = pick([...followed, undefined])
      if (one) ask(pick([() => one.handle.history(), () => one.handle.join('Ann'), () => one.handle.leave()])())
    },
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

  function inspect() {
    // What is found out takes time, and needs timers.
    if (page.isHidden || page.isOffline) world.wakes()
    const { session } = /** @type {any} */ (keycast.state)
    const boundMs = session === 'waits' ? FOUND_BY_WAITS_MS : FOUND_MS
    const isLate = (/** @type {number} */ sinceMs) => Math.min(world.now() - sinceMs, world.awakeMs()) > boundMs
    const isDead = world.quietMs() > boundMs
    for (const { handle, shown } of watched.values()) {
      if (handle.state.health !== 'live') continue
      if (isDead || isLate(world.changedMs(handle.key, shown + 1))) fail(`${handle.key} is live at ${shown}`)
    }
    for (const { handle, key, last, movedMs } of followed) {
      if (handle.state.health !== 'live' || !last) continue
      const next = roomOf(key).all.find(
        (/** @type {any} */ each) => each.epoch === last.epoch && each.seq === last.seq + 1,
      )
      if (isDead || isLate(next ? Math.max(next.at, movedMs) : world.now()))
        fail(`${key} is live at ${JSON.stringify(last)} ${isDead}`)
    }
  }

  for (let step = 0; step < steps; step++) {
    await pick(acts)()
    for (let more = integer(3); more > 0; more--) await pick(acts)()
    await world.pass(pick([0, 1, 10, 100, 1_000, 6_000, 30_000]))
    inspect()
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
    for (const [key, { handle }] of watched) {
      const { health, value } = handle.state
      if (health !== 'live' || value.order !== values.get(key)) {
        fail(`${key} is ${health} at ${value?.order} of ${values.get(key)}: ${handle.state.error}`)
      }
    }
    for (const { key, handle, last } of followed) {
      const { health, pending, error } = handle.state
      const { epoch, seq } = roomOf(key)
      if (health !== 'live' || last?.epoch !== epoch || last.seq !== seq || pending.length > 0) {
        fail(`${key} is ${health} at ${JSON.stringify(last)} of ${seq}, ${pending.length} pending: ${error}`)
      }
    }
    for (const { key, made } of lists) {
      const { health, messages, pending } = made.state
      const { epoch, seq } = messages.at(-1)?.position ?? {}
      if (health !== 'live' || epoch !== roomOf(key).epoch || seq !== roomOf(key).seq || pending.length > 0) {
        fail(`the list of ${key} is ${health} at ${seq}, ${pending.length} pending`)
      }
    }
    if (answered !== asked) fail(`${asked - answered} of ${asked} calls were not answered`)
    for (const { key, data, outcome, error } of published) {
      const kept = roomOf(key).all.filter((/** @type {any} */ each) => each.data === data)
      if (outcome) {
        // In another history it is another message.
        const { position } = outcome
        if (!kept.some((/** @type {any} */ each) => each.epoch === position.epoch && each.seq === position.seq)) {
          fail(`${data} was told to be at ${JSON.stringify(position)} and is not`)
        }
      } else if (!error) fail(`${data} has no outcome`)
      else if (error.code === 'not_sent' && kept.length > 0) fail(`${data} was told not to be sent, and is kept`)
    }
    const places = (/** @type {string} */ key) =>
      published.flatMap(({ key: of, outcome }) => (of === key && outcome ? [outcome.position] : []))
    for (const key of ROOMS) {
      for (const [index, { epoch, seq }] of places(key).entries()) {
        const next = places(key)[index + 1]
        if (next?.epoch === epoch && next.seq <= seq)
          fail(`${key}: what was said first is at ${seq}, after ${next.seq}`)
      }
    }
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
