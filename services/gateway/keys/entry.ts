// This gateway's record of one key: its value, its problem, and the sessions and requests that want it. Where values differ
// per user, there is one for each user.
import { readViewerKey } from '@keycast/backbone'

/**
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {import('@keycast/service').Namespace} Namespace
 * @typedef {import('./problem.ts').Problem} Problem
 * @typedef {import('./value.ts').Value} Value
 * @typedef {import('./subscriptions.ts').Subscription} Subscription
 *
 * The answer to a request for a key. `ageMs`: since the backend was asked for it; `maxAgeMs`: up to which age it may be
 * used; `store` false: not to be kept by anyone (`no-store`, `private`).
 * @typedef {{ value: Value, problem?: undefined, ageMs: number, maxAgeMs: number, store: boolean }} Found
 * @typedef {{ value?: undefined, problem: Problem }} NotFound
 * @typedef {Found | NotFound} Result
 *
 * A request that waits for an answer of the fetcher.
 * @typedef {{ resolve: (result: Result) => void, deadlineAtMs: number }} Waiter
 *
 * @typedef {object} Entry
 * @property {string} key that clients know
 * @property {string} wireKey for the cache and the backbone: the key, or the viewer key of a user's own value
 * @property {string | undefined} viewer the viewer whose own value it is; `undefined` if all viewers have the same
 * @property {Namespace} namespace
 * @property {Value | undefined} value
 * @property {boolean} wasFound whether it has had a value since it was made
 * @property {number} askedAtMs the time at which the backend was asked for the known state (value or `not_found`);
 *   never moves back
 * @property {import('./age.ts').Refreshes | undefined} refreshes silent refreshes, which move the time above on without
 *   an answer: see age.ts
 * @property {number} maxAgeMs
 * @property {boolean} store
 * @property {Problem | undefined} problem of the last try; undefined after a good one
 * @property {Subscription[]} subscriptions while there are any, the key is watched
 * @property {number} pendingSubscriptions the number of subscriptions that were sent nothing of the value yet
 * @property {number} watchedAtMs
 * @property {boolean} isWatchAnswered whether any answer came since the watch began: from then on the fetcher keeps the
 *   key fresh
 * @property {ErrorCode | undefined} announcedCode of the `error` that every subscriber has been sent
 * @property {boolean} stale whether every subscriber has been sent `stale`
 * @property {import('../encodings/slots.ts').Slots<Buffer> | undefined} problemFrames the frames of that `error` or
 *   `stale`
 * @property {number} problemFramesAtMs
 * @property {Waiter[]} waiters
 * @property {number} calendarPage its page in calendar.ts; Infinity if it has none
 * @property {number} bytes its size, as the cache counted it
 */

/** Shared by all entries without subscriptions or waiters, so that an idle one costs no lists. Never pushed to. */
export const NOBODY = /** @type {any[]} */ (/** @type {unknown} */ (Object.freeze([])))

/**
 * @param {string} wireKey
 * @param {Namespace} namespace
 * @returns {Entry}
 */
export function createEntry(wireKey, namespace) {
  const viewed = namespace.isPerUser ? readViewerKey(wireKey) : undefined
  return {
    key: viewed?.key ?? wireKey,
    wireKey,
    viewer: viewed?.viewer,
    namespace,
    value: undefined,
    wasFound: false,
    askedAtMs: Number.NEGATIVE_INFINITY,
    refreshes: undefined,
    maxAgeMs: namespace.maxAgeMs,
    store: true,
    problem: undefined,
    subscriptions: NOBODY,
    pendingSubscriptions: 0,
    watchedAtMs: Number.NEGATIVE_INFINITY,
    isWatchAnswered: false,
    announcedCode: undefined,
    stale: false,
    problemFrames: undefined,
    problemFramesAtMs: Number.NEGATIVE_INFINITY,
    waiters: NOBODY,
    calendarPage: Number.POSITIVE_INFINITY,
    bytes: 0,
  }
}

/**
 * Whether the backend never had anything under the key, as far as this gateway saw. Anyone can invent such keys.
 *
 * @param {Entry} entry
 */
export function isMissing({ wasFound, problem }) {
  return !wasFound && problem?.code === 'not_found'
}

/**
 * Whether a session or a request wants the key now. A wanted entry is kept, however large.
 *
 * @param {Entry} entry
 */
export function isWanted(entry) {
  return entry.subscriptions.length > 0 || entry.waiters.length > 0
}
