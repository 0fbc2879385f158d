// Answers pings, which clients use to measure: the cheapest request there is, so the text is put together, not encoded.
import { encode } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/protocol').Ping} Ping
 * @typedef {import('../sessions/session.ts').Session} Session
 */

/** A pong's text around its numbers, as the protocol spells it. */
const [start, middle, end] = encode({ type: 'pong', id: 111, count: 222 }).split(/111|222/)
const [startWithoutId] = encode({ type: 'pong', count: 222 }).split('222')

/** @param {Pick<import('./index.ts').HandlerDeps, 'outbox'>} deps */
export const createPing = ({ outbox }) => {
  let count = 0

  /**
   * @param {Session} session
   * @param {Ping} message
   */
  return function ping(session, { id }) {
    count++
    const head = id === undefined ? startWithoutId : start + idText(id) + middle
    outbox.sendText(session, 'pong', head + count + end)
  }
}

/** @param {import('@keycast/protocol').RequestId} id */
function idText(id) {
  return typeof id === 'number' ? `${id}` : JSON.stringify(id)
}
