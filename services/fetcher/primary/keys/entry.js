// What the primary knows of one key: who wants it, what is held, what is under way, and when it is asked again.

/**
 * @typedef {import('@keycast/backbone').Delta} Delta
 * @typedef {import('@keycast/backbone').Format} Format
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {import('@keycast/service').Namespace} Namespace
 * @typedef {import('../timing/backoff.js').Backoff} Backoff
 * @typedef {import('../fetching/fetch-queue.js').Lane} Lane
 * @typedef {import('../origins/origins.js').Origin} Origin
 * @typedef {import('../timing/timer-wheel.js').Timer} Timer
 *
 * The bytes held, and what the backend said of them. `store` false: held only while somebody wants the key. `delta`: from
 * the version held before, where there is one. `cameAt`: when a worker brought it.
 * @typedef {{ version: string, contentType: string, format: Format, body: Buffer, delta: Delta | undefined, store: boolean,
 *   etag: string | undefined, lastModified: string | undefined, cameAt: number }} Value
 *
 * Why the last try gave nothing. Made anew by each try, so that it also tells tries apart. `askedAt`: of that try.
 * @typedef {{ code: ErrorCode, message: string, askedAt: number }} Problem
 *
 * A link that watches: what its gateway holds, by its own word or because it was sent since. `askedAt`: when the backend
 * was asked for that. `problem`: the last one it was told, unless something better followed. `owed`: it said `watch` and
 * has had no answer. `told`: something was made known to it, though it may not have been sent yet.
 * @typedef {{ version: string | undefined, askedAt: number, problem: Problem | undefined, owed: boolean, told: boolean }} Watcher
 *
 * A link that waits for one answer. `ready`: it is there, and goes out when the link takes it. `late`: it came when another
 * fetch had to follow the one under way, which was sent before the key changed: only that other one will do.
 * @typedef {{ version: string | undefined, askedAt: number, ready: boolean, late: boolean }} Waiter
 *
 * A fetch from the moment it is wanted. Without `sentAt` it waits in its lane. `attempt`: which worker this is.
 * @typedef {{ entry: Entry, lane: Lane, queuedAt: number, sentAt: number | undefined, attempt: 1 | 2, probe: boolean }} Fetch
 *
 * @typedef {object} Entry
 * @property {string} key well-formed, of a known namespace
 * @property {Namespace} namespace
 * @property {Origin} origin
 * @property {Map<string, Watcher>} watchers by link
 * @property {Map<string, Waiter>} waiters by link
 * @property {boolean} lingering the last watcher left a moment ago; the key is still kept fresh
 * @property {Value | undefined} value
 * @property {Problem | undefined} problem of the last try; undefined after a good one. `not_found` is an answer: then
 *   there is no value
 * @property {number} askedAt when the backend was asked for the value or `not_found` held
 * @property {number} maxAgeMs up to which age that answers a fetch
 * @property {boolean} invalid the backend said it changed since
 * @property {Fetch | undefined} fetch the one under way
 * @property {boolean} again another must follow it
 * @property {number | undefined} phaseAt the time of some periodic refresh; the others are whole periods away
 * @property {number | undefined} nextTryAt when the key is tried by itself; for one that fails unwatched, from when on
 *   it may be tried
 * @property {number} notBeforeAt the backend asked for patience until then
 * @property {number} backoffAt when the last wait of its own is over, whatever the backend asked for
 * @property {Backoff | undefined} backoff while tries fail
 * @property {number} wokenAt when it last was tried before its time because its backend had recovered
 * @property {Timer | undefined} timer of the next try
 * @property {Timer | undefined} lingerTimer
 * @property {number} bytes what the key table counts it as
 * @property {boolean} counted whether that counts it as kept
 */

/**
 * @param {string} key
 * @param {Namespace} namespace
 * @param {Origin} origin
 * @returns {Entry}
 */
export function createEntry(key, namespace, origin) {
  return {
    key,
    namespace,
    origin,
    watchers: new Map(),
    waiters: new Map(),
    lingering: false,
    value: undefined,
    problem: undefined,
    askedAt: Number.NEGATIVE_INFINITY,
    maxAgeMs: namespace.maxAgeMs,
    invalid: false,
    fetch: undefined,
    again: false,
    phaseAt: undefined,
    nextTryAt: undefined,
    notBeforeAt: Number.NEGATIVE_INFINITY,
    backoffAt: Number.NEGATIVE_INFINITY,
    backoff: undefined,
    wokenAt: Number.NEGATIVE_INFINITY,
    timer: undefined,
    lingerTimer: undefined,
    bytes: 0,
    counted: false,
  }
}

/** Whether the key is kept fresh: somebody watches it, or did a moment ago. @param {Entry} entry */
export const isKept = entry => entry.watchers.size > 0 || entry.lingering

/** Whether somebody wants the key: it is kept fresh, or waited for. @param {Entry} entry */
export const isWanted = entry => isKept(entry) || entry.waiters.size > 0

/** Whether the entry must stay. @param {Entry} entry */
export const isInUse = entry => isWanted(entry) || entry.fetch !== undefined

/** Whether the last try failed; that the backend has nothing is no failure. @param {Entry} entry */
export const isFailing = ({ problem }) => problem !== undefined && problem.code !== 'not_found'

/** Whether there is an answer of the backend: its value, or that it has none. @param {Entry} entry */
export const isAnswered = ({ value, problem }) => value !== undefined || problem?.code === 'not_found'

/**
 * Whether what is held answers a fetch.
 *
 * @param {Entry} entry
 * @param {number} now
 */
export const isFresh = (entry, now) => isAnswered(entry) && !entry.invalid && now - entry.askedAt <= entry.maxAgeMs

/**
 * Whether what is held may be told to somebody who holds `seen` already: the same, or asked for later. Versions have
 * no order; when the backend was asked has.
 *
 * @param {Entry} entry that is answered
 * @param {{ version: string | undefined, askedAt: number }} seen
 */
export const isNoOlder = (entry, seen) =>
  (entry.value !== undefined && entry.value.version === seen.version) || entry.askedAt >= seen.askedAt

/**
 * Whether somebody waits for the key who has nothing of it yet. Those who have been told something do not count.
 *
 * @param {Entry} entry
 */
export function isCold({ watchers, waiters }) {
  for (const { ready } of waiters.values()) if (!ready) return true
  for (const { version, told } of watchers.values()) if (version === undefined && !told) return true
  return false
}
