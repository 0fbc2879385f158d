// Which sessions are read on, of those that sent more at once than one turn of the event loop has time for. Ten thousand
// requests fit into one read, and hundreds of sockets may be readable at a time: gone through at once they would keep all
// others waiting for seconds, and the nodes would take this gateway for dead. So accounts take turns, and whoever sent one
// request is served in between.
import { accountsOf, createFairQueue, FLOW_MS, NO_LANE, TURN_MS, type World } from '@keycast/service'
import type { Session } from './session.ts'

/**
 * So much more of one session of an account is read in a turn that is over, while that is not long ago. A client that has a
 * few requests under way would be answered them in two turns, send the next in two, and so on, and a message alone costs more
 * than one among others.
 */
const FEW_BYTES = 2 * 1_024

export function createReadingTurns({ now, turn }: Pick<World, 'now' | 'turn'>) {
  /** Paused, with more to be read. */
  const waiting = createFairQueue<Session>()
  /** Those of which a few more messages are read in this turn, by payer: one without a payer stands for itself. */
  const few = new Map<unknown, Session>()
  /** Until when sessions are read on in this turn; `undefined` before the first is. */
  let endsAtMs: number | undefined

  function begin(): number {
    turn(next)
    endsAtMs = now() + FLOW_MS
    return endsAtMs
  }

  function next() {
    endsAtMs = undefined
    few.clear()
    if (waiting.size === 0) return
    const endMs = begin()
    // To each session a part of it: the one that comes last would have none.
    for (let nowMs = now(); waiting.size > 0 && nowMs < endMs; nowMs = now()) {
      endsAtMs = nowMs + TURN_MS
      waiting.take()?.transport.readOn()
    }
    endsAtMs = endMs
  }

  function hasFew(session: Session, bytes: number, overMs: number) {
    if (bytes > FEW_BYTES || overMs > FLOW_MS) return false
    const account = session.payer ?? session
    const first = few.get(account)
    if (!first) few.set(account, session)
    return !first || first === session
  }

  return {
    /**
     * Whether a session of which more has come may be read on now. If not, it is to be paused: `readOn` is called when it
     * is its account's turn.
     *
     * @param bytes that have come
     */
    mayReadOn(session: Session, bytes: number): boolean {
      const overMs = now() - (endsAtMs ?? begin())
      if (overMs < 0 || hasFew(session, bytes, overMs)) return true
      waiting.add(session, session.payer === undefined ? NO_LANE : accountsOf(session.payer))
      return false
    },

    /** Whether it waits to be read: nobody knows whether it has answered. */
    isUnread: (session: Session) => waiting.has(session),

    /** The session has ended: the answer to its close may stand behind what nobody reads any more. */
    forget(session: Session) {
      if (waiting.delete(session)) session.transport.readOn()
    },
  }
}
