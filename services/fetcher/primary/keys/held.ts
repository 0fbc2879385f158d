// The held state of a key: its value, or the backend's `not_found`; and the reason why the last fetch failed.
import type { Delta } from '@keycast/backbone'
import type { ErrorCode } from '@keycast/protocol'
import type { Format } from '@keycast/service'
import type { CurrentResult, ValueResult } from '../../worker-messages.ts'
import type { Entry } from './entry.ts'

/**
 * The bytes held, and what the backend said of them. `store` false: held only while somebody wants the key. `delta`:
 * from the version held before, where there is one. `cameAt`: when a worker brought it. `waitedMs`: how long its fetch
 * waited for a worker.
 */
interface Value {
  version: string
  contentType: string
  format: Format
  body: Buffer
  delta: Delta | undefined
  store: boolean
  etag: string | undefined
  lastModified: string | undefined
  cameAt: number
  waitedMs: number
}

/**
 * Why the last fetch failed. Made anew each time, so that it also tells one fetch from the next. `askedAt`: when the
 * backend was asked in that fetch.
 */
export interface Failure {
  code: ErrorCode
  message: string
  askedAt: number
}

/**
 * What gateways hold, by their own word, of a key that was another node's: it is confirmed until the key is tried next.
 */
interface TakenOver {
  version: string
}

export interface Held {
  value: Value | undefined
  /** Of the last fetch; undefined after a good one. `not_found` is an answer: then there is no value. */
  failure: Failure | undefined
  /** When the backend was asked for the held value or `not_found`. */
  askedAt: number
  /** Up to this age the state answers a get. */
  maxAgeMs: number
  /** Whether the backend reported a change since. */
  invalid: boolean
  /** Until the first fetch ended. */
  takenOver: TakenOver | undefined
  /** Of the value's version, and of every later one more: see backbone.ts. 0 before the first. */
  order: number
  /** The highest number that a gateway reported, until a fetch has ended that began after the backend was asked for it. */
  reported: { version: string; order: number; askedAt: number } | undefined
  /** The highest rank of a value that the backend handed over; absent where it gives none. */
  rank?: number
  /** Whether the backend ever had a value, as far as this entry knows. */
  seen: 'found' | 'missing' | undefined
}

/** Those that many keys have, stored once: each result from a worker brings its own copy. */
const contentTypes = new Map<string, string>()

/** Further ones are not shared. */
const CONTENT_TYPES_MAX = 1_000

function sharedContentType(contentType: string): string {
  const first = contentTypes.get(contentType)
  if (first === undefined && contentTypes.size < CONTENT_TYPES_MAX) contentTypes.set(contentType, contentType)
  return first ?? contentType
}

export function newHeld(maxAgeMs: number): Held {
  return {
    value: undefined,
    failure: undefined,
    askedAt: Number.NEGATIVE_INFINITY,
    maxAgeMs,
    invalid: false,
    takenOver: undefined,
    order: 0,
    reported: undefined,
    seen: undefined,
  }
}

/**
 * The backend sent a value.
 *
 * @param delta from the version that the result names
 * @param when `invalid`: changed since it was asked; `wallMs`: when it was asked, since 1970
 */
export function holdValue(
  entry: Entry,
  result: ValueResult,
  body: Buffer,
  delta: Buffer | undefined,
  {
    askedAt,
    waitedMs,
    cameAt,
    invalid,
    wallMs,
  }: { askedAt: number; waitedMs: number; cameAt: number; invalid: boolean; wallMs: number },
) {
  const { contentType, format, store, etag, lastModified, deltaFrom } = result
  const { takenOver } = entry.held
  // Links hold this string already.
  const version = takenOver?.version === result.version ? takenOver.version : result.version
  number(entry, version, askedAt, wallMs)
  entry.held.seen = 'found'
  entry.held.value = {
    version,
    contentType: sharedContentType(contentType),
    format,
    store,
    etag,
    lastModified,
    body,
    delta: deltaFrom !== undefined && delta ? { from: deltaFrom, bytes: delta } : undefined,
    cameAt,
    waitedMs,
  }
  answered(entry, undefined, result.maxAgeMs, askedAt, invalid)
}

/** The backend is asked for something else from now on: what it would confirm by them is not this value. */
export function forgetValidators({ held: { value } }: Entry) {
  if (value) Object.assign(value, { etag: undefined, lastModified: undefined })
}

/**
 * The backend confirmed the held value as the latest.
 *
 * @param entry that holds a value
 * @param invalid changed since it was asked
 */
export function confirmValue(
  entry: Entry,
  { store, etag, lastModified, maxAgeMs }: CurrentResult,
  askedAt: number,
  invalid: boolean,
  wallMs: number,
) {
  const value = entry.held.value as Value
  number(entry, value.version, askedAt, wallMs)
  const lifetimeMs = store === undefined ? (maxAgeMs ?? entry.held.maxAgeMs) : maxAgeMs
  Object.assign(value, { store: store ?? value.store, etag, lastModified })
  answered(entry, undefined, lifetimeMs, askedAt, invalid)
}

/**
 * The backend answered `not_found`.
 *
 * @param invalid changed since it was asked
 */
export function holdNotFound(entry: Entry, notFound: Failure, maxAgeMs: number | undefined, invalid: boolean) {
  entry.held.value = undefined
  entry.held.seen ??= 'missing'
  answered(entry, notFound, maxAgeMs, notFound.askedAt, invalid)
}

/**
 * Gives the version that is the latest its number: the one that it has, or a higher one than any. A version that was asked
 * for before the one that a gateway reported gets no number above that one's.
 */
function number({ held }: Entry, version: string, askedAt: number, wallMs: number) {
  const { value, order, reported } = held
  const isReached = reported && (reported.version === version || askedAt >= reported.askedAt)
  if (isReached) held.reported = undefined
  if (isReached && reported.order >= order) {
    held.order = reported.version === version ? reported.order : Math.max(wallMs, reported.order + 1)
  } else if (value?.version !== version) {
    held.order = Math.max(wallMs, order + 1)
  }
}

/**
 * A gateway says what it holds. Its number may be another node's, which had the key before: what is found from now on
 * has a higher one.
 *
 * @param seen by the gateway; `order` is that of its version
 * @returns whether the held value has another number now
 */
export function noteOrder(
  entry: Entry,
  seen: { version: string | undefined; askedAt: number; order: number | undefined },
  wallMs: number,
): boolean {
  const { held } = entry
  const { version, order, askedAt } = seen
  if (version === undefined || order === undefined) return false
  if (order < held.order || order <= (held.reported?.order ?? 0)) return false
  if (order === held.order && held.value?.version === version) return false
  held.reported = { version, order, askedAt }
  // The gateway knows something newer: the fetch that follows will say what.
  if (!held.value || !isNoOlder(entry, seen)) return false
  number(entry, held.value.version, held.askedAt, wallMs)
  return true
}

/**
 * A gateway says which rank its version has, or one before it.
 *
 * @returns whether the held value may be an older one: the node that had the key before may have taken a newer
 */
export function noteRank(
  { held }: Entry,
  { version, rank }: { version: string | undefined; rank: number | undefined },
): boolean {
  if (rank === undefined || rank <= (held.rank ?? -1)) return false
  held.rank = rank
  return held.value !== undefined && held.value.version !== version
}

/** @param maxAgeMs the backend's, which can only shorten the namespace's */
function answered(
  { held, namespace }: Entry,
  failure: Failure | undefined,
  maxAgeMs: number | undefined,
  askedAt: number,
  invalid: boolean,
) {
  held.failure = failure
  held.takenOver = undefined
  held.askedAt = askedAt
  held.maxAgeMs = Math.min(namespace.maxAgeMs, maxAgeMs ?? Number.POSITIVE_INFINITY)
  held.invalid = invalid
}

/** A fetch failed: the held state stays. */
export function holdFailure({ held }: Entry, failure: Failure) {
  held.failure = failure
  held.takenOver = undefined
}

/**
 * Another node had the key: its gateways' state stands for the value until the key is tried.
 *
 * @param entry of which nothing is held
 * @param version that a gateway holds
 */
export function takeOver({ held, namespace }: Entry, version: string, maxAgeMs: number) {
  held.takenOver = { version }
  held.maxAgeMs = Math.min(namespace.maxAgeMs, maxAgeMs)
}

/** The key will not be tried by itself any more. */
export function forgetTakenOver({ held }: Entry) {
  held.takenOver = undefined
}

/** The backend reported a change: the held state is no answer any more. */
export function invalidate({ held }: Entry) {
  held.invalid = true
}

/** @param entry whose value may not stay */
export function dropValue({ held }: Entry) {
  held.value = undefined
}

export function dropAll({ held }: Entry) {
  held.seen = undefined
  held.value = undefined
  held.failure = undefined
  held.takenOver = undefined
}

/** The rest names no content, and no token. */
export function dropAllButFailure(entry: Entry) {
  const failure = isFailing(entry) ? entry.held.failure : undefined
  dropAll(entry)
  entry.held.failure = failure
}

/** Whether the last fetch failed; `not_found` is no failure. */
export const isFailing = ({ held: { failure } }: Entry) => failure !== undefined && failure.code !== 'not_found'

/** Whether the backend never had the key, when it was asked: perhaps somebody made it up. */
export const isMissing = ({ held: { seen } }: Entry) => seen === 'missing'

/** Whether the backend has answered: with a value, or `not_found`. */
export const isAnswered = ({ held: { value, failure } }: Entry) => value !== undefined || failure?.code === 'not_found'

/** Whether the held state answers a get. */
export const isFresh = (entry: Entry, now: number) =>
  isAnswered(entry) && !entry.held.invalid && now - entry.held.askedAt <= entry.held.maxAgeMs

/**
 * Whether the held state may be sent to a gateway that has `seen` already: it is the same (a version, or none), or was
 * asked for later.
 * Versions have no order; the times at which the backend was asked have one.
 *
 * @param entry that is answered
 */
export const isNoOlder = ({ held }: Entry, seen: { version: string | undefined; askedAt: number }) =>
  held.value?.version === seen.version || held.askedAt >= seen.askedAt
