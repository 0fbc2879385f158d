// The sessions there are: how one begins, how it ends, and in which order they get their pings.
import { closeCodes } from '@keycast/protocol'
import { countOne } from '../metrics.js'
import { createSession } from './session.js'

/**
 * @typedef {import('@keycast/protocol').ControlMessage} ControlMessage
 * @typedef {import('../transport/transport.js').Transport} Transport
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

  /** @type {import('../transport/transport.js').TransportEvents} */
  const events = {
    onMessage: receive.message,
    onPing: receive.ping,
    onPong(session) {
      session.heard = true
    },
    onDrain: outbox.drained,
    onClose(session, code) {
      detach(session)
      slices[session.slice].delete(session)
      size--
      countOne(counts.closed, session.endReason ?? reasonOf(code))
    },
  }

  /**
   * Makes a session of a connection.
   *
   * @param {Transport} transport open
   */
  function open(transport) {
    const session = createSession(transport, { ...atStart, nowMs: now(), slice: opened++ % SLICES })
    slices[session.slice].add(session)
    size++
    transport.serve(session, events)
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
    session.transport.close(code, doc)
    // It may go on sending at full speed. Unread that costs nothing, but the answer to the close is not read either.
    if (name === 'abusive') session.transport.pause()
    if (name === 'abusive' || isUrgent) setTimeout(() => session.transport.terminate(), LAST_WORDS_MS).unref()
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
    session.transport.terminate()
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
