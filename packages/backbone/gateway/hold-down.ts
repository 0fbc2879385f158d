// Keeps a node that was lost from its keys for a while after it is heard again. A node that comes and goes would otherwise
// take its keys and lose them at each turn. A node that beats and cannot reach its log counts as lost while another node
// can reach that log.
import { SILENT_MS } from '@keycast/service'

/** After the first loss: a node that was only restarted has its keys back soon. */
export const HOLD_MS_MIN = 2_000

/** For this long at most, gateways that saw other losses of a node disagree about the owner of its keys. */
export const HOLD_MS_MAX = 60_000

/** A node that neither came nor went for so long is as good as one that was never lost. */
export const FORGIVEN_MS = 300_000

/**
 * A node has to have been cut off from its log for so long, and another one to have reached it: where all are cut off at
 * once, each notices it at another time.
 */
export const CUT_OFF_MS = 2 * SILENT_MS

/** The losses of one node, as one gateway saw them. @param options monotonic, in milliseconds */
export function createHoldDown({ now }: { now: () => number }) {
  /** The next hold; 0: none. */
  let nextMs = 0
  let changedAt = now()
  let heldUntil = Number.NEGATIVE_INFINITY
  let isCutOff = false
  let cutOrMendedAt = Number.NEGATIVE_INFINITY
  /** It is cut off, and another node has its keys. */
  let isAside = false

  function change() {
    if (now() - changedAt >= FORGIVEN_MS) nextMs = 0
    changedAt = now()
  }

  const lasts = () => now() - cutOrMendedAt >= CUT_OFF_MS

  const self = {
    /** The node was alive, and is lost. */
    onLost() {
      change()
      nextMs = Math.min(Math.max(HOLD_MS_MIN, 2 * nextMs), HOLD_MS_MAX)
    },

    /** The node is heard, for the first time or again. */
    onHeard() {
      change()
      heldUntil = now() + nextMs
    },

    /** @param cutOff whether it cannot reach its log. @returns whether its keys may have to go, or to come back */
    onReach(cutOff: boolean): boolean {
      if (cutOff !== isCutOff) cutOrMendedAt = now()
      const changes = cutOff || isCutOff
      isCutOff = cutOff
      return changes
    },

    isCutOff: () => isCutOff && lasts(),

    /** Whether it can have the keys of those that are cut off. */
    canReplace: () => !isCutOff && lasts() && self.heldMs() === 0,

    /** @returns whether that is news */
    setAside(aside: boolean): boolean {
      if (aside === isAside) return false
      isAside = aside
      if (aside) self.onLost()
      else self.onHeard()
      return true
    },

    /** Its losses are forgotten. */
    forgive() {
      nextMs = 0
      heldUntil = Number.NEGATIVE_INFINITY
    },

    /** How long it is held down yet, in milliseconds; 0: it is not. Infinity: until it reaches its log. */
    heldMs: (): number => (isAside ? Number.POSITIVE_INFINITY : Math.max(0, heldUntil - now())),
  }
  return self
}
