// Answers requests for parts of rooms' histories, one after the other for each session: the journal is asked for the next
// once the answer before is written. If the client does not read, the request waits without the messages.
import { type ControlMessage, type History, historyBody, isProblem, type Problem } from '@keycast/protocol'
import type { Rights } from '../access/rights.ts'
import type { Counts } from '../counts.ts'
import type { Act, Admitted, Asker } from '../gate/gate.ts'
import type { Session } from '../sessions/session.ts'
import type { Histories } from '../topics/rooms/histories.ts'
import { errorAbout } from '../topics/topics.ts'
import { textFrame } from '../transport/frames.ts'

interface Deps {
  readonly gate: {
    enter(asker: Asker, act: Act, key: string): Admitted | Problem | Promise<Admitted | Problem>
    recheck(admitted: Admitted): Problem | 'again' | undefined
    check(rights: Rights, act: Act, key: string): Problem | undefined
  }
  readonly histories: Histories
  readonly outbox: {
    send(session: Session, message: ControlMessage): void
    sendFrame(session: Session, frame: Buffer): void
    isWritable(session: Session): boolean
    fence(reached: () => void): void
  }
  /** Of one session. */
  readonly getsWaitingMax: number
  /** Answers what of the session waits, as far as that is possible. */
  readonly resume: (session: Session) => void
  readonly counts: Pick<Counts, 'sent'>
  readonly now: () => number
}

export const createHistory = ({ gate, histories, outbox, getsWaitingMax, resume, counts, now }: Deps) => {
  /** Sessions whose last request is being read, or its answer not written yet. */
  const reading = new WeakSet<Session>()

  /** @returns once it is answered, or waits for its client */
  function history(session: Session, message: History): Promise<void> | void {
    const problem = gate.check(session.rights, 'history', message.key)
    if (problem) return refuse(session, message, problem)
    const waiting = session.pendingGets + session.deferredGets.length
    if (waiting >= getsWaitingMax) return refuse(session, message, { code: 'too_many_waiting' })
    // An answer has up to 1 MiB, which may fill the socket: then all that was read beside it would have to be read again.
    if (reading.has(session) || !outbox.isWritable(session)) return defer(session, message)
    const entered = gate.enter(session, 'history', message.key)
    if (entered instanceof Promise) return waitToEnter(session, message, entered)
    return isProblem(entered) ? refuse(session, message, entered) : read(session, message, entered)
  }

  async function waitToEnter(session: Session, message: History, entering: Promise<Admitted | Problem>) {
    session.pendingGets++
    const entered = await entering
    session.pendingGets--
    if (session.ended) return
    if (isProblem(entered)) return refuse(session, message, entered)
    // Another request may be read by now. The decision stands.
    return history(session, message)
  }

  async function read(session: Session, message: History, admitted: Admitted) {
    reading.add(session)
    session.pendingGets++
    const result = await histories.read(message, session.payer)
    session.pendingGets--
    answer(session, message, result, admitted)
    outbox.fence(() => {
      reading.delete(session)
      // Else the outbox has it resumed.
      if (outbox.isWritable(session)) resume(session)
    })
  }

  function answer(
    session: Session,
    message: History,
    found: Awaited<ReturnType<Histories['read']>>,
    admitted: Admitted,
  ) {
    if (session.ended) return
    const changed = gate.recheck(admitted)
    if (changed === 'again') return defer(session, message)
    if (changed) return refuse(session, message, changed)
    if (isProblem(found)) return refuse(session, message, found)
    // The client stopped reading meanwhile: the messages are read again when it goes on.
    if (!outbox.isWritable(session)) return defer(session, message)
    const { type, id, key } = message
    const { messages, ...head } = found
    counts.sent.history++
    outbox.sendFrame(session, textFrame('', historyBody({ type, id, key, ...head }, messages)).frame)
  }

  function defer(session: Session, message: History) {
    session.deferredGets.push({ get: message, asOfMs: now() })
  }

  function refuse(session: Session, { id, key }: History, problem: Problem) {
    outbox.send(session, errorAbout(session, key, problem, id))
  }

  return history
}
