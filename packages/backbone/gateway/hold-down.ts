// Keeps a node that was lost from its keys for a while after it is heard again. A node that comes and goes would otherwise
// take its keys and lose them at each turn.

/** After the first loss: a node that was only restarted has its keys back soon. */
export const HOLD_MS_MIN = 2_000

/** For this long at most, gateways that saw other losses of a node disagree about the owner of its keys. */
export const HOLD_MS_MAX = 60_000

/** A node that neither came nor went for so long is as good as one that was never lost. */
export const FORGIVEN_MS = 300_000

/** The losses of one node, as one gateway saw them. @param options monotonic, in milliseconds */
export function createHoldDown({ now }: { now: () => number }) {
  /** The next hold; 0: none. */
  let nextMs = 0
  let changedAt = now()
  let heldUntil = Number.NEGATIVE_INFINITY

  function change() {
    if (now() - changedAt >= FORGIVEN_MS) nextMs = 0
    changedAt = now()
  }

  return {
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

    /** Its losses are forgotten. */
    forgive() {
      nextMs = 0
      heldUntil = Number.NEGATIVE_INFINITY
    },

    /** How long it is held down yet, in milliseconds; 0: it is not. */
    heldMs: () => Math.max(0, heldUntil - now()),
  }
}
