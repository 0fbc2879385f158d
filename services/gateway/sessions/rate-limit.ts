// The rate limit of each session: an allowance of requests, which may go into debt before the session is closed; and one of
// keys that it subscribes to, since each that no session watches yet is a request to the backend.
import type { Accounts } from './accounts.ts'
import { fullBucket, ratesOf, refill, waitMsFor } from './bucket.ts'
import type { Session } from './session.ts'

export type RateLimit = ReturnType<typeof createRateLimit>

/** A message counts as one request, and one more per so many bytes: a subscribe to thousands of keys is no single one. */
const BYTES_PER_REQUEST = 1_024

/** A message that breaks the protocol counts as so many more requests: no honest client sends many. */
export const OFFENCE_REQUESTS = 10

/** Debt at which a session is closed, in seconds of its allowance: far past what an honest client's hurry makes. */
const DEBT_SECONDS_MAX = 2

/** A key that is watched already costs only a place in a list and a value from memory: so many count as one. */
const WATCHED_KEYS_PER_KEY = 10

interface Deps {
  requestsPerSecondMax: number
  keysPerSessionMax: number
  accounts: Pick<Accounts, 'charge' | 'keysWaitMs' | 'chargeKeys'>
  end: (session: Session, code: 'abusive') => void
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createRateLimit({ requestsPerSecondMax, keysPerSessionMax, accounts, end, now }: Deps) {
  const rates = ratesOf({ requestsPerSecondMax, keysPerSessionMax })

  /**
   * Charges a session, before its message is served or for the cost that became known later. Ends a session that asked
   * far too much.
   *
   * @param requests the number of requests that it counts as
   * @returns 0 if the session may go on; else the time until it should try again, in milliseconds; Infinity if this
   *   ended it
   */
  function charge(session: Session, requests: number): number {
    const allowance = refill(session.requestAllowance, rates.requests, now())
    allowance.left -= requests
    if (allowance.left >= 0) return accounts.charge(session.account, requests)
    if (allowance.left < -DEBT_SECONDS_MAX * requestsPerSecondMax) {
      end(session, 'abusive')
      return Number.POSITIVE_INFINITY
    }
    // The next try costs as much again: without its price a session that waits this long would be refused for ever.
    const priceOfRetry = Math.min(requests, rates.requests.max)
    return waitMsFor(priceOfRetry - allowance.left, rates.requests)
  }

  /**
   * The time a session should wait before it subscribes to keys, in milliseconds; 0 if it may now. It may then name any
   * number: their price is known when they are subscribed, see {@link chargeKeys}.
   */
  function keysWaitMs(session: Session) {
    const { left } = refill(session.keyAllowance, rates.keys, now())
    if (left > 0) return accounts.keysWaitMs(session.account)
    // The wait until the bucket holds more than nothing.
    return Math.floor((-left * 1_000) / rates.keys.perSecond) + 1
  }

  /**
   * Charges a session for keys it subscribed to.
   *
   * @param keys their numbers
   */
  function chargeKeys(
    session: Session,
    { watchedBefore, watchedAnew }: { watchedBefore: number; watchedAnew: number },
  ) {
    const keys = watchedAnew + watchedBefore / WATCHED_KEYS_PER_KEY
    session.keyAllowance.left -= keys
    accounts.chargeKeys(session.account, keys)
  }

  /** A new session's allowances. */
  function allowances() {
    const nowMs = now()
    return { requestAllowance: fullBucket(rates.requests, nowMs), keyAllowance: fullBucket(rates.keys, nowMs) }
  }

  return { charge, keysWaitMs, chargeKeys, allowances }
}

/** The number of requests that a message counts as. */
export function costOf(messageBytes: number) {
  return 1 + Math.floor(messageBytes / BYTES_PER_REQUEST)
}
