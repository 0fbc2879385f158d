// The held state of a key: its value, or the backend's `not_found`; and the reason why the last fetch failed.
import { createSharedStrings } from './shared-strings.ts'

/**
 * @typedef {import('@keycast/backbone').Delta} Delta
 * @typedef {import('@keycast/backbone').Format} Format
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {import('../../work/messages.ts').ValueResult} ValueResult
 * @typedef {import('./entry.ts').Entry} Entry
 *
 * The bytes held, and what the backend said of them. `store` false: held only while somebody wants the key. `delta`:
 * from the version held before, where there is one. `cameAt`: when a worker brought it.
 * `waitedMs`: how long its fetch waited for a worker.
 * @typedef {{ version: string, contentType: string, format: Format, body: Buffer, delta: Delta | undefined, store:
 *   boolean, etag: string | undefined, lastModified: string | undefined, cameAt: number, waitedMs: number }} Value
 *
 * Why the last fetch failed. Made anew each time, so that it also tells one fetch from the next. `askedAt`: when the
 * backend was asked in that fetch.
 * @typedef {{ code: ErrorCode, message: string, askedAt: number }} Failure
 *
 * What gateways hold, by their own word, of a key that was another node's: it is confirmed until the key is tried next.
 * @typedef {{ version: string }} TakenOver
 *
 * @typedef {object} Held
 * @property {Value | undefined} value
 * @property {Failure | undefined} failure of the last fetch; undefined after a good one. `not_found` is an answer: then
 *   there is no value
 * @property {number} askedAt when the backend was asked for the held value or `not_found`
 * @property {number} maxAgeMs up to this age the state answers a get
 * @property {boolean} invalid whether the backend reported a change since
 * @property {TakenOver | undefined} takenOver until the first fetch ended
 * @property {'found' | 'missing' | undefined} seen whether the backend ever had a value, as far as this entry knows
 */

const contentTypes = createSharedStrings({ max: 1_000 })

/** @param {number} maxAgeMs @returns {Held} */
export function newHeld(maxAgeMs) {
  return {
    value: undefined,
    failure: undefined,
    askedAt: Number.NEGATIVE_INFINITY,
    maxAgeMs,
    invalid: false,
    takenOver: undefined,
    seen: undefined,
  }
}

/**
 * The backend sent a value.
 *
 * @param {Entry} entry
 * @param {ValueResult} result
 * @param {Buffer} body
 * @param {Buffer | undefined} delta from the version that the result names
 * @param {{ askedAt: number, waitedMs: number, cameAt: number, invalid: boolean }} when `invalid`: changed since it was asked
 */
export function holdValue(entry, result, body, delta, { askedAt, waitedMs, cameAt, invalid }) {
  const { contentType, format, store, etag, lastModified, deltaFrom } = result
  const { takenOver } = entry.held
  // Links hold this string already.
  const version = takenOver?.version === result.version ? takenOver.version : result.version
  entry.held.seen = 'found'
  entry.held.value = {
    version,
    contentType: contentTypes.shared(contentType),
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

/**
 * The backend confirmed the held value as the latest.
 *
 * @param {Entry} entry that holds a value
 * @param {import('../../work/messages.ts').CurrentResult} result
 * @param {number} askedAt
 * @param {boolean} invalid changed since it was asked
 */
export function confirmValue(entry, { store, etag, lastModified, maxAgeMs }, askedAt, invalid) {
  const value = /** @type {Value} */ (entry.held.value)
  const lifetimeMs = store === undefined ? (maxAgeMs ?? entry.held.maxAgeMs) : maxAgeMs
  Object.assign(value, { store: store ?? value.store, etag, lastModified })
  answered(entry, undefined, lifetimeMs, askedAt, invalid)
}

/**
 * The backend answered `not_found`.
 *
 * @param {Entry} entry
 * @param {Failure} notFound
 * @param {number | undefined} maxAgeMs
 * @param {boolean} invalid changed since it was asked
 */
export function holdNotFound(entry, notFound, maxAgeMs, invalid) {
  entry.held.value = undefined
  entry.held.seen ??= 'missing'
  answered(entry, notFound, maxAgeMs, notFound.askedAt, invalid)
}

/**
 * @param {Entry} entry
 * @param {Failure | undefined} failure
 * @param {number | undefined} maxAgeMs the backend's, which can only shorten the namespace's
 * @param {number} askedAt
 * @param {boolean} invalid
 */
function answered({ held, namespace }, failure, maxAgeMs, askedAt, invalid) {
  held.failure = failure
  held.takenOver = undefined
  held.askedAt = askedAt
  held.maxAgeMs = Math.min(namespace.maxAgeMs, maxAgeMs ?? Number.POSITIVE_INFINITY)
  held.invalid = invalid
}

/** A fetch failed: the held state stays. @param {Entry} entry @param {Failure} failure */
export function holdFailure({ held }, failure) {
  held.failure = failure
  held.takenOver = undefined
}

/**
 * Another node had the key: its gateways' state stands for the value until the key is tried.
 *
 * @param {Entry} entry of which nothing is held
 * @param {string} version that a gateway holds
 * @param {number} maxAgeMs
 */
export function takeOver({ held, namespace }, version, maxAgeMs) {
  held.takenOver = { version }
  held.maxAgeMs = Math.min(namespace.maxAgeMs, maxAgeMs)
}

/** The key will not be tried by itself any more. @param {Entry} entry */
export function forgetTakenOver({ held }) {
  held.takenOver = undefined
}

/** The backend reported a change: the held state is no answer any more. @param {Entry} entry */
export function invalidate({ held }) {
  held.invalid = true
}

/** @param {Entry} entry whose value may not stay */
export function dropValue({ held }) {
  held.value = undefined
}

/** @param {Entry} entry */
export function dropAll({ held }) {
  held.seen = undefined
  held.value = undefined
  held.failure = undefined
  held.takenOver = undefined
}

/** The rest names no content, and no token. @param {Entry} entry */
export function dropAllButFailure(entry) {
  const failure = isFailing(entry) ? entry.held.failure : undefined
  dropAll(entry)
  entry.held.failure = failure
}

/** Whether the last fetch failed; `not_found` is no failure. @param {Entry} entry */
export const isFailing = ({ held: { failure } }) => failure !== undefined && failure.code !== 'not_found'

/** Whether the backend never had the key, when it was asked: perhaps somebody made it up. @param {Entry} entry */
export const isMissing = ({ held: { seen } }) => seen === 'missing'

/** Whether the backend has answered: with a value, or `not_found`. @param {Entry} entry */
export const isAnswered = ({ held: { value, failure } }) => value !== undefined || failure?.code === 'not_found'

/**
 * Whether the held state answers a get.
 *
 * @param {Entry} entry
 * @param {number} now
 */
export const isFresh = (entry, now) =>
  isAnswered(entry) && !entry.held.invalid && now - entry.held.askedAt <= entry.held.maxAgeMs

/**
 * Whether the held state may be sent to a gateway that has `seen` already: it is the same, or was asked for later.
 * Versions have no order; the times at which the backend was asked have one.
 *
 * @param {Entry} entry that is answered
 * @param {{ version: string | undefined, askedAt: number }} seen
 */
export const isNoOlder = ({ held }, seen) =>
  (held.value !== undefined && held.value.version === seen.version) || held.askedAt >= seen.askedAt
