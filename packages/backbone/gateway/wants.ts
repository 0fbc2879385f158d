// The keys that a gateway wants of one node, the keys that the node was told of, and the requests that make up the
// difference. Wants are state: all of them can be sent again at any time.
import { createUniqueQueue } from '@keycast/service'
import { KEYS_PER_REQUEST_MAX, REQUEST_BYTES_MAX } from '../wire/envelope.ts'

/**
 * @typedef {import('../wire/codec.ts').Service} Service
 *
 * A gateway's interest in a key. A watch stands until it is ended; a get is over with its answer.
 * @typedef {{ watch: boolean, get: boolean }} Interest
 *
 * The interest that the node has been told of. `since`: number of the request from which on the node knew the key;
 * answers made before it belong to an earlier interest. `getNumber`: number of the request that said the get. Both are
 * Infinity while an interest that began again is not said yet. `isWatchDue`: the watch is to be said again though the
 * node was told of it.
 * @typedef {{ watch: boolean, get: boolean, since: number, getNumber: number, isWatchDue: boolean }} Told
 */

/**
 * @template {Service} S
 * @typedef {object} WantEvents
 * @property {(key: string) => S['Position'] | undefined} position the gateway's position in the key; looked up when a
 *   want is sent
 * @property {PayloadOf<S>} [payload] other fields of a want; looked up likewise
 */

/**
 * @template {Service} S
 * @typedef {(key: string, type: 'watch' | 'get') => S['Payload'] | undefined} PayloadOf
 */

/** Bytes of the payloads in one request: with the other fields of 500 wants it stays below a node's limit. */
const PAYLOAD_BYTES_MAX = REQUEST_BYTES_MAX / 2

/**
 * @template {Service} S
 * @param {WantEvents<S>} events
 */
export function createWants({ position, payload }) {
  /** @type {Map<string, Interest>} */
  const interests = new Map()
  /** @type {Map<string, Told>} */
  let told = new Map()
  /** Keys whose interest changed, so that the node may have to be told. */
  let changed = /** @type {import('@keycast/service').UniqueQueue<string>} */ (createUniqueQueue())
  /**
   * Walks over all keys to send them again; keys that change meanwhile go first. A walk instead of a queue of all keys:
   * making that would take as long as a few thousand answers.
   *
   * @type {Iterator<string> | undefined}
   */
  let repeating

  function startAnew() {
    told = new Map()
    changed = createUniqueQueue()
    repeating = interests.size > 0 ? interests.keys() : undefined
  }

  /** @returns {string | undefined} the next key that may have to be sent */
  function nextKey() {
    const key = changed.take()
    if (key !== undefined || !repeating) return key
    const { done, value } = repeating.next()
    if (done) repeating = undefined
    return value
  }

  /** @param {string} key @param {Partial<Interest>} change */
  function want(key, change) {
    const interest = interests.get(key) ?? { watch: false, get: false }
    const known = told.get(key)
    if (known) {
      // A new interest waits for an answer, and the node only answers a new request.
      if (!interest.watch && !interest.get) known.since = Number.POSITIVE_INFINITY
      if (change.watch !== undefined) known.isWatchDue = change.watch && (known.isWatchDue || !interest.watch)
      if (change.get && !interest.get) known.getNumber = Number.POSITIVE_INFINITY
    }
    interests.set(key, Object.assign(interest, change))
    changed.add(key)
    forgetIfIdle(key)
  }

  /** Sends a standing watch again: its payload changed. @param {string} key */
  function renewWatch(key) {
    const known = told.get(key)
    if (!known || !interests.get(key)?.watch) return
    known.isWatchDue = true
    changed.add(key)
  }

  /** @param {string} key */
  function forgetIfIdle(key) {
    const interest = interests.get(key)
    if (interest && !interest.watch && !interest.get) interests.delete(key)
    const known = told.get(key)
    if (known && !known.watch && !known.get && !interests.has(key)) told.delete(key)
  }

  /**
   * Notes that the node answered for a key after it had heard the first `reached` requests.
   *
   * @param {string} key @param {number} reached
   * @returns {'earlier' | 'state' | 'got'} `earlier`: the answer belongs to an interest that ended; `got`: it answers
   *   and ends the key's get
   */
  function take(key, reached) {
    const interest = interests.get(key)
    const known = told.get(key)
    if (!interest || !known || reached < known.since) return 'earlier'
    if (!known.get || reached < known.getNumber) return 'state'
    known.get = false
    interest.get = false
    forgetIfIdle(key)
    return 'got'
  }

  /**
   * The next requests, none with more keys than a message may name; each counts as told when it is taken.
   *
   * @param {() => number} nextNumber called once for each request
   * @returns {Generator<{ number: number, saying: import('../wire/envelope.ts').Saying<S> }>}
   */
  function* nextRequests(nextNumber) {
    /** @type {{ watch: string[], get: string[], unwatch: string[], cancelGet: string[] }} */
    const keys = { watch: [], get: [], unwatch: [], cancelGet: [] }
    for (let count = 0; count < KEYS_PER_REQUEST_MAX; count++) {
      const key = nextKey()
      if (key === undefined) break
      const interest = interests.get(key)
      const known = told.get(key)
      if (interest?.watch && (!known?.watch || known.isWatchDue)) keys.watch.push(key)
      if (!interest?.watch && known?.watch) keys.unwatch.push(key)
      if (interest?.get && (!known?.get || known.getNumber === Number.POSITIVE_INFINITY)) keys.get.push(key)
      if (!interest?.get && known?.get) keys.cancelGet.push(key)
    }
    for (const type of /** @type {const} */ (['unwatch', 'cancelGet'])) {
      if (keys[type].length === 0) continue
      const number = nextNumber()
      for (const key of keys[type]) noteUntold(key, type)
      yield { number, saying: { type, keys: keys[type] } }
    }
    for (const type of /** @type {const} */ (['watch', 'get'])) {
      for (let next = 0; next < keys[type].length; ) {
        const number = nextNumber()
        const wants = []
        for (let bytes = 0; next < keys[type].length && bytes < PAYLOAD_BYTES_MAX; next++) {
          const key = keys[type][next]
          noteTold(key, type, number)
          const said = payload?.(key, type)
          wants.push(
            said === undefined ? { key, position: position(key) } : { key, position: position(key), payload: said },
          )
          bytes += payloadBytes(said)
        }
        yield { number, saying: { type, wants } }
      }
    }
  }

  /** @param {string} key @param {'watch' | 'get'} type @param {number} number */
  function noteTold(key, type, number) {
    const known = told.get(key) ?? { watch: false, get: false, since: number, getNumber: 0, isWatchDue: false }
    known[type] = true
    known.since = Math.min(known.since, number)
    if (type === 'get') known.getNumber = number
    else known.isWatchDue = false
    told.set(key, known)
  }

  /** @param {string} key @param {'unwatch' | 'cancelGet'} type */
  function noteUntold(key, type) {
    const known = told.get(key)
    if (!known) return
    if (type === 'unwatch') known.watch = false
    else known.get = false
    if (!known.watch && !known.get) told.delete(key)
  }

  return {
    startAnew,
    want,
    renewWatch,
    take,
    nextRequests,
    isAllSaid: () => changed.size === 0 && !repeating,
    /** @returns {string | undefined} any key that is wanted */
    sample: () => interests.keys().next().value,
  }
}

/** Payloads are flat; only longer ones have to be counted. @param {Record<string, unknown> | undefined} payload */
function payloadBytes(payload) {
  let bytes = 0
  for (const field in payload) {
    const value = payload[field]
    if (typeof value === 'string') bytes += value.length
  }
  return bytes
}
