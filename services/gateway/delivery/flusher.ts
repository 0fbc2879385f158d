// Flushes sessions once per turn of the event loop, however much was queued for them in it.
import { createFifo, FLOW_MS } from '@keycast/service'
import type { Session } from '../sessions/session.ts'

/** The clock is read once in so many flushes: one takes 10 µs. */
const FLUSHES_PER_LOOK = 8

interface Deps {
  flush: (session: Session) => void
  /** Runs it once what came in during this turn was read. */
  nextTurn: (run: () => void) => void
  now: () => number
}

export function createFlusher({ flush, now, nextTurn }: Deps) {
  const queue = createFifo<Session>()
  let scheduled = false
  /** Sessions ever marked. */
  let marked = 0
  const fences = createFifo<{ after: number; reached: () => void }>()

  /** The session has something to write. */
  function mark(session: Session) {
    if (session.dirty) return
    session.dirty = true
    marked++
    queue.add(session)
    schedule()
  }

  /** Calls back once every session marked so far was flushed. */
  function fence(reached: () => void) {
    fences.add({ after: marked, reached })
    schedule()
  }

  function schedule() {
    if (scheduled) return
    scheduled = true
    nextTurn(turn)
  }

  function turn() {
    scheduled = false
    const startMs = now()
    let flushes = 0
    for (let session = queue.take(); session; session = queue.take()) {
      session.dirty = false
      flush(session)
      if (++flushes % FLUSHES_PER_LOOK === 0 && now() - startMs >= FLOW_MS) break
    }
    const flushed = marked - queue.size
    for (let fence = fences.first(); fence && fence.after <= flushed; fence = fences.first()) {
      fences.take()
      fence.reached()
    }
    if (queue.size > 0) schedule()
  }

  return { mark, fence }
}
