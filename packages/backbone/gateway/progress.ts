// Notices that requests or answers do not get through, although the node beats. For example its port for requests is
// blocked, or none of its answers can be read. Such a node is of no use: its keys must go to another.
import { BEAT_MS, SILENT_MS } from '@keycast/service'

/**
 * A node is given up once nothing got through for this long and a loss shows that this is no mere delay. Longer than
 * one round of loss and repetition, so that a moment's fault moves no keys.
 */
const LOSSY_MS = 2 * BEAT_MS

/**
 * Without a sign of loss a node is given up after this time. Longer than a busy node takes to come round to a link: it
 * reads the requests of all gateways in turn.
 */
const UNHEARD_MS = 3 * SILENT_MS

/** A node that owes an answer and loses none for this long is tried again: its service may not answer the want. */
const PROOF_MS = 60_000

/** @param options `now`: by a clock that stands still while this process does */
export function createProgress({ now }: { now: () => number }) {
  /** The time since which the node beats without hearing a request. */
  let unheardSince: number | undefined
  /** The time since which each message of answers was damaged or lost. */
  let unreadableSince: number | undefined
  let lastLossAt = 0
  /** Before the node counts as alive again it must answer for this key; without one, hear a request. */
  let proof: { key: string | undefined } | undefined

  const isOver = (since: number | undefined, ms: number) => since !== undefined && now() - since >= ms

  return {
    /** The node beat. */
    onBeat({ hasHeardMore, isAllHeard }: { hasHeardMore: boolean; isAllHeard: boolean }) {
      unheardSince = hasHeardMore || isAllHeard ? undefined : (unheardSince ?? now())
      if (proof?.key === undefined ? hasHeardMore : isOver(lastLossAt, PROOF_MS)) proof = undefined
    },

    /** A message of answers came whole. */
    onAnswers() {
      unreadableSince = undefined
      if (proof?.key !== undefined) proof = undefined
    },

    /**
     * The node has read all that arrived and lacks a request.
     *
     * @returns whether the node is of no use
     */
    onRequestLost: (): boolean => isOver(unheardSince, LOSSY_MS),

    /** @returns whether the node is of no use, and not merely behind, now that the socket has no room */
    onNoRoom: (): boolean => isOver(unheardSince, SILENT_MS),

    /** A message of answers was damaged or is missing. @returns whether the node is of no use */
    onAnswersLost(): boolean {
      // A damaged message that comes long after another does not count with it.
      if (unreadableSince === undefined || isOver(lastLossAt, UNHEARD_MS)) unreadableSince = now()
      lastLossAt = now()
      return isOver(unreadableSince, LOSSY_MS)
    },

    isUnheard: () => isOver(unheardSince, UNHEARD_MS),

    /** The node was given up. @param key of a want, where its answers were lost */
    demand(key?: string) {
      proof = { key }
      lastLossAt = now()
      unheardSince = undefined
      unreadableSince = undefined
    },

    get proof() {
      return proof
    },
  }
}
