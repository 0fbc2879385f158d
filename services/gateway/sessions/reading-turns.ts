// Which sessions are read on, of those that sent more at once than one turn of the event loop has time for. Ten thousand
// requests fit into one read, and hundreds of sockets may be readable at a time: gone through at once they would keep all
// others waiting for seconds, and the nodes would take this gateway for dead. So accounts take turns, and whoever sent one
// request is served in between.
import { accountsOf, createFairQueue, NO_LANE, type World } from '@keycast/service'
import type { Session } from './session.ts'

/**
 * Of a turn of the event loop: enough for a read of each of a hundred busy clients. To pause a socket and go on costs as much
 * as a few requests.
 */
const READING_MS = 20

export function createReadingTurns({ now, turn }: Pick<World, 'now' | 'turn'>) {
  /** Paused, with more to be read. */
  const waiting = createFairQueue<Session>()
  /** Until when sessions are read on in this turn; `undefined` before the first is. */
  let endsAtMs: number | undefined

  function begin(): number {
    turn(next)
    endsAtMs = now() + READING_MS
    return endsAtMs
  }

  function next() {
    endsAtMs = undefined
    if (waiting.size === 0) return
    const endMs = begin()
    do waiting.take()?.transport.readOn()
    while (waiting.size > 0 && now() < endMs)
  }

  return {
    /**
     * Whether a session of which more has come may be read on now. If not, it is to be paused: `readOn` is called when it
     * is its account's turn.
     */
    mayReadOn(session: Session): boolean {
      if (now() < (endsAtMs ?? begin())) return true
      waiting.add(session, session.payer === undefined ? NO_LANE : accountsOf(session.payer))
      return false
    },

    /** The session has ended: the answer to its close may stand behind what nobody reads any more. */
    forget(session: Session) {
      if (waiting.delete(session)) session.transport.readOn()
    },
  }
}
