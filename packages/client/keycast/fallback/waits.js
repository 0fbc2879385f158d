// The third way, where streams are blocked or held back as well: values alone, for anybody, by requests that wait for the
// next version (`GET /v1/wait`). It answers as a gateway would; rooms stay away, and tokens are none of it.
import { addressOf, pathOf, problemOf } from './requests.js'
import { joined } from './value-frames.js'

/** A value that cannot be waited for, and one whose backend cannot be asked, is asked for at this pace. */
const PACE_MS = 10_000

/** Each key is asked for so rarely, also where somebody on the way answers each request at once. */
const REST_MS = 1_000

/** A request waits 20 s at most, and a gateway gives 120 s to read its answer. One that takes longer has died on the way. */
const ANSWER_MS = 150_000

const noGateway = 'no gateway'

/** Each takes a request that waits. */
const KEYS_MAX = 100

/**
 * Its limits are this client's own. None is of keys: one that was refused would not come back with a better way. Where
 * nothing is heard the client asks for a sign of life: a connection that died on the way tells nobody.
 */
const welcome = {
  type: 'welcome',
  session: 'waits',
  heartbeatMs: 60_000,
  limits: { messageBytes: 262_144, keysPerSession: 1e9, requestsPerSecond: 100 },
}

/** What takes a journal. It comes back with a better way. */
const noRooms = {
  code: 'journal_unavailable',
  message: 'needs a WebSocket or an event stream',
  retryAfterMs: 30_000,
}

/** Comes when others leave, and with a better way. */
const tooMany = { code: 'too_many_keys', message: `${KEYS_MAX} at most`, retryAfterMs: 30_000 }

/** Codes that no later answer to the same request changes. */
const final = ['bad_key', 'unauthenticated', 'forbidden']

/** @param {import('./fallback.js').Surroundings} surroundings @returns {import('./fallback.js').Way} */
export function overWaits({ url, fetch, setTimeout, clearTimeout, hear, end }) {
  const session = new AbortController()
  /** By key. @type {Map<string, AbortController>} */
  const watches = new Map()

  /** @param {object} message */
  const say = message => hear(JSON.stringify(message))

  /** They would keep a program from ending. */
  const pauses = new Set()

  /** @param {number} ms @returns {Promise<void>} which no longer ends after a close */
  const pause = ms =>
    new Promise(resolve => {
      const timer = setTimeout(() => {
        pauses.delete(timer)
        resolve()
      }, ms)
      pauses.add(timer)
    })

  /** @param {object} fields */
  const sayError = fields => say({ type: 'error', subscribed: true, ...fields })

  /** @param {string} reason @param {boolean} [isRefused] */
  function lose(reason, isRefused) {
    close()
    end(1006, reason, isRefused)
  }

  function close() {
    session.abort()
    for (const watch of watches.values()) watch.abort()
    for (const timer of pauses) clearTimeout(timer)
  }

  /** Says a message if a gateway can be reached at all: where all are away, the client must hear so. @param {object} message */
  function sayIfReached(message) {
    fetch(addressOf(url, '../keycast.js'), { method: 'HEAD', signal: session.signal, cache: 'no-store' }).then(
      // A page that stands in the place of all others, as where one has to sign in to a network, is no gateway.
      ({ headers }) => (/javascript/.test(`${headers.get('content-type')}`) ? say(message) : lose(noGateway)),
      error => lose(String(error)),
    )
  }

  sayIfReached(welcome)

  /** @param {any} entry of a subscribe: with the version and the order that the client holds */
  function watch(entry) {
    // A listener that heard of the key before may have closed the client: nobody would end this request.
    if (session.signal.aborted) return
    const controller = new AbortController()
    watches.get(entry.key)?.abort()
    watches.set(entry.key, controller)
    follow(entry, controller.signal).catch(error => controller.signal.aborted || lose(String(error)))
  }

  /** @param {any} held @param {AbortSignal} signal */
  async function follow(held, signal) {
    const { key } = held
    while (!signal.aborted) {
      const rest = pause(REST_MS)
      let left = KEYS_MAX
      for (const each of watches.keys()) if (each === key || !--left) break
      const { frame, problem, ...next } = left ? await ask(held, signal) : { problem: tooMany }
      if (signal.aborted) return
      const subscribed = !final.includes(problem?.code)
      if (problem) sayError({ key, subscribed, ...(problem.code === 'unknown_namespace' ? noRooms : problem) })
      else hear(frame)
      // Whoever heard of it may have closed the client: the pause would keep a program from ending.
      if (!subscribed || signal.aborted) return
      held = { ...held, cursor: undefined, ...next }
      if (held.cursor === undefined) await pause(problem?.retryAfterMs ?? PACE_MS)
      await rest
    }
  }

  /**
   * @param {any} held of a key; `id`: of the one request that this answers @param {AbortSignal} signal
   * @returns {Promise<any>} what to tell the client, and what it holds then
   */
  async function ask(held, signal) {
    const timer = setTimeout(() => lose('no answer'), ANSWER_MS)
    try {
      return await answerTo(held, signal)
    } finally {
      // A timer that goes on would keep the answer.
      clearTimeout(timer)
    }
  }

  /** @param {any} held @param {AbortSignal} signal */
  async function answerTo({ id, key, version, order: shown, cursor: after }, signal) {
    const isFirst = after === undefined
    const path = isFirst ? `values/${pathOf(key)}` : `wait/${pathOf(key)}?after=${version}&cursor=${after}`
    const headers = isFirst && version !== undefined ? { 'if-none-match': `"${version}"` } : undefined
    const response = await fetch(addressOf(url, path), { headers, signal })
    const { status } = response
    const cursor = response.headers.get('keycast-cursor') ?? undefined
    // A sign of life: a ping would wait for one of the few connections that a page has over HTTP/1.1.
    if (status === 204 && cursor) return { cursor, frame: '{"type":"pong"}' }
    if (!response.ok && status !== 304) {
      const { code = 'backend_unreachable', ...rest } = await problemOf(response)
      return { problem: { code, ...rest } }
    }
    const bytes = new Uint8Array(await response.arrayBuffer())
    /** The first number of a cursor. @type {any} */
    const came = cursor && parseInt(cursor, 10)
    // Another gateway gives what it has in memory. A request that waits has it look for what is newer than what was shown.
    const isOlder = came < shown
    const order = isOlder ? shown : came
    const next = { cursor: cursor?.replace(/\d+/, order), order }
    if (status === 304 || isOlder) {
      return { ...next, frame: JSON.stringify({ type: 'current', id, key, version, order }) }
    }
    const newer = /"(.*)"/.exec(response.headers.get('etag') ?? '')?.[1]
    // Somebody on the way answers in the gateway's place, as where one has to sign in to a network.
    if (newer === undefined) return { problem: { code: 'backend_unreachable', message: noGateway } }
    const head = { type: 'value', id, key, version: newer, order, contentType: response.headers.get('content-type') }
    return { ...next, version: newer, frame: joined(head, bytes) }
  }

  /** @param {any} message */
  async function get(message) {
    const { id, key } = message
    const { frame, problem } = await ask(message, session.signal)
    if (frame) hear(frame)
    else sayError({ id, key, subscribed: watches.has(key), ...problem })
  }

  /** @param {any} message */
  function subscribe({ id, keys }) {
    /** @type {any[]} */
    const entries = keys.map((/** @type {any} */ entry) => (typeof entry === 'string' ? { key: entry } : entry))
    const isRoom = (/** @type {any} */ { after, last, presence }) => after || last || presence
    // Names none: a key may be a room's, which would end for good where it were named as a value's is.
    say({ type: 'subscribed', id, keys: [] })
    for (const entry of entries) {
      if (isRoom(entry)) sayError({ id, key: entry.key, ...noRooms })
      else watch(entry)
    }
  }

  return {
    send(text) {
      const message = JSON.parse(text)
      const { type, id, key, keys } = message
      if (type === 'subscribe') return subscribe(message)
      if (type === 'get') return void get(message).catch(error => lose(String(error)))
      if (type === 'ping') return sayIfReached({ type: 'pong', id, count: 0 })
      if (type === 'auth') return lose(noRooms.message, true)
      if (type !== 'unsubscribe') return sayError({ id, key, subscribed: watches.has(key), ...noRooms })
      for (const each of keys) {
        watches.get(each)?.abort()
        watches.delete(each)
      }
      say({ type: 'ok', id })
    },
    close,
  }
}
