// How long a gateway waits for a fetcher's answer: a time that both must agree on.

/**
 * A gateway waits this long past a namespace's timeout. The fetcher's own report of a silent backend must arrive first: it
 * comes after the timeout, and 1 s more for a silent worker's lease. A question that was queued in the fetcher for longer
 * is not worth a request: its gateway has given up.
 */
export const ANSWER_GRACE_MS = 2_000
