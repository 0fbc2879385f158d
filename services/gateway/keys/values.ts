// The table of keys: an entry for each key that is wanted or worth keeping, and the answers that these can give.

import { readViewerKey } from '@keycast/backbone'
import { excerpt, keyProblem, namespaceOf } from '@keycast/protocol'
import { askedAtOf, latestAskedAtOf, planOf } from './age.ts'
import { createEntry } from './entry.ts'

/**
 * @typedef {import('@keycast/backbone').Backbone} Backbone
 * @typedef {import('@keycast/backbone').Held} Held
 * @typedef {import('./entry.ts').Entry} Entry
 * @typedef {import('./entry.ts').Result} Result
 * @typedef {ReturnType<typeof createValues>} Values
 */

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {import('./cache.ts').Cache} deps.cache
 * @param {Pick<Backbone, 'ownerOf'>} deps.backbone
 * @param {(entry: Entry) => void} [deps.onOpened]
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createValues({ namespaces, cache, backbone, onOpened = () => {}, now }) {
  /**
   * The entry of a key, made if there is none. It must be wanted (subscribed to or waited for) before the cache's
   * `update` sees it, or it is dropped again.
   *
   * @param {string} wireKey of a key that passed the gate
   * @returns {Entry}
   */
  function open(wireKey) {
    const known = cache.get(wireKey)
    if (known) return known
    const namespace = namespaces.get(namespaceOf(wireKey))
    // A caller that forgot to check would let a stranger choose the URLs that the fetcher asks the backend for. One
    // that forgot the viewer would show one user's value to all.
    const isOwn = namespace?.isPerUser === true
    const key = isOwn ? readViewerKey(wireKey)?.key : wireKey
    if (!namespace || key === undefined || keyProblem(key)) {
      throw new Error(`opened ${excerpt(wireKey)}, which nobody checked`)
    }
    const entry = createEntry(wireKey, namespace)
    cache.add(entry)
    onOpened(entry)
    return entry
  }

  /**
   * The answer for a key from memory, no older than its `maxAgeMs`: its value, or `not_found`. `undefined` if the
   * fetcher must be asked.
   *
   * @param {string} wireKey
   * @param {number} [asOfMs] the time at which it must not be too old: now, unless the question was asked earlier
   * @returns {Result | undefined}
   */
  function fresh(wireKey, asOfMs = now()) {
    const entry = cache.get(wireKey)
    if (!entry) return undefined
    if (asOfMs - askedAtOf(entry) > entry.maxAgeMs) return undefined
    if (entry.value) return latest(entry)
    return entry.problem?.code === 'not_found' ? { problem: entry.problem } : undefined
  }

  /**
   * The last known value or failure of a key, however old.
   *
   * @param {Entry} entry that has a value or a problem
   * @returns {Result}
   */
  function latest(entry) {
    if (!entry.value) return { problem: /** @type {import('./problem.ts').Problem} */ (entry.problem) }
    return { value: entry.value, ageMs: ageOf(entry), maxAgeMs: entry.maxAgeMs, store: entry.store }
  }

  /**
   * This gateway's version of a key, which the backbone tells the fetcher.
   *
   * @param {string} wireKey
   * @returns {Held | undefined}
   */
  function held(wireKey) {
    const entry = cache.get(wireKey)
    if (!entry?.value) return undefined
    const nowMs = now()
    const ageMs = Math.max(0, nowMs - latestAskedAtOf(entry))
    return { version: entry.value.version, ageMs, plan: planOf(entry, nowMs) }
  }

  /** @param {Entry} entry */
  function ageOf(entry) {
    return Math.max(0, now() - askedAtOf(entry))
  }

  /**
   * Everything known of a key, for an operator who asks why it is stale. All of it is this gateway's view.
   *
   * @param {string} key
   */
  function describe(key) {
    const entry = cache.peek(key)
    const nowMs = now()
    return {
      key,
      owner: backbone.ownerOf(key),
      watched: entry ? entry.subscriptions.length > 0 : false,
      subscribers: entry?.subscriptions.length ?? 0,
      waiters: entry?.waiters.length ?? 0,
      stale: entry?.stale ?? false,
      value: entry?.value && {
        version: entry.value.version,
        contentType: entry.value.contentType,
        bytes: entry.value.body.length,
        ageMs: Math.round(nowMs - askedAtOf(entry)),
        maxAgeMs: entry.maxAgeMs,
        store: entry.store,
      },
      problem: entry?.problem && {
        code: entry.problem.code,
        message: entry.problem.message,
        retryAfterMs: entry.problem.retryAfterMs,
        agoMs: Math.round(nowMs - entry.problem.atMs),
      },
    }
  }

  return { open, fresh, latest, held, describe }
}
