// One WebSocket that comes back by itself: it connects, notices silence, and waits with jitter after a loss.
import { createAuth } from './auth.js'
import { backoffMs } from './backoff.js'
import { finalCloseCodes } from './codes.js'
import { readFrame } from './frames.js'

/**
 * @typedef {import('../environment.js').Environment} Environment
 * @typedef {{ messageBytes: number, keysPerSession: number, requestsPerSecond: number }} Limits
 */

/**
 * The state of the connection. `retryAt` is in milliseconds since 1970; `reason` is for people to read. After `closed`
 * with a close code the gateway refuses this client for good; with an error code the client has no token; without a
 * code, `close()` was called.
 *
 * @typedef {{ name: 'connecting' }
 *   | { name: 'open', session: string, user?: string }
 *   | { name: 'waiting', retryAt: number, reason: string }
 *   | { name: 'offline', reason: string }
 *   | { name: 'closed', reason: string, code?: number | import('./codes.js').ErrorCode }} ConnectionState
 */

/**
 * A connection must last this long before failures count from zero: one that is accepted and dropped must not reset
 * them.
 */
const STEADY_MS = 5_000

/** A handshake that takes longer was swallowed on the way. */
const HANDSHAKE_MS = 10_000

/** From a pong to the next ping at least: with a heartbeat that is none they would follow each other without end. */
const QUIET_MS = 250

/** Browsers show no WebSocket pings, so a silent connection is asked for a sign of life. */
const PONG_MS = 10_000

/**
 * A large value on a slow line keeps all else back until it is whole. So after each connection that was given up for its
 * silence the next one is pinged twice as often in a row, so many times at most: else no connection would ever bring it.
 */
const PINGS_MAX = 8

/** A user who returns to the page is looking at it: a connection that died meanwhile is found out sooner. */
const WAKE_PONG_MS = 3_000

/** A gateway closes a session without a valid token with this code. */
const UNAUTHENTICATED = 4001

/**
 * A client closes a session with these codes: for good, or to go on in another. With the second code it leaves no room
 * that it joined.
 */
const DONE = 1000
const MOVED = 4000

/**
 * @param {object} deps
 * @param {string} deps.url
 * @param {Environment} deps.environment
 * @param {() => import('../timers.js').Alarm} deps.createAlarm
 * @param {import('./auth.js').Token} [deps.token]
 * @param {import('../client.js').Link} deps.link
 * @param {import('../client.js').Part[]} deps.parts
 * @param {(state: ConnectionState) => void} deps.onState
 */
export function createConnection({ url, environment, createAlarm, token, link, parts, onState }) {
  const { now, date, random, isOffline } = environment
  const alarm = createAlarm()
  const auth =
    token === undefined
      ? undefined
      : createAuth({ token, environment, alarm: createAlarm(), send: transmit, open, end })
  /** @type {ConnectionState} */
  let state = { name: 'connecting' }
  /** @type {import('../environment.js').Socket | undefined} */
  let socket
  /** The first message of the session. @type {any} */
  let welcome
  /** The user of the sessions before: their values must not be resumed for another user. @type {string | undefined} */
  let firstUser
  let failures = 0
  let openedAtMs = 0
  let heardAtMs = 0
  /** The time left for an unanswered ping; 0 if there is none. */
  let pongMs = 0
  /** Those without an answer, and how many there may be. */
  let pings = 0
  let pingsMax = 1
  /** The time at which the gateway wants its clients back, after it announced its end; else 0. */
  let returnAtMs = 0

  /** @param {ConnectionState} next */
  function become(next) {
    state = next
    onState(next)
  }

  function connect() {
    if (drop()) return
    returnAtMs = 0
    welcome = undefined
    limit('no token', HANDSHAKE_MS)
    become({ name: 'connecting' })
    // A listener may have closed it.
    if (!isUp()) return
    // The token goes first: a gateway soon closes a connection that sends none.
    if (auth) auth.obtain(dial, lost)
    else dial()
  }

  /** @param {string} reason @param {number} ms after which the connection is given up for it */
  function limit(reason, ms) {
    alarm.set(() => lost(reason), ms)
  }

  function dial() {
    /** @type {import('../environment.js').Socket} */
    let opened
    try {
      opened = new environment.WebSocket(url, 'keycast.v1.bytes')
    } catch (error) {
      // Firefox throws where a page's policy names no WebSockets.
      return lost(String(error))
    }
    let why = 'the connection was lost'
    opened.binaryType = 'arraybuffer'
    socket = opened
    // A socket that was given up may still send: its messages belong to an earlier session.
    opened.onmessage = ({ data }) => {
      if (socket === opened) receive(data)
    }
    // `atOnce`: there is a better way. No gateway says so.
    opened.onclose = ({ code, reason, atOnce }) => {
      if (socket === opened) lost(reason || why, code, atOnce)
    }
    // `close` follows, and knows less; without a listener `ws` would throw. Browsers do not tell the cause.
    opened.onerror = ({ message }) => {
      why = message || why
    }
    limit('no answer', HANDSHAKE_MS)
  }

  /** @param {number} [code] @returns {boolean} whether a listener that heard of the loss has closed the client */
  function drop(code = MOVED) {
    const before = state
    const old = socket
    socket = undefined
    pongMs = pings = 0
    alarm.clear()
    auth?.lost()
    old?.close(code)
    link.session = {}
    // The first call comes before there was anything to lose.
    link.isOffline = link.isOffline !== undefined
    // Also ends the session if the gateway is closing and the client leaves it: requests under way there are sent to
    // the next one.
    for (const part of parts) part.lost()
    return state !== before
  }

  /** @param {string | ArrayBuffer} data */
  function receive(data) {
    try {
      take(readFrame(data))
    } catch (error) {
      // Thrown further it would end a Node process, or leave a connection that looks open and is told half. A listener
      // may have closed the client before.
      if (socket) lost(`unreadable: ${error}`)
    }
  }

  /** @param {{ message: any, bytes?: Uint8Array }} frame */
  function take({ message, bytes }) {
    heardAtMs = now()
    if (pongMs > 0) {
      if (pings === 1) pingsMax = 1
      pongMs = pings = 0
      alarm.set(listen, QUIET_MS)
    }
    const { type, user, reconnectAfterMs } = message
    if (type === 'welcome') {
      welcome = message
      // A limit that is no number must fail here, where it is caught: parts compare with limits in turns of their own.
      for (const name in welcome.limits) welcome.limits[name] *= 1
      if (auth) auth.say()
      else open(user)
    } else if (type === 'closing') {
      settle()
      // A gateway that says so as each session begins would be dialled without end.
      const waitMs = Math.max(+reconnectAfterMs || 0, failures && backoffMs(random, failures))
      failures += 1
      returnAtMs = now() + waitMs
      alarm.set(connect, waitMs)
    } else {
      auth?.receive(message)
      // No part takes a message for this file alone, such as a pong.
      parts.some(part => part.receive(message, bytes))
    }
  }

  /** @param {string} [user] */
  function open(user) {
    firstUser ??= user
    if (user !== firstUser) return end('other user', 'other_user')
    // A token that was renewed changes nothing else.
    if (state.name === 'open') return
    openedAtMs = now()
    link.isOffline = false
    listen()
    become({ name: 'open', session: welcome.session, user })
    // A listener may have closed it.
    if (socket) for (const part of parts) part.opened(welcome.limits)
  }

  /** Asks for a sign of life after a heartbeat without any message. */
  function listen() {
    const restMs = heardAtMs + welcome.heartbeatMs - now()
    if (restMs > 0) alarm.set(listen, restMs)
    else ask(PONG_MS)
  }

  function probe() {
    if (state.name === 'open' && !returnAtMs && pongMs !== WAKE_PONG_MS) ask(WAKE_PONG_MS)
  }

  /** @param {number} limitMs */
  function ask(limitMs) {
    pongMs = limitMs
    pings += 1
    alarm.set(silent, limitMs)
    send({ type: 'ping', id: 'ping' })
  }

  function silent() {
    // A user is looking at the page: a random wait would only add to the 3 s.
    if (pongMs === WAKE_PONG_MS) return lost('no answer', undefined, !isOffline())
    if (pings < pingsMax) return ask(PONG_MS)
    pingsMax = Math.min(2 * pingsMax, PINGS_MAX)
    lost('no answer')
  }

  function settle() {
    if (state.name === 'open' && now() - openedAtMs >= STEADY_MS) failures = 0
  }

  /** @param {string} reason @param {number} [code] @param {boolean} [atOnce] whether to connect without a wait */
  function lost(reason, code, atOnce) {
    settle()
    if (finalCloseCodes.includes(code)) return end(reason, code)
    if (drop()) return
    if (code === UNAUTHENTICATED) auth?.forget()
    if (atOnce) return connect()
    wait(reason)
  }

  /** @param {string} reason */
  function wait(reason) {
    if (isOffline()) return become({ name: 'offline', reason })
    let waitMs = returnAtMs - now()
    if (!returnAtMs) {
      waitMs = backoffMs(random, failures)
      // A try that nobody served costs little: after an outage of seconds clients are back within seconds.
      failures += welcome ? 1 : 0.5
    }
    alarm.set(connect, waitMs)
    become({ name: 'waiting', retryAt: Math.round(date() + waitMs), reason })
  }

  /** @param {string} reason @param {number | import('./codes.js').ErrorCode} [code] */
  function end(reason, code) {
    auth?.forget()
    if (!drop(DONE)) become({ name: 'closed', reason, code })
  }

  /** @param {object} message */
  function transmit(message) {
    socket?.send(JSON.stringify(message))
  }

  /** @param {object} message dropped if the connection is not open: the next session is told all of it anew */
  function send(message) {
    if (state.name === 'open') transmit(message)
  }

  /** Also runs while a token is fetched, and there is no socket yet. */
  const isUp = () => state.name === 'connecting' || state.name === 'open'

  return {
    connect,
    send,
    isUp,
    state: () => state,
    /** The page is seen again, or the network is back. */
    wake() {
      auth?.wake()
      if (state.name === 'waiting' || (state.name === 'offline' && !isOffline())) {
        const restMs = returnAtMs - now()
        if (restMs <= 0) connect()
        else alarm.set(connect, restMs)
      } else probe()
    },
    /** The page is left. A browser that keeps it, for the way back, keeps no connection with it. */
    leave() {
      if (isUp() && !drop(DONE)) wait('left')
    },
    /** The browser says that there is no network. */
    offline() {
      probe()
      if (state.name !== 'waiting') return
      alarm.clear()
      wait(state.reason)
    },
    close: end,
  }
}
