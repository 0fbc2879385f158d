// Gathers what is sent within a turn of the event loop: many of our messages go out as one of ZeroMQ's.
import { MESSAGES_MAX } from './messages.js'

/**
 * @template T
 * @param {(items: T[]) => void} send called at the end of the turn, as often as needed, with {@link MESSAGES_MAX} items at most
 */
export function batchPerTurn(send) {
  /** @type {T[]} */
  let gathered = []

  function flush() {
    const items = gathered
    gathered = []
    for (let at = 0; at < items.length; at += MESSAGES_MAX) send(items.slice(at, at + MESSAGES_MAX))
  }

  return {
    /** @param {T} item */
    add(item) {
      if (gathered.length === 0) setImmediate(flush)
      gathered.push(item)
    },
  }
}
