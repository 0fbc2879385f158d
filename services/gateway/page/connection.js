// One WebSocket that comes back by itself: connects, notices silence, and after a loss waits with full jitter.
import { closeCodes } from './protocol-codes.js'

/**
 * @typedef {{ name: 'connecting' }
 *   | { name: 'live', session: string, sinceMs: number }
 *   | { name: 'waiting', untilMs: number, reason: string }
 *   | { name: 'stopped', reason: string }} ConnectionState times are those of `now`
 *
 * @typedef {object} Connection
 * @property {(message: object) => void} send dropped while not live: whoever is told of `live` says its state again
 * @property {() => void} connectNow starts, or ends a wait or a stop
 * @property {() => void} check asks for a sign of life now: the network or the machine just came back
 * @property {() => ConnectionState} state
 */

/** The first wait is at most this long, doubled with each failure; how long it is within that is chance. */
const BACKOFF_FIRST_MS = 500

/** A person who looks at the page does not wait half a minute for a gateway that is back. */
const BACKOFF_MAX_MS = 10_000

/** A connection has to last this long before failures count from zero again: one that is accepted and dropped does not. */
const STEADY_MS = 5_000

/** A handshake that takes longer has been swallowed. */
const CONNECT_TIMEOUT_MS = 10_000

/** Browsers show no WebSocket pings, so silence is noticed by asking. */
const PONG_TIMEOUT_MS = 10_000
const HEARTBEAT_DEFAULT_MS = 25_000

const finalCodes = new Map(
  Object.values(closeCodes)
    .filter(({ reconnect }) => !reconnect)
    .map(({ code, doc }) => [code, doc]),
)

/**
 * @param {object} options
 * @param {string} options.url
 * @param {(state: ConnectionState) => void} options.onState
 * @param {(message: any, text: string) => void} options.onMessage every message but those that are the connection's own
 * @param {any} [options.WebSocket]
 * @param {() => number} [options.random] 0 to 1
 * @param {() => number} [options.now] milliseconds
 * @param {{ set: (task: () => void, ms: number) => any, clear: (timer: any) => void }} [options.timers]
 * @returns {Connection}
 */
export function createConnection({
  url,
  onState,
  onMessage,
  WebSocket = globalThis.WebSocket,
  random = Math.random,
  now = () => performance.now(),
  timers = { set: (task, ms) => setTimeout(task, ms), clear: timer => clearTimeout(timer) },
}) {
  /** @type {ConnectionState} */
  let state = { name: 'stopped', reason: 'not started' }
  /** @type {any} */
  let socket
  let failures = 0
  let heartbeatMs = HEARTBEAT_DEFAULT_MS
  /** When the gateway wants us back, once it said it is closing. @type {number | undefined} */
  let returnAtMs
  /** The one thing waited for: the handshake, the next ping, its pong, or the end of a wait. @type {any} */
  let timer

  /** @param {() => void} task @param {number} ms */
  const after = (task, ms) => {
    timers.clear(timer)
    timer = timers.set(task, ms)
  }

  /** @param {ConnectionState} next */
  const become = next => {
    state = next
    onState(state)
  }

  const connect = () => {
    drop()
    returnAtMs = undefined
    const opened = new WebSocket(url, 'keycast.v1.json')
    socket = opened
    // A socket that was given up may still speak: it is no longer ours.
    const ours = (/** @type {(event: any) => void} */ listener) => (/** @type {any} */ event) => {
      if (socket === opened) listener(event)
    }
    opened.onmessage = ours(({ data }) => receive(data))
    opened.onclose = ours(({ code, reason }) => lost(code, reason))
    after(() => lost(undefined, 'no answer to the handshake'), CONNECT_TIMEOUT_MS)
    become({ name: 'connecting' })
  }

  const drop = () => {
    const old = socket
    socket = undefined
    timers.clear(timer)
    old?.close()
  }

  /** @param {string} text */
  const receive = text => {
    const message = JSON.parse(text)
    switch (message.type) {
      case 'welcome':
        heartbeatMs = message.heartbeatMs || HEARTBEAT_DEFAULT_MS
        after(ask, heartbeatMs)
        return become({ name: 'live', session: message.session, sinceMs: now() })
      case 'pong':
        if (returnAtMs === undefined) after(ask, heartbeatMs)
        return
      case 'closing':
        returnAtMs = now() + message.reconnectAfterMs
        return after(connect, message.reconnectAfterMs)
      default:
        return onMessage(message, text)
    }
  }

  const ask = () => {
    send({ type: 'ping' })
    after(() => lost(undefined, 'the connection went silent'), PONG_TIMEOUT_MS)
  }

  /** @param {number | undefined} code @param {string} reason */
  const lost = (code, reason) => {
    const lastedMs = state.name === 'live' ? now() - state.sinceMs : 0
    if (lastedMs >= STEADY_MS) failures = 0
    drop()
    const final = code === undefined ? undefined : finalCodes.get(code)
    if (final) return become({ name: 'stopped', reason: reason || final })

    const waitMs =
      returnAtMs === undefined
        ? random() * Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** failures)
        : Math.max(0, returnAtMs - now())
    failures += 1
    after(connect, waitMs)
    become({ name: 'waiting', untilMs: now() + waitMs, reason: reason || 'the connection was lost' })
  }

  /** @param {object} message */
  const send = message => {
    if (state.name === 'live') socket.send(JSON.stringify(message))
  }

  return {
    send,
    connectNow: () => {
      if (state.name === 'waiting' || state.name === 'stopped') connect()
    },
    check: () => {
      if (state.name === 'waiting') connect()
      else if (state.name === 'live' && returnAtMs === undefined) ask()
    },
    state: () => state,
  }
}
