// Answers to a session's publishes that wait for the message to be written first. A session counts them over all its rooms:
// they are memory that its client claims while it does not read.
import type { ControlMessage } from '@keycast/protocol'
import type { Session } from '../../sessions/session.ts'

export interface HeldAnswer {
  /** Of the message that goes first. */
  seq: number
  answer: ControlMessage
}

interface Holder {
  session: Pick<Session, 'answersHeld'>
  answers: HeldAnswer[] | undefined
}

/** @param seq not below those of the answers held */
export function holdAnswer(holder: Holder, seq: number, answer: ControlMessage) {
  // Added in place: a copy for each of many answers would cost more than the answers.
  holder.answers ??= []
  holder.answers.push({ seq, answer })
  holder.session.answersHeld++
}

/** Takes out the answers to messages up to `seq`, or all of them. */
export function takeAnswers(holder: Holder, seq = Number.POSITIVE_INFINITY): ControlMessage[] {
  const { answers = [] } = holder
  let done = 0
  while (done < answers.length && answers[done].seq <= seq) done++
  const taken = answers.splice(0, done)
  if (answers.length === 0) holder.answers = undefined
  holder.session.answersHeld -= done
  return taken.map(({ answer }) => answer)
}
