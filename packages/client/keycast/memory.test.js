// A client whose connection is lost again and again, for an hour of its clock, keeps nothing that grows.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { connect } from '../keycast.js'
import { createWorld, welcome } from '../test-support.js'

/** 3,600 losses are an hour. */
const BETWEEN_MS = 1_000
const HOUR = 3_600

/** The compiler has settled by then. */
const FIRST = 600

/** Anything kept of a session, a key, a message or a request takes more; what jest and the compiler keep takes less. */
const KEPT_BYTES_MAX = 500

setFlagsFromString('--expose-gc')
const gc = /** @type {() => void} */ (runInNewContext('gc'))

/** A client whose gateway answers everything and whose connection does not last. */
function start() {
  const world = createWorld()
  const { environment, network, socket, settle, pass, done, outs } = world
  network.random = 0 // each loss is followed by a connection at once
  const keycast = connect('ws://gateway/ws', { environment })
  /** How many messages each room has had. @type {Map<string, number>} */
  const heads = new Map()
  const headOf = (/** @type {string} */ key) => heads.get(key) ?? 0

  /** @param {string} key of a room @param {object} [message] */
  function say(key, message = { data: 'x'.repeat(1_000) }) {
    const seq = headOf(key) + 1
    heads.set(key, seq)
    socket().say({ type: 'message', key, seq, at: seq, ...message })
  }

  /** @param {any} request */
  function answer({ type, id, keys = [], key, messageId, data, name, claim }) {
    const epoch = 'E'
    if (type === 'subscribe') {
      const named = keys.map((/** @type {any} */ each) => each.key ?? each)
      const isRoom = named[0].startsWith('room:')
      const answers = named.map((/** @type {string} */ each) => {
        return isRoom ? { key: each, epoch, seq: headOf(each), oldest: 1, recovered: true, count: 0 } : { key: each }
      })
      socket().say({ type: 'subscribed', id, keys: answers })
      if (!named.includes('room:1')) return
      const members = [{ id: 'm', name: 'Ann', tabs: 1 }]
      socket().say({ type: 'members', key: 'room:1', rev: 1, count: 1, members })
    } else if (type === 'publish') {
      // Subscribes to no room that is only published into.
      if (key === 'room:1') say(key, { messageId, data })
      socket().say({ type: 'published', id, key, epoch, seq: headOf(key), at: 1 })
    } else if (type === 'history') {
      socket().say({ type, id, key, epoch, oldest: 1, newest: headOf(key), messages: [], more: false })
    } else if (type === 'join') socket().say({ type: 'joined', id, key, name, claim })
    else if (type === 'get') socket().say({ type: 'error', id, key, code: 'not_found', message: 'not_found' })
    else socket().say({ type: 'ok', id })
  }

  /** Answers all requests, and the requests that these answers cause. */
  async function answerAll() {
    for (;;) {
      await settle()
      const requests = outs()
      if (requests.length === 0) return
      requests.forEach(answer)
    }
  }

  return {
    ...world,
    keycast,
    /**
     * So many sessions. In each something happens, and something else is under way when the connection is lost.
     *
     * @param {number} rounds
     * @param {(round: number) => void} happen
     * @param {(round: number) => void} ask the request that stays unanswered before the loss
     */
    async live(rounds, happen, ask) {
      for (let round = 0; round < rounds; round += 1) {
        socket().say(welcome())
        await answerAll()
        happen(round)
        await answerAll()
        ask(round)
        await settle()
        socket().lose(1006)
        await pass(BETWEEN_MS)
        done()
      }
      gc()
      await settle()
      gc()
      return process.memoryUsage().heapUsed
    },
    say,
  }
}

/** Another test checks the result. @param {Promise<unknown>} promise */
const ignore = promise => void promise.catch(() => {})

test('an hour of reconnects leaves nothing behind of values', async () => {
  let version = 0
  const { keycast, live, socket, timers } = start()
  keycast.value('a:1').on('change', () => {})
  const happen = (/** @type {number} */ round) => {
    const passing = keycast.value(`a:passing-${round}`)
    version += 1
    const body = Buffer.from(JSON.stringify({ version, pad: 'x'.repeat(1_000) }))
    socket().say({ type: 'value', key: 'a:1', version: `v${version}`, contentType: 'application/json' }, body)
    passing.close()
  }
  const ask = () => {
    ignore(keycast.get('a:never', { signal: AbortSignal.abort() }))
    ignore(keycast.get('a:late'))
    keycast.value('a:asked').close()
  }
  const before = await live(FIRST, happen, ask)
  const after = await live(HOUR, happen, ask)
  expect((after - before) / HOUR).toBeLessThan(KEPT_BYTES_MAX)
  expect(keycast.peek('a:1').value).toMatchObject({ version: FIRST + HOUR })
  expect(keycast.peek('a:passing-0').version).toBeUndefined()
  keycast.close()
  expect(timers.size).toBe(0)
})

test('an hour of reconnects leaves nothing behind of rooms', async () => {
  const { keycast, live, say, timers } = start()
  const room = keycast.room('room:1', { presence: true })
  let seen = 0
  room.on('message', () => {
    seen += 1
  })
  room.members.on('change', () => {})
  ignore(room.join('Ann'))
  const happen = (/** @type {number} */ round) => {
    say('room:1')
    const passing = keycast.room(`room:passing-${round}`)
    ignore(passing.publish('in passing'))
    ignore(room.publish('said'))
    ignore(room.history())
    passing.close()
  }
  // These are sent in the next session.
  const ask = () => {
    ignore(room.publish('lost on the way'))
    ignore(room.history())
    keycast.room('room:asked').close()
  }
  const before = await live(FIRST, happen, ask)
  const after = await live(HOUR, happen, ask)
  expect((after - before) / HOUR).toBeLessThan(KEPT_BYTES_MAX)
  // Of each session a message of somebody else and one of its own; and the ones that the next session repeated.
  expect(seen).toBeGreaterThanOrEqual(3 * (FIRST + HOUR) - 1)
  expect(room.state).toMatchObject({ joinedAs: 'Ann', error: undefined })
  expect(room.pending.length).toBeLessThanOrEqual(1)
  keycast.close()
  expect(timers.size).toBe(0)
})
