// Time-outs of a generator process that ends. The pool that waits for it adds them up.

/** An answer counts as lost when it comes later than this after the last request. */
export const DRAIN_MS = 3_000

/** Else connections would be cut before their closing frames have left. */
export const CLOSE_MS = 5_000
