// One WebSocket that comes back by itself: it connects, notices silence, and waits with jitter after a loss.
import { finalCloseCodes } from './codes.js'
import { readFrame } from './frames.js'

/**
 * @typedef {import('../environment.js').Environment} Environment
 * @typedef {{ messageBytes: number, keysPerSession: number, requestsPerSecond: number }} Limits
 *
 * How the connection stands. `retryAt` is in milliseconds since 1970; `reason` is for people to read. After `closed` with
 * a `code` the gateway wants this client back no more; without one, `close()` was called.
 * @typedef {{ name: 'connecting' }
 *   | { name: 'open', session: string }
 *   | { name: 'waiting', retryAt: number, reason: string }
 *   | { name: 'offline', reason: string }
 *   | { name: 'closed', reason: string, code?: number }} ConnectionState
 */

/** The first wait is at most this long, doubled with each failure; how long within that is chance. */
const BACKOFF_FIRST_MS = 1_000
const BACKOFF_MAX_MS = 30_000

/** A connection must last this long before failures count from zero: one that is accepted and dropped does not. */
const STEADY_MS = 5_000

/** A handshake that takes longer was swallowed on the way. */
const HANDSHAKE_MS = 10_000

/** Browsers show no WebSocket pings, so a silent connection is asked for a sign of life. */
const PONG_MS = 10_000

/** A person who comes back to the page is looking at it: a connection that died meanwhile is found out sooner. */
const WAKE_PONG_MS = 3_000

const HEARTBEAT_DEFAULT_MS = 25_000

/**
 * @param {object} deps
 * @param {string} deps.url
 * @param {Environment} deps.environment
 * @param {import('../timers.js').Alarm} deps.alarm
 * @param {(limits: Limits) => void} deps.onOpen requests may be sent from now on
 * @param {(message: any, bytes: Uint8Array | undefined) => void} deps.onMessage every message but the connection's own
 * @param {() => void} deps.onLost the session is gone, and with it what it was told
 * @param {(state: ConnectionState) => void} deps.onState
 */
export function createConnection({ url, environment, alarm, onOpen, onMessage, onLost, onState }) {
  const { now, date, random, isOffline } = environment
  /** @type {ConnectionState} */
  let state = { name: 'connecting' }
  /** @type {import('../environment.js').Socket | undefined} */
  let socket
  let failures = 0
  let heartbeatMs = HEARTBEAT_DEFAULT_MS
  let openedAtMs = 0
  let heardAtMs = 0
  /** How long a ping that is unanswered may take; 0 where none is. */
  let pongMs = 0
  /** When the gateway wants its clients back, once it said that it is closing. @type {number | undefined} */
  let returnAtMs

  /** @param {ConnectionState} next */
  function become(next) {
    state = next
    onState(next)
  }

  function connect() {
    drop()
    returnAtMs = undefined
    const opened = new environment.WebSocket(url, 'keycast.v1.bytes')
    opened.binaryType = 'arraybuffer'
    socket = opened
    // A socket that was given up may still speak: what it says is of an earlier session.
    opened.onmessage = ({ data }) => {
      if (socket === opened) receive(data)
    }
    opened.onclose = ({ code, reason }) => {
      if (socket === opened) lost(reason, code)
    }
    opened.onerror = () => {} // `close` follows; without a listener `ws` would throw
    alarm.set(() => lost('no answer to the handshake'), HANDSHAKE_MS)
    become({ name: 'connecting' })
  }

  function drop() {
    const old = socket
    socket = undefined
    pongMs = 0
    alarm.clear()
    old?.close()
  }

  /** @param {string | ArrayBuffer} data */
  function receive(data) {
    let frame
    try {
      frame = readFrame(data)
    } catch {
      return lost('the gateway sent what cannot be read')
    }
    const { message, bytes } = frame
    heardAtMs = now()
    if (pongMs > 0) {
      pongMs = 0
      listen(heartbeatMs)
    }
    switch (message.type) {
      case 'welcome':
        return welcome(message)
      case 'pong':
        return
      case 'closing':
        returnAtMs = now() + message.reconnectAfterMs
        return alarm.set(connect, message.reconnectAfterMs)
      default:
        return onMessage(message, bytes)
    }
  }

  /** @param {{ session: string, heartbeatMs: number, limits: Limits }} message */
  function welcome(message) {
    heartbeatMs = message.heartbeatMs || HEARTBEAT_DEFAULT_MS
    openedAtMs = now()
    listen(heartbeatMs)
    become({ name: 'open', session: message.session })
    // A listener may have closed it.
    if (state.name === 'open') onOpen(message.limits)
  }

  /** Asks for a sign of life once nothing was heard for a heartbeat. @param {number} ms until then, at the earliest */
  function listen(ms) {
    alarm.set(() => {
      const quietMs = now() - heardAtMs
      if (quietMs < heartbeatMs) listen(heartbeatMs - quietMs)
      else ask(PONG_MS)
    }, ms)
  }

  /** @param {number} limitMs */
  function ask(limitMs) {
    pongMs = limitMs
    send({ type: 'ping', id: 'ping' })
    alarm.set(() => {
      // A person is looking at the page: a random wait would only add to the 3 s.
      const atOnce = limitMs === WAKE_PONG_MS && !isOffline()
      lost('the connection went silent', undefined, atOnce)
    }, limitMs)
  }

  /** @param {string} reason @param {number} [code] @param {boolean} [atOnce] whether to connect without a wait */
  function lost(reason, code, atOnce = false) {
    if (state.name === 'open' && now() - openedAtMs >= STEADY_MS) failures = 0
    drop()
    onLost()
    if (code !== undefined && code in finalCloseCodes) {
      return become({ name: 'closed', reason: reason || finalCloseCodes[code], code })
    }
    if (atOnce) return connect()
    wait(reason || 'the connection was lost')
  }

  /** @param {string} reason */
  function wait(reason) {
    if (isOffline()) return become({ name: 'offline', reason })
    const waitMs =
      returnAtMs === undefined
        ? random() * Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** failures)
        : Math.max(0, returnAtMs - now())
    failures += 1
    alarm.set(connect, waitMs)
    become({ name: 'waiting', retryAt: date() + waitMs, reason })
  }

  /** @param {object} message is dropped where the connection is not open: the next session is told all of it anew */
  function send(message) {
    if (state.name === 'open') socket?.send(JSON.stringify(message))
  }

  return {
    connect,
    send,
    state: () => state,
    /** The page is seen again, or the network is back. */
    wake() {
      if (state.name === 'waiting' || (state.name === 'offline' && !isOffline())) {
        const restMs = returnAtMs === undefined ? 0 : returnAtMs - now()
        if (restMs <= 0) connect()
        else alarm.set(connect, restMs)
      } else if (state.name === 'open' && returnAtMs === undefined && pongMs !== WAKE_PONG_MS) ask(WAKE_PONG_MS)
    },
    /** The browser says that there is no network. */
    offline() {
      if (state.name === 'open' && returnAtMs === undefined && pongMs !== WAKE_PONG_MS) ask(WAKE_PONG_MS)
      if (state.name !== 'waiting') return
      alarm.clear()
      become({ name: 'offline', reason: state.reason })
    },
    /** @param {string} reason */
    close(reason) {
      drop()
      onLost()
      become({ name: 'closed', reason })
    },
  }
}
