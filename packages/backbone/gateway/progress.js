// Whether what a gateway asks of a node gets through, both ways. A node may beat and still be of no use: where only its
// port for requests is blocked, or where none of its answers can be read. Its keys must go to another node then.
import { BEAT_MS, SILENT_MS } from '@keycast/service'

/**
 * A node is given up once nothing got through for so long, and a loss shows that this is no mere delay.
 * Longer than one round of loss and repetition, so that a moment's fault moves no keys.
 */
const LOSSY_MS = 2 * BEAT_MS

/**
 * A node is given up after so long without a sign of loss too. Longer than a busy node takes to come round to a link: it
 * reads the requests of all gateways in turn.
 */
const UNHEARD_MS = 3 * SILENT_MS

/** A node that owes an answer and loses none for so long is tried again: its service may not answer what it was asked. */
const PROOF_MS = 60_000

/** @param {{ now: () => number }} options */
export function createProgress({ now }) {
  /** Since when the node has been beating without hearing a request. @type {number | undefined} */
  let unheardSince
  /** Since when each message of answers was damaged or lost. @type {number | undefined} */
  let unreadableSince
  let lastLossAt = 0
  /** What must get through before the node counts as alive again. @type {'request' | 'answer' | undefined} */
  let proof

  /** @param {number | undefined} since @param {number} ms */
  const isOver = (since, ms) => since !== undefined && now() - since >= ms

  return {
    /** The node beat. @param {{ hasHeardMore: boolean, isAllHeard: boolean }} beat */
    onBeat({ hasHeardMore, isAllHeard }) {
      unheardSince = hasHeardMore || isAllHeard ? undefined : (unheardSince ?? now())
      if (hasHeardMore && proof === 'request') proof = undefined
      if (proof === 'answer' && isOver(lastLossAt, PROOF_MS)) proof = undefined
    },

    /** A message of answers came whole. */
    onAnswers() {
      unreadableSince = undefined
      if (proof === 'answer') proof = undefined
    },

    /**
     * The node has read all that arrived and lacks a request.
     *
     * @returns {boolean} whether the node is of no use
     */
    onRequestLost: () => isOver(unheardSince, LOSSY_MS),

    /** @returns {boolean} whether the node is of no use, and not merely behind, now that the socket has no room */
    onNoRoom: () => isOver(unheardSince, SILENT_MS),

    /** A message of answers was damaged or is missing. @returns {boolean} whether the node is of no use */
    onAnswersLost() {
      // One that comes long after another belongs to no row of them.
      if (unreadableSince === undefined || isOver(lastLossAt, UNHEARD_MS)) unreadableSince = now()
      lastLossAt = now()
      return isOver(unreadableSince, LOSSY_MS)
    },

    isUnheard: () => isOver(unheardSince, UNHEARD_MS),

    /** The node was given up: it counts as alive again once such a one got through. @param {'request' | 'answer'} what */
    demand(what) {
      proof = what
      lastLossAt = now()
      unheardSince = undefined
      unreadableSince = undefined
    },

    /** This process stood still: what did not get through meanwhile says nothing of the node. */
    forgive() {
      unheardSince = undefined
      unreadableSince = undefined
    },

    get proof() {
      return proof
    },
  }
}
