// Gathers the messages of one turn of the event loop: many of ours leave as one of ZeroMQ's.
import type { World } from '@keycast/service'
import { MESSAGES_MAX } from './messages.ts'

/**
 * @param send called at the end of the turn, as often as needed, with {@link MESSAGES_MAX} items for one receiver at
 *   most
 */
export function batchPerTurn<T, To = undefined>(turn: World['turn'], send: (items: T[], to: To) => void) {
  let gathered = new Map<To, T[]>()

  function flush() {
    const batches = gathered
    gathered = new Map()
    for (const [to, items] of batches) {
      for (let at = 0; at < items.length; at += MESSAGES_MAX) send(items.slice(at, at + MESSAGES_MAX), to)
    }
  }

  return {
    add(item: T, to: To) {
      if (gathered.size === 0) turn(flush)
      const items = gathered.get(to)
      if (items) items.push(item)
      else gathered.set(to, [item])
    },
  }
}
