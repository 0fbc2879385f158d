// What is to be sent within a turn of the event loop, gathered: one ZeroMQ message for many of ours.
import { MESSAGES_MAX } from './messages.js'

/**
 * @template T
 * @param {(items: T[]) => void} send is called at the end of the turn, with {@link MESSAGES_MAX} items at most, as often as needed
 */
export function batchPerTurn(send) {
  /** @type {T[]} */
  let waiting = []

  function flush() {
    const items = waiting
    waiting = []
    for (let at = 0; at < items.length; at += MESSAGES_MAX) send(items.slice(at, at + MESSAGES_MAX))
  }

  return {
    /** @param {T} item */
    add(item) {
      if (waiting.length === 0) setImmediate(flush)
      waiting.push(item)
    },
  }
}
