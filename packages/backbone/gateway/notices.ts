// Notices to one node: each is repeated after a loss until the node has heard it, and is done then. A notice may be
// heard twice.
import { createUniqueQueue, type UniqueQueue } from '@keycast/service'

/** `number` 0: not said in this incarnation of the link. */
interface Pending<N> {
  notice: N
  done: () => void
  number: number
}

export function createNotices<N>() {
  const pending = new Set<Pending<N>>()
  /** Notices not sent in this incarnation. */
  let unsaid: UniqueQueue<Pending<N>> = createUniqueQueue()

  return {
    startAnew() {
      for (const each of pending) each.number = 0
      unsaid = createUniqueQueue(pending)
    },
    /** @returns takes it back, if it was not sent yet */
    add(notice: N, done: () => void): () => void {
      const added = { notice, done, number: 0 }
      pending.add(added)
      unsaid.add(added)
      return () => {
        pending.delete(added)
        unsaid.delete(added)
      }
    },
    /** @param nextNumber called once for each request */
    *nextRequests(nextNumber: () => number) {
      const next = unsaid.take() // one each time, so that wants get their turn
      if (!next) return
      next.number = nextNumber()
      yield { number: next.number, saying: { type: 'notice' as const, notice: next.notice } }
    },
    /** The node has heard the first `reached` requests. */
    confirm(reached: number) {
      for (const each of pending) {
        if (each.number === 0 || each.number > reached) continue
        pending.delete(each)
        each.done()
      }
    },
    isAllSaid: () => unsaid.size === 0,
  }
}
