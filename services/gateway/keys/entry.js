// What this gateway knows of one key: its value, its trouble, and who wants it.

/**
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {import('@keycast/service').Namespace} Namespace
 * @typedef {import('./value.js').Value} Value
 * @typedef {import('./subscriptions.js').Subscription} Subscription
 *
 * Why a key's last try gave nothing. `atMs`: on the gateway's monotonic clock. With `retryAfterMs` it heals by itself.
 * `local`: nobody said so, the gateway concluded it from silence.
 * @typedef {{ code: ErrorCode, message: string, retryAfterMs: number | undefined, atMs: number, local: boolean }} Problem
 *
 * What somebody who asked for a key is told. `ageMs`: since the backend was asked for it; `maxAgeMs`: up to which age
 * it may be used; `store` false: not to be kept by anyone (`no-store`, `private`).
 * @typedef {{ value: Value, problem?: undefined, ageMs: number, maxAgeMs: number, store: boolean }} Found
 * @typedef {{ value?: undefined, problem: Problem }} NotFound
 * @typedef {Found | NotFound} Outcome
 *
 * @typedef {{ settle: (outcome: Outcome) => void, deadlineAtMs: number }} Waiter
 *
 * @typedef {object} Entry
 * @property {string} key
 * @property {Namespace} namespace
 * @property {Value | undefined} value
 * @property {number} askedAtMs when the backend was asked for what is held (value or `not_found`); never moves back
 * @property {number} maxAgeMs
 * @property {boolean} store
 * @property {Problem | undefined} problem of the last try; undefined after a good one
 * @property {Subscription[]} subscriptions while there are any, the key is watched
 * @property {number} waitingSubscriptions how many of them have not been sent anything of the value yet
 * @property {number} watchedAtMs
 * @property {boolean} answered whether anything came since it is watched: from then on the fetcher keeps it fresh
 * @property {ErrorCode | undefined} told the code every subscriber has been told
 * @property {boolean} stale whether subscribers have been told that the value is
 * @property {Buffer | undefined} troubleFrame what they were told, see lacks.js
 * @property {number} troubleFrameAtMs
 * @property {Waiter[]} waiters who waits for one answer
 * @property {number} deadlinePage where deadlines.js has it; Infinity where it has not
 * @property {number} bytes what the cache counts it as
 */

/** Shared by all entries nobody subscribes to or waits for, so that an idle one costs no lists. Never pushed to. */
export const NOBODY = /** @type {any[]} */ (/** @type {unknown} */ (Object.freeze([])))

/**
 * @param {string} key well-formed
 * @param {Namespace} namespace
 * @returns {Entry}
 */
export function createEntry(key, namespace) {
  return {
    key,
    namespace,
    value: undefined,
    askedAtMs: Number.NEGATIVE_INFINITY,
    maxAgeMs: namespace.maxAgeMs,
    store: true,
    problem: undefined,
    subscriptions: NOBODY,
    waitingSubscriptions: 0,
    watchedAtMs: Number.NEGATIVE_INFINITY,
    answered: false,
    told: undefined,
    stale: false,
    troubleFrame: undefined,
    troubleFrameAtMs: Number.NEGATIVE_INFINITY,
    waiters: NOBODY,
    deadlinePage: Number.POSITIVE_INFINITY,
    bytes: 0,
  }
}

/**
 * Whether somebody wants the key now: it is then kept whatever it costs.
 *
 * @param {Entry} entry
 */
export function isWanted(entry) {
  return entry.subscriptions.length > 0 || entry.waiters.length > 0
}
