// The sessions there are: how one begins, how it ends, and in which order they get their pings.
import { closeCodes } from '@keycast/protocol'
import { countOne } from '../metrics.js'
import { onDrain, sessionOf } from '../transport/websocket.js'
import { createSession } from './session.js'

/**
 * @typedef {import('@keycast/protocol').ControlMessage} ControlMessage
 * @typedef {import('ws').WebSocket} WebSocket
 * @typedef {import('../transport/websocket.js').SessionSocket} SessionSocket
 * @typedef {import('../delivery/outbox.js').CloseCode} CloseCode
 * @typedef {import('./session.js').Session} Session
 * @typedef {ReturnType<typeof createSessions>} Sessions
 */

/** Sessions are pinged in so many slices over the heartbeat, so that no turn of the loop pings thousands. */
export const SLICES = 25

/** How long a client that is no longer read, or holds memory that others need, has to read why. */
const LAST_WORDS_MS = 1_000

/**
 * @param {object} deps
 * @param {Pick<import('../delivery/outbox.js').Outbox, 'send' | 'drained' | 'discard'>} deps.outbox
 * @param {Pick<import('../keys/subscriptions.js').Subscriptions, 'drop'>} deps.subscriptions
 * @param {Pick<ReturnType<typeof import('./receive.js').createReceive>, 'message' | 'ping'>} deps.receive
 * @param {{ tokens: number, keyTokens: number }} deps.atStart what it may ask, see limits.js
 * @param {Omit<Extract<ControlMessage, { type: 'welcome' }>, 'type' | 'session'>} deps.welcome
 * @param {import('../metrics.js').Counts} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createSessions({ outbox, subscriptions, receive, atStart, welcome, counts, now }) {
  /** @type {Set<Session>[]} */
  const slices = Array.from({ length: SLICES }, () => new Set())
  let opened = 0
  let size = 0

  // These serve all connections: `this` is the one concerned, and has the session. Idle ones shall cost little.

  /** @this {WebSocket} @param {import('ws').RawData} data @param {boolean} isBinary */
  function onMessage(data, isBinary) {
    const session = sessionOf(this)
    // A Buffer, for that is what a connection's binaryType makes of it unless told otherwise.
    if (session) receive.message(session, /** @type {Buffer} */ (data), isBinary)
  }

  /** @this {WebSocket} @param {Buffer} payload */
  function onPing(payload) {
    const session = sessionOf(this)
    if (session) receive.ping(session, payload)
  }

  /** @this {WebSocket} */
  function onPong() {
    const session = sessionOf(this)
    if (session) session.heard = true
  }

  /** @this {WebSocket} @param {number} code */
  function onClose(code) {
    const session = sessionOf(this)
    if (!session) return
    detach(session)
    slices[session.slice].delete(session)
    size--
    countOne(counts.closed, session.endReason ?? reasonOf(code))
  }

  /**
   * Makes a session of a connection.
   *
   * @param {SessionSocket} ws open
   */
  function open(ws) {
    const session = createSession(ws, { ...atStart, nowMs: now(), slice: opened++ % SLICES })
    ws.session = session
    slices[session.slice].add(session)
    size++
    ws.on('message', onMessage)
    ws.on('ping', onPing)
    ws.on('pong', onPong)
    ws.on('close', onClose)
    // What a client gets wrong at this level ws answers with a close; the event after it is the close.
    ws.on('error', ignore)
    onDrain(ws, outbox.drained)
    outbox.send(session, { type: 'welcome', session: session.id, ...welcome })
  }

  /**
   * Ends a session now and closes its connection. What is queued for it is dropped: to have that written first, use the
   * outbox.
   *
   * @param {Session} session
   * @param {CloseCode} name
   * @param {boolean} [isUrgent] whether what its socket still holds must soon be gone
   */
  function end(session, name, isUrgent = false) {
    if (session.ended) return
    session.endReason = name
    detach(session)
    const { code, doc } = closeCodes[name]
    session.ws.close(code, doc)
    // It may go on sending at full speed. Unread that costs nothing, but the answer to the close is not read either.
    if (name === 'abusive') session.ws.pause()
    if (name === 'abusive' || isUrgent) setTimeout(() => session.ws.terminate(), LAST_WORDS_MS).unref()
  }

  /**
   * Cuts a connection that is beyond words.
   *
   * @param {Session} session
   * @param {string} reason for the metrics
   */
  function terminate(session, reason) {
    session.endReason ??= reason
    detach(session)
    session.ws.terminate()
  }

  /** @param {Session} session */
  function detach(session) {
    if (session.ended) return
    session.ended = true
    subscriptions.drop(session)
    outbox.discard(session)
  }

  function* all() {
    for (const slice of slices) yield* slice
  }

  return { open, end, terminate, all, slices, size: () => size }
}

function ignore() {}

/** @param {number} code a connection was closed with, not by this gateway's own decision */
function reasonOf(code) {
  switch (code) {
    case 1006:
      return 'lost'
    case 1007:
      return 'badUtf8'
    case 1009:
      return 'tooBig'
    case 1002:
    case 1008:
      return 'protocol'
    default:
      return 'client'
  }
}
