// Flushes sessions once per turn of the event loop, however much was queued for them in it.
import type { Session } from '../sessions/session.ts'

/** Sessions are written to for at most this long at a time: a fan-out to thousands must not delay other events. */
const TURN_MS_MAX = 5

/** The clock is read once in so many flushes: one takes 10 µs. */
const FLUSHES_PER_LOOK = 8

interface Deps {
  flush: (session: Session) => void
  /** Monotonic, in milliseconds. */
  now: () => number
  /** Runs it once what came in during this turn was read. */
  nextTurn?: (run: () => void) => void
}

export function createFlusher({ flush, now, nextTurn = setImmediate }: Deps) {
  let queue: Session[] = []
  let next = 0
  let scheduled = false
  /** Sessions ever marked, and flushed. */
  let marked = 0
  let flushed = 0
  const fences: { after: number; reached: () => void }[] = []

  /** The session has something to write. */
  function mark(session: Session) {
    if (session.dirty) return
    session.dirty = true
    marked++
    queue.push(session)
    schedule()
  }

  /** Calls back once every session marked so far was flushed. */
  function fence(reached: () => void) {
    fences.push({ after: marked, reached })
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
    while (next < queue.length) {
      const session = queue[next++]
      flushed++
      session.dirty = false
      flush(session)
      if (next % FLUSHES_PER_LOOK === 0 && now() - startMs >= TURN_MS_MAX) break
    }
    if (next === queue.length) {
      queue = []
      next = 0
    } else if (next > 1_000) {
      queue = queue.slice(next)
      next = 0
    }
    while (fences.length > 0 && fences[0].after <= flushed) fences.shift()?.reached()
    if (next < queue.length) schedule()
  }

  return { mark, fence }
}
