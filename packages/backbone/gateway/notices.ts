// Notices to one node: each is repeated after a loss until the node has heard it, and is done then. A notice may be
// heard twice.
import { createUniqueQueue } from '@keycast/service'

/**
 * @template N
 * @typedef {{ notice: N, done: () => void, number: number }} Pending `number` 0: not said in this incarnation of the
 *   link
 */

/** @template N */
export function createNotices() {
  /** @type {Set<Pending<N>>} */
  const pending = new Set()
  /** Notices not sent in this incarnation. @type {import('@keycast/service').UniqueQueue<Pending<N>>} */
  let unsaid = createUniqueQueue()

  return {
    startAnew() {
      for (const each of pending) each.number = 0
      unsaid = createUniqueQueue(pending)
    },
    /** @param {N} notice @param {() => void} done @returns {() => void} takes it back, if it was not sent yet */
    add(notice, done) {
      const added = { notice, done, number: 0 }
      pending.add(added)
      unsaid.add(added)
      return () => {
        pending.delete(added)
        unsaid.delete(added)
      }
    },
    /** @param {() => number} nextNumber called once for each request */
    *nextRequests(nextNumber) {
      const next = unsaid.take() // one each time, so that wants get their turn
      if (!next) return
      next.number = nextNumber()
      yield { number: next.number, saying: { type: /** @type {const} */ ('notice'), notice: next.notice } }
    },
    /** The node has heard the first `reached` requests. @param {number} reached */
    confirm(reached) {
      for (const each of pending) {
        if (each.number === 0 || each.number > reached) continue
        pending.delete(each)
        each.done()
      }
    },
    isAllSaid: () => unsaid.size === 0,
  }
}
