// The rate limit of each session: an allowance of requests, which may go into debt before the session is closed; and one of
// keys that it subscribes to, since each that no session watches yet is a request to the backend. Sessions of one account
// have a few times as much together. Unused shares add up to a bound, and may then be used at once.
import type { ClientMessage, ErrorMessage } from '@keycast/protocol'
import type { Session } from './session.ts'

/** A message counts as one request, and one more per so many bytes: a subscribe to thousands of keys is no single one. */
const BYTES_PER_REQUEST = 1_024

/** Each object and each list is made in memory, which takes as long as so many other bytes. */
const BYTES_PER_OPENED = 64

/** A message that breaks the protocol counts as so many more requests: no honest client sends many. */
export const OFFENCE_REQUESTS = 10

/** So does one that comes before the time for which a refusal told its client to wait. */
const EARLY_REQUESTS = 10

/** Requests that take a part of what has a share for each. */
const taking = new Set<ClientMessage['type']>(['subscribe', 'get', 'join'])

/** Debt at which a session is closed, in seconds of its allowance: far past what an honest client's hurry makes. */
const DEBT_SECONDS_MAX = 2

/** A key that is watched already costs only a place in a list and a value from memory: so many count as one. */
const WATCHED_KEYS_PER_KEY = 10

interface Rate {
  perSecond: number
  max: number
}

/** The amount that may be taken, as of `atMs`. Below 0 it is in debt. A plain record, for there are tens of thousands. */
export interface Bucket {
  left: number
  atMs: number
}

/** What the sessions of one account have together. */
export interface SharedAllowance {
  readonly rates: ReturnType<typeof ratesOf>
  readonly requestAllowance: Bucket
  readonly keyAllowance: Bucket
  /** The requests that may still be refused it: as many as it may make. While none are left it gets no new session. */
  readonly refusalAllowance: Bucket
}

interface Deps {
  requestsPerSecondMax: number
  keysPerSessionMax: number
  end: (session: Session, code: 'abusive') => void
  now: () => number
}

export function createRateLimit({ requestsPerSecondMax, keysPerSessionMax, end, now }: Deps) {
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
    // As large as it may be, it is served when the bucket is full; and what became known later closes no honest session.
    const price = Math.min(requests, rates.requests.max)
    allowance.left -= price
    if (allowance.left >= 0) return chargeAccount(session.account, requests)
    noteRefused(session.account, price)
    if (allowance.left < -DEBT_SECONDS_MAX * requestsPerSecondMax) {
      end(session, 'abusive')
      return Number.POSITIVE_INFINITY
    }
    // The next try costs as much again: without its price a session that waits this long would be refused for ever.
    return waitMsFor(price - allowance.left, rates.requests)
  }

  /**
   * Charges a session for a request that comes too early after a refusal.
   *
   * @returns as {@link charge}
   */
  function chargeEarly(session: Session, type: ClientMessage['type']): number {
    if (type !== 'publish' && !taking.has(type)) return 0
    const atMs = type === 'publish' ? session.mayPublishAtMs : session.mayTakeAtMs
    return atMs > now() ? charge(session, EARLY_REQUESTS) : 0
  }

  /**
   * Charges an account a request's price, or nothing if it is too much: no session pays for another session's refused
   * request.
   *
   * @returns 0, or the time to wait, in milliseconds
   */
  function chargeAccount(account: SharedAllowance | undefined, requests: number): number {
    if (!account) return 0
    const rate = account.rates.requests
    const allowance = refill(account.requestAllowance, rate, now())
    // As large as a message may be, it is served when the bucket is full.
    if (allowance.left < Math.min(requests, rate.max)) {
      noteRefused(account, requests)
      return waitMsFor(requests - allowance.left, rate)
    }
    allowance.left -= requests
    return 0
  }

  /** A refusal costs a gateway CPU time as well. A client that connects again and again would get any number of them. */
  function noteRefused(account: SharedAllowance | undefined, requests: number) {
    if (!account) return
    const { requests: rate } = account.rates
    const allowance = refill(account.refusalAllowance, rate, now())
    allowance.left = Math.max(-rate.max, allowance.left - requests)
  }

  /**
   * The time a session should wait before it subscribes to keys, in milliseconds; 0 if it may now. It may then name any
   * number: their price is known when they are subscribed, see {@link chargeKeys}.
   */
  function keysWaitMs({ keyAllowance, account }: Session) {
    const waitMs = waitMsForAny(keyAllowance, rates.keys)
    if (waitMs > 0 || !account) return waitMs
    return waitMsForAny(account.keyAllowance, account.rates.keys)
  }

  /** The wait until the bucket holds more than nothing. */
  function waitMsForAny(bucket: Bucket, rate: Rate) {
    const { left } = refill(bucket, rate, now())
    return left > 0 ? 0 : Math.floor((-left * 1_000) / rate.perSecond) + 1
  }

  function chargeKeys(
    { keyAllowance, account }: Session,
    { watchedBefore, watchedAnew }: { watchedBefore: number; watchedAnew: number },
  ) {
    const keys = watchedAnew + watchedBefore / WATCHED_KEYS_PER_KEY
    keyAllowance.left -= keys
    if (account) account.keyAllowance.left -= keys
  }

  return {
    charge,
    chargeEarly,
    chargeAccount,
    keysWaitMs,
    chargeKeys,

    /** A new session's. */
    allowances: () => fullBuckets(rates, now()),
  }
}

/**
 * Notes that a session was refused for want of room, or for its share of it. One that asks for the same sort of thing before
 * the time it is told pays for it, and is closed if it goes on.
 */
export function noteRefusal(
  session: Session,
  { code, retryAfterMs }: ErrorMessage,
  nowMs: number,
  of: 'publish' | undefined,
) {
  if (retryAfterMs === undefined) return
  // Of any other request the rate itself is passed: that has its price already.
  if (of === 'publish' && (code === 'capacity' || code === 'rate_limited'))
    session.mayPublishAtMs = nowMs + retryAfterMs
  else if (code === 'capacity') session.mayTakeAtMs = nowMs + retryAfterMs
}

export function costOf(message: Uint8Array) {
  return 1 + Math.floor((message.length + openedIn(message) * BYTES_PER_OPENED) / BYTES_PER_REQUEST)
}

/** How many brackets and braces it opens. */
function openedIn(message: Uint8Array) {
  let opened = 0
  // `[` and `{` differ in this bit alone. No iterator: it is run over each byte that comes.
  for (let at = 0; at < message.length; at++) if ((message[at] | 0x20) === 0x7b) opened++
  return opened
}

export function fullBucket({ max }: Rate, nowMs: number): Bucket {
  return { left: max, atMs: nowMs }
}

export const fullBuckets = ({ requests, keys }: SharedAllowance['rates'], nowMs: number) => ({
  requestAllowance: fullBucket(requests, nowMs),
  keyAllowance: fullBucket(keys, nowMs),
})

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
