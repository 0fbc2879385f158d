// Sends each link its answers and results: in turn, many small ones in one message, as far as its credit reaches. Answers
// that a gateway has not reported as taken are in this process's memory, or in that of a peer that may have stopped reading.
import { type Containment, createTurns, createUniqueQueue, noContainment, type UniqueQueue } from '@keycast/service'
import { bytesOf, type Codec, type Encoded, type Service } from '../wire/codec.ts'
import { type CommandResult, encodeAnswers } from '../wire/envelope.ts'
import type { NodeEvents } from './node.ts'

/** To one gateway: covers 50 ms of a gigabit. More only delays the latest state. */
export const CREDIT_BYTES = 8 * 2 ** 20

/** To all gateways: covers 50 ms of ten gigabits. Without it, 100 gateways that stall would pin 800 MiB. */
export const CREDIT_TOTAL_BYTES = 64 * 2 ** 20

/** Limits the bytes of answers that are on their way, to one gateway and to all. */
export function createCredit() {
  let totalBytes = 0

  /** The account of one link. */
  function open() {
    let sentBytes = 0
    let takenBytes = 0
    return {
      /**
       * Whether another message may be sent. A link with nothing under way always may, so none starves. Otherwise each
       * may have as much under way as is left for all: those that stall first leave half of the rest to the next, and
       * as accounts are paid they come to the same share.
       */
      hasRoom() {
        const bytes = sentBytes - takenBytes
        return bytes === 0 || bytes < Math.min(CREDIT_BYTES, CREDIT_TOTAL_BYTES - totalBytes)
      },
      send(bytes: number) {
        sentBytes += bytes
        totalBytes += bytes
      },
      /**
       * @param bytes as the gateway reports since the link began; a report may come late, or lie
       * @returns whether it took some
       */
      take(bytes: number): boolean {
        const newlyTaken = Math.max(0, Math.min(bytes, sentBytes) - takenBytes)
        takenBytes += newlyTaken
        totalBytes -= newlyTaken
        return newlyTaken > 0
      },
      close() {
        totalBytes -= sentBytes - takenBytes
        takenBytes = sentBytes
      },
      get sentBytes() {
        return sentBytes
      },
    }
  }

  return { open, bytes: () => totalBytes }
}

export type Account = ReturnType<ReturnType<typeof createCredit>['open']>

/** The messages that a link is due, and the progress of sending them. */
export interface Outgoing<S extends Service> {
  /** Messages of answers sent. */
  answered: number
  account: Account
  /** Keys of which it is due something. */
  due: UniqueQueue<string>
  /** Results that it is due; not held back by credit, since the gateway bounds its commands under way. */
  results: CommandResult<S>[]
  /** Bytes that had been sent when the first of these results came. */
  resultsFrom: number
}

/** Small answers leave together up to this size: at 100 bytes each that is several times faster than one by one. */
const BATCH_BYTES = 64 * 1024

/** The weight of an answer beside its body, so that answers without one count too. */
const HEAD_BYTES = 256

/** Keys looked up for one message: most may have nothing to send. */
const KEYS_PER_BATCH_MAX = 500

interface Options<S extends Service, L extends Outgoing<S> & { id: string; received: number }> {
  codec: Codec<S>
  answersFor: NodeEvents<S>['answersFor']
  send: (link: L, parts: Buffer[], failed: () => void) => void
  /** How far the log is, of a service that has one. */
  logAt?: () => number | undefined
  /** A message could not be sent, or not be made. */
  onFailed: (link: L) => void
  containment?: Containment
  now: () => number
  turn: (run: () => void) => void
}

export function createAnswers<S extends Service, L extends Outgoing<S> & { id: string; received: number }>({
  codec,
  answersFor,
  send,
  logAt = () => undefined,
  onFailed,
  containment = noContainment,
  now,
  turn,
}: Options<S, L>) {
  /** Links that are due something, each a message in turn. */
  const due = createUniqueQueue() as UniqueQueue<L>
  const sending = createTurns({ now, turn, step: sendNext })
  const credit = createCredit()
  let isStopped = false

  /** The fields of a link that has been sent nothing. */
  const open = (): Outgoing<S> => ({
    answered: 0,
    account: credit.open(),
    due: createUniqueQueue(),
    results: [],
    resultsFrom: 0,
  })

  function close(link: L) {
    due.delete(link)
    link.account.close()
  }

  /** The link is due something of the key. */
  function tell(link: L, key: string) {
    link.due.add(key)
    schedule(link)
  }

  function tellResult(link: L, result: CommandResult<S>) {
    if (link.results.length === 0) link.resultsFrom = link.account.sentBytes
    link.results.push(result)
    schedule(link)
  }

  /** The link may have credit again. */
  function resume(link: L) {
    if (link.due.size > 0) schedule(link)
  }

  function schedule(link: L) {
    due.add(link)
    sending.start()
  }

  /** Sends the next link one message. @returns whether there is more to send */
  function sendNext(): boolean {
    const link = isStopped ? undefined : due.take()
    if (!link) return false
    sendTo(link)
    return due.size > 0
  }

  const sendTo = containment.guard(
    'link',
    (link: L) => {
      const answers = hasAnswersToSend(link) ? answersOf(link) : []
      sendBatch(link, answers, isResultsTurn(link))
      if (hasAnswersToSend(link) || link.results.length > 0) due.add(link)
    },
    onFailed,
  )

  const hasAnswersToSend = (link: L) => link.due.size > 0 && link.account.hasRoom()

  /** Answers for one message, of as many of the due keys as fit. */
  function answersOf(link: L) {
    const encoded = []
    let bytesLeft = BATCH_BYTES
    for (let keys = 0; keys < KEYS_PER_BATCH_MAX && bytesLeft > 0; keys++) {
      const key = link.due.take()
      if (key === undefined) break
      const { answers, more } = answersFor(link.id, key, bytesLeft)
      for (const answer of answers) {
        const each = codec.encodeAnswer(answer)
        encoded.push(each)
        bytesLeft -= HEAD_BYTES + (each.headBytes ?? 0) + bytesOf(each.parts)
      }
      // The key stands behind the others: `more` without an answer would otherwise be asked for without end.
      if (more && answers.length > 0) link.due.add(key)
    }
    return encoded
  }

  /**
   * Results leave behind the last of the answers before them. A link that is always due something gets its results
   * after one credit's worth of answers.
   */
  const isResultsTurn = (link: L) =>
    !hasAnswersToSend(link) || link.account.sentBytes - link.resultsFrom >= CREDIT_BYTES

  function sendBatch(link: L, answers: Encoded[], withResults: boolean) {
    const results = link.results.length > 0 && withResults ? link.results.splice(0) : []
    if (answers.length === 0 && results.length === 0) return
    link.answered++
    const envelope = { link: link.id, number: link.answered, reached: link.received, logAt: logAt() }
    const parts = encodeAnswers(envelope, answers, results)
    link.account.send(bytesOf(parts))
    send(link, parts, () => onFailed(link))
  }

  /** Sends results although answers before them have not left. */
  function sendResults(link: L) {
    sendBatch(link, [], true)
  }

  /** From now on only `sendResults` sends. */
  function stop() {
    isStopped = true
  }

  return { open, close, tell, tellResult, resume, sendResults, stop, bytesOut: credit.bytes }
}
