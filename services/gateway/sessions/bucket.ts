// A bucket that refills steadily: what was not used adds up to a bound, and may then be used at once. Sessions, accounts and
// addresses have some each, as plain records, for there are tens of thousands of them.

/** The refill rate of a bucket, and its maximum. */
interface Rate {
  perSecond: number
  max: number
}

/** The amount that may be taken, as of `atMs`. Below 0 it is in debt. */
export interface Bucket {
  left: number
  atMs: number
}

export function fullBucket({ max }: Rate, nowMs: number): Bucket {
  return { left: max, atMs: nowMs }
}

/**
 * Adds what came in since. To be called before `left` is read.
 *
 * @returns the same
 */
export function refill(bucket: Bucket, { perSecond, max }: Rate, nowMs: number): Bucket {
  bucket.left = Math.min(max, bucket.left + ((nowMs - bucket.atMs) * perSecond) / 1_000)
  bucket.atMs = nowMs
  return bucket
}

/** The time until so much more has come in, in whole milliseconds. */
export function waitMsFor(missing: number, { perSecond }: Rate) {
  return Math.ceil((missing * 1_000) / perSecond)
}

/**
 * One session's allowance. Sessions that share an account have it together, times the account's shares.
 *
 * @returns `requests`: one second's may be sent at once. `keys`: so many as a session may have may be subscribed to at
 *   once, and after that as many new ones a second as requests
 */
export function ratesOf(
  { requestsPerSecondMax, keysPerSessionMax }: { requestsPerSecondMax: number; keysPerSessionMax: number },
  shares = 1,
): { requests: Rate; keys: Rate } {
  const perSecond = shares * requestsPerSecondMax
  return {
    requests: { perSecond, max: perSecond },
    keys: { perSecond, max: Math.max(perSecond, shares * keysPerSessionMax) },
  }
}
