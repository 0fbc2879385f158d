// What a gateway wants of one fetcher node, what the node has been told of it, and the requests that make up the
// difference. Knows neither sockets nor time.
import { KEYS_PER_REQUEST_MAX } from '../wire/envelope.js'

/**
 * @typedef {import('../backbone.js').Held} Held
 * @typedef {import('../wire/envelope.js').Request} Request
 *
 * What the gateway wants of a key, and what the node has been told. `since`: number of the request from which on the
 * node knew the key; answers made before it belong to an earlier interest. `isWatchAnew`: the watch ended and began again
 * before its end was said. `since` and `fetchNumber` are Infinity until what began again is said.
 * @typedef {{ watch: boolean, fetch: boolean }} Interest
 * @typedef {{ watch: boolean, fetch: boolean, since: number, fetchNumber: number, isWatchAnew: boolean }} Told
 *
 * @typedef {{ keys: string[], done: () => void, number: number }} Refresh `number` 0: not said in the present incarnation
 */

/** @param {{ held: (key: string) => Held | undefined }} options looked up at the moment a want is said */
export function createInterests({ held }) {
  /** @type {Map<string, Interest>} */
  const interests = new Map()
  /** @type {Map<string, Told>} */
  const told = new Map()
  /** Keys whose interest and what was told of it may differ. @type {Set<string>} */
  let dirty = new Set()
  /** @type {Set<Refresh>} */
  const refreshes = new Set()
  let number = 0 // of requests made in this incarnation
  let incarnation = 0

  /** The node knows nothing of what it was told: all of it is to be said again, numbered from 1. */
  function startAnew() {
    incarnation++
    number = 0
    told.clear()
    dirty = new Set(interests.keys())
    for (const refresh of refreshes) refresh.number = 0
  }

  /** @param {string} key @param {Partial<Interest>} change */
  function want(key, change) {
    const interest = interests.get(key) ?? { watch: false, fetch: false }
    const known = told.get(key)
    if (known) {
      // Whoever wants it again waits for an answer, which the node only owes to a new request.
      if (!interest.watch && !interest.fetch) known.since = Number.POSITIVE_INFINITY
      if (change.watch !== undefined) known.isWatchAnew = change.watch && (known.isWatchAnew || !interest.watch)
      if (change.fetch && !interest.fetch) known.fetchNumber = Number.POSITIVE_INFINITY
    }
    interests.set(key, Object.assign(interest, change))
    dirty.add(key)
    forgetIfIdle(key)
  }

  /** @param {string} key */
  function forgetIfIdle(key) {
    const interest = interests.get(key)
    if (interest && !interest.watch && !interest.fetch) interests.delete(key)
    const known = told.get(key)
    if (known && !known.watch && !known.fetch && !interests.has(key)) told.delete(key)
  }

  /**
   * Sets down that the node answered for a key after it had heard the first `reached` requests.
   *
   * @param {string} key @param {number} reached
   * @returns {'earlier' | 'state' | 'fetched'} `earlier`: of an interest that ended, or did before the present one began;
   *   `fetched`: the answer to the key's fetch, which is over with it
   */
  function take(key, reached) {
    const interest = interests.get(key)
    const known = told.get(key)
    if (!interest || !known || reached < known.since) return 'earlier'
    if (!known.fetch || reached < known.fetchNumber) return 'state'
    known.fetch = false
    interest.fetch = false
    forgetIfIdle(key)
    return 'fetched'
  }

  /** @returns {Refresh | undefined} */
  function unsaidRefresh() {
    for (const refresh of refreshes) if (refresh.number === 0) return refresh
    return undefined
  }

  /**
   * The next requests, of which none names more keys than a message may. Sets down as told what they say; ends where
   * {@link startAnew} came between two of them.
   *
   * @param {string} link
   * @returns {Generator<Request>}
   */
  function* nextRequests(link) {
    /** @type {{ watch: string[], fetch: string[], unwatch: string[], cancel: string[] }} */
    const keys = { watch: [], fetch: [], unwatch: [], cancel: [] }
    let count = 0
    for (const key of dirty) {
      if (count++ === KEYS_PER_REQUEST_MAX) break
      dirty.delete(key)
      const interest = interests.get(key)
      const known = told.get(key)
      if (interest?.watch && (!known?.watch || known.isWatchAnew)) keys.watch.push(key)
      if (!interest?.watch && known?.watch) keys.unwatch.push(key)
      if (interest?.fetch && (!known?.fetch || known.fetchNumber > number)) keys.fetch.push(key)
      if (!interest?.fetch && known?.fetch) keys.cancel.push(key)
    }
    const current = incarnation
    for (const type of /** @type {const} */ (['unwatch', 'cancel'])) {
      if (keys[type].length === 0 || current !== incarnation) continue
      number++
      for (const key of keys[type]) noteUntold(key, type)
      yield { type, link, number, keys: keys[type] }
    }
    for (const type of /** @type {const} */ (['watch', 'fetch'])) {
      if (keys[type].length === 0 || current !== incarnation) continue
      number++
      for (const key of keys[type]) noteTold(key, type)
      yield { type, link, number, wants: keys[type].map(key => ({ key, held: held(key) })) }
    }
    const refresh = unsaidRefresh()
    if (refresh && current === incarnation) {
      refresh.number = ++number
      yield { type: /** @type {const} */ ('refresh'), link, number, keys: refresh.keys }
    }
  }

  /** @param {string} key @param {'watch' | 'fetch'} type */
  function noteTold(key, type) {
    const known = told.get(key) ?? { watch: false, fetch: false, since: number, fetchNumber: 0, isWatchAnew: false }
    known[type] = true
    known.since = Math.min(known.since, number)
    if (type === 'fetch') known.fetchNumber = number
    else known.isWatchAnew = false
    told.set(key, known)
  }

  /** @param {string} key @param {'unwatch' | 'cancel'} type */
  function noteUntold(key, type) {
    const known = told.get(key)
    if (!known) return
    if (type === 'unwatch') known.watch = false
    else known.fetch = false
    if (!known.watch && !known.fetch) told.delete(key)
  }

  return {
    startAnew,
    want,
    take,
    nextRequests,
    isAllSaid: () => dirty.size === 0 && !unsaidRefresh(),
    /** @param {string[]} keys at most KEYS_PER_REQUEST_MAX @param {() => void} done @returns {() => void} takes it back */
    refresh(keys, done) {
      const refresh = { keys, done, number: 0 }
      refreshes.add(refresh)
      return () => refreshes.delete(refresh)
    },
    /** The node has heard the first `reached` requests: calls back whose refresh was among them. @param {number} reached */
    confirm(reached) {
      for (const refresh of refreshes) {
        if (refresh.number === 0 || refresh.number > reached) continue
        refreshes.delete(refresh)
        refresh.done()
      }
    },
  }
}
