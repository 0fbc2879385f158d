// Answers one request for one value: from memory if that is fresh enough, else from the fetcher, asked once for all
// requests of the key. If the client does not read, its get waits without the value.
import { type ControlMessage, type Get, isProblem, type Problem, type RequestId } from '@keycast/protocol'
import type { Counts } from '../counts.ts'
import type { Act, Admitted, Asker } from '../gate/gate.ts'
import type { Session } from '../sessions/session.ts'
import { errorAbout } from '../topics/topics.ts'
import type { Result } from '../topics/values/cache.ts'
import type { Value } from '../topics/values/value.ts'

interface Deps {
  readonly gate: {
    enter(asker: Asker, act: Act, key: string): Admitted | Problem | Promise<Admitted | Problem>
    recheck(admitted: Admitted): Problem | 'again' | undefined
  }
  readonly values: { fresh(wireKey: string, asOfMs?: number): Result | undefined }
  readonly singleFlight: { want(wireKey: string, asker: Asker): Promise<Result> }
  readonly outbox: {
    send(session: Session, message: ControlMessage): void
    sendValue(session: Session, value: Value, id: RequestId | undefined): void
    isWritable(session: Session): boolean
  }
  /** Of one session. */
  readonly getsWaitingMax: number
  readonly counts: Pick<Counts, 'getHits' | 'getMisses'>
  readonly now: () => number
}

export const createGet = ({ gate, values, singleFlight, outbox, getsWaitingMax, counts, now }: Deps) => {
  /**
   * @param asOfMs the time at which the answer must be fresh: a get that waited is not asked for again because of its
   *   wait
   * @returns once it is answered, or waits for its client
   */
  function get(session: Session, message: Get, asOfMs: number): Promise<void> | void {
    const entered = gate.enter(session, 'get', message.key)
    if (!(entered instanceof Promise)) return find(session, message, asOfMs, entered)
    if (!mayWait(session)) return sendProblem(session, message, tooManyWaiting)
    session.pendingGets++
    return entered.then(each => {
      session.pendingGets--
      if (!session.ended) return find(session, message, asOfMs, each)
    })
  }

  function find(session: Session, message: Get, asOfMs: number, entered: Admitted | Problem): Promise<void> | void {
    if (isProblem(entered)) return sendProblem(session, message, entered)
    if (!outbox.isWritable(session)) return defer(session, message, asOfMs)
    const result = values.fresh(entered.wireKey, asOfMs)
    if (result) {
      counts.getHits++
      return answer(session, message, result)
    }
    counts.getMisses++
    if (!mayWait(session)) return sendProblem(session, message, tooManyWaiting)
    session.pendingGets++
    // Never rejects. For a session that ended meanwhile the outbox queues nothing.
    return singleFlight.want(entered.wireKey, entered.asker).then(fetched => {
      session.pendingGets--
      const changed = gate.recheck(entered)
      if (changed === 'again') return session.ended ? undefined : get(session, message, now())
      if (changed) sendProblem(session, message, changed)
      else if (outbox.isWritable(session)) answer(session, message, fetched)
      else defer(session, message, now() - (fetched.value ? fetched.ageMs : 0))
    })
  }

  function answer(session: Session, message: Get, { value, problem }: Result) {
    const { id, key, version } = message
    if (problem) sendProblem(session, message, problem)
    else if (value.version === version) outbox.send(session, { type: 'current', id, key, version, order: value.order })
    else outbox.sendValue(session, value, id)
  }

  /** The client does not read. Its get waits without the value, which may be a newer one by then. */
  function defer(session: Session, message: Get, asOfMs: number) {
    if (session.ended) return
    if (mayWait(session)) session.deferredGets.push({ get: message, asOfMs })
    else sendProblem(session, message, tooManyWaiting)
  }

  /** Whether one more get of the session may wait, for the fetcher or for its client. */
  function mayWait({ pendingGets, deferredGets }: Session) {
    return pendingGets + deferredGets.length < getsWaitingMax
  }

  function sendProblem(session: Session, { id, key }: Get, problem: Problem) {
    outbox.send(session, errorAbout(session, key, problem, id))
  }

  return get
}

const tooManyWaiting: Problem = { code: 'too_many_waiting' }
