// Gathers the messages of one turn of the event loop: many of ours leave as one of ZeroMQ's.
import { MESSAGES_MAX } from './messages.ts'

/**
 * @template T
 * @template [To=undefined]
 * @param {(items: T[], to: To) => void} send called at the end of the turn, as often as needed, with {@link MESSAGES_MAX} items
 *   for one receiver at most
 */
export function batchPerTurn(send) {
  /** @type {Map<To, T[]>} */
  let gathered = new Map()

  function flush() {
    const batches = gathered
    gathered = new Map()
    for (const [to, items] of batches) {
      for (let at = 0; at < items.length; at += MESSAGES_MAX) send(items.slice(at, at + MESSAGES_MAX), to)
    }
  }

  return {
    /** @param {T} item @param {To} to */
    add(item, to) {
      if (gathered.size === 0) setImmediate(flush)
      const items = gathered.get(to)
      if (items) items.push(item)
      else gathered.set(to, [item])
    },
  }
}
