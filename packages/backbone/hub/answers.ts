// Sends each link its answers and results: in turn, many small ones in one message, as far as its credit reaches.
import { createTurns, createUniqueQueue, noContainment } from '@keycast/service'
import { bytesOf } from '../wire/bytes.ts'
import { encodeAnswers } from '../wire/envelope.ts'
import { CREDIT_BYTES, createCredit } from './credit.ts'

/** @typedef {import('../wire/codec.ts').Service} Service */

/**
 * The messages that a link is due, and the progress of sending them.
 *
 * @template {Service} S
 * @typedef {object} Outgoing
 * @property {number} answered messages of answers sent
 * @property {import('./credit.ts').Account} account
 * @property {import('@keycast/service').UniqueQueue<string>} due keys of which it is due something
 * @property {import('../wire/envelope.ts').CommandResult<S>[]} results results that it is due; not held back by credit,
 *   since the gateway bounds its commands under way
 * @property {number} resultsFrom bytes that had been sent when the first of these results came
 */

/** Small answers leave together up to this size: at 100 bytes each that is several times faster than one by one. */
const BATCH_BYTES = 64 * 1024

/** The weight of an answer beside its body, so that answers without one count too. */
const HEAD_BYTES = 256

/** Keys looked up for one message: most may have nothing to send. */
const KEYS_PER_BATCH_MAX = 500

/**
 * @template {Service} S
 * @template {Outgoing<S> & { id: string, received: number }} L
 * @param {object} options
 * @param {import('../wire/codec.ts').Codec<S>} options.codec
 * @param {import('./hub.ts').NodeEvents<S>['answersFor']} options.answersFor
 * @param {(link: L, parts: Buffer[], failed: () => void) => void} options.send
 * @param {() => number | undefined} [options.logAt] how far the log is, of a service that has one
 * @param {(link: L) => void} options.onFailed a message could not be sent, or not be made
 * @param {Pick<import('@keycast/service').Containment, 'guard'>} [options.containment]
 * @param {() => number} options.now
 */
export function createAnswers({
  codec,
  answersFor,
  send,
  logAt = () => undefined,
  onFailed,
  containment = noContainment,
  now,
}) {
  /** Links that are due something, each a message in turn. */
  const due = /** @type {import('@keycast/service').UniqueQueue<L>} */ (createUniqueQueue())
  const sending = createTurns({ now, step: sendNext })
  const credit = createCredit()
  let isStopped = false

  /** The fields of a link that has been sent nothing. @returns {Outgoing<S>} */
  const open = () => ({
    answered: 0,
    account: credit.open(),
    due: createUniqueQueue(),
    results: [],
    resultsFrom: 0,
  })

  /** @param {L} link */
  function close(link) {
    due.delete(link)
    link.account.close()
  }

  /** The link is due something of the key. @param {L} link @param {string} key */
  function tell(link, key) {
    link.due.add(key)
    schedule(link)
  }

  /** @param {L} link @param {import('../wire/envelope.ts').CommandResult<S>} result */
  function tellResult(link, result) {
    if (link.results.length === 0) link.resultsFrom = link.account.sentBytes
    link.results.push(result)
    schedule(link)
  }

  /** The link may have credit again. @param {L} link */
  function resume(link) {
    if (link.due.size > 0) schedule(link)
  }

  /** @param {L} link */
  function schedule(link) {
    due.add(link)
    sending.start()
  }

  /** Sends the next link one message. @returns {boolean} whether there is more to send */
  function sendNext() {
    const link = isStopped ? undefined : due.take()
    if (!link) return false
    sendTo(link)
    return due.size > 0
  }

  const sendTo = containment.guard(
    'link',
    (/** @type {L} */ link) => {
      const answers = hasAnswersToSend(link) ? answersOf(link) : []
      sendBatch(link, answers, isResultsTurn(link))
      if (hasAnswersToSend(link) || link.results.length > 0) due.add(link)
    },
    onFailed,
  )

  /** @param {L} link */
  const hasAnswersToSend = link => link.due.size > 0 && link.account.hasRoom()

  /** Answers for one message, of as many of the due keys as fit. @param {L} link */
  function answersOf(link) {
    const encoded = []
    let bytesLeft = BATCH_BYTES
    for (let keys = 0; keys < KEYS_PER_BATCH_MAX && bytesLeft > 0; keys++) {
      const key = link.due.take()
      if (key === undefined) break
      const { answers, more } = answersFor(link.id, key, bytesLeft)
      for (const answer of answers) {
        const each = codec.encodeAnswer(answer)
        encoded.push(each)
        bytesLeft -= HEAD_BYTES + bytesOf(each.parts)
      }
      // The key stands behind the others: `more` without an answer would otherwise be asked for without end.
      if (more && answers.length > 0) link.due.add(key)
    }
    return encoded
  }

  /**
   * Results leave behind the last of the answers before them. A link that is always due something gets its results
   * after one credit's worth of answers.
   *
   * @param {L} link
   */
  const isResultsTurn = link => !hasAnswersToSend(link) || link.account.sentBytes - link.resultsFrom >= CREDIT_BYTES

  /** @param {L} link @param {import('../wire/codec.ts').Encoded[]} answers @param {boolean} withResults */
  function sendBatch(link, answers, withResults) {
    const results = link.results.length > 0 && withResults ? link.results.splice(0) : []
    if (answers.length === 0 && results.length === 0) return
    link.answered++
    const envelope = { link: link.id, number: link.answered, reached: link.received, logAt: logAt() }
    const parts = encodeAnswers(envelope, answers, results)
    link.account.send(bytesOf(parts))
    send(link, parts, () => onFailed(link))
  }

  /** Sends results although answers before them have not left. @param {L} link */
  function sendResults(link) {
    sendBatch(link, [], true)
  }

  /** From now on only `sendResults` sends. */
  function stop() {
    isStopped = true
  }

  return { open, close, tell, tellResult, resume, sendResults, stop, bytesOut: credit.bytes }
}
