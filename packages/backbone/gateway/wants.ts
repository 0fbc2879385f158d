// The keys that a gateway wants of one node, the keys that the node was told of, and the requests that make up the
// difference. Wants are state: all of them can be sent again at any time.
import { createUniqueQueue, type UniqueQueue } from '@keycast/service'
import type { Service } from '../wire/codec.ts'
import { KEYS_PER_REQUEST_MAX, REQUEST_BYTES_MAX, type Saying } from '../wire/envelope.ts'

/** A gateway's interest in a key. A watch stands until it is ended; a get is over with its answer. */
export interface Interest {
  watch: boolean
  get: boolean
}

/**
 * The interest that the node has been told of. `since`: number of the request from which on the node knew the key;
 * answers made before it belong to an earlier interest. `getNumber`: number of the request that said the get. Both are
 * Infinity while an interest that began again is not said yet. `isWatchDue`: the watch is to be said again though the
 * node was told of it.
 */
interface Told {
  watch: boolean
  get: boolean
  since: number
  getNumber: number
  isWatchDue: boolean
}

export interface WantEvents<S extends Service> {
  /** The gateway's position in the key; looked up when a want is sent. */
  position: (key: string) => S['Position'] | undefined
  /** Other fields of a want; looked up likewise. */
  payload?: PayloadOf<S>
}

export type PayloadOf<S extends Service> = (key: string, type: 'watch' | 'get') => S['Payload'] | undefined

/** Bytes of the payloads in one request: with the other fields of 500 wants it stays below a node's limit. */
const PAYLOAD_BYTES_MAX = REQUEST_BYTES_MAX / 2

export function createWants<S extends Service>({ position, payload }: WantEvents<S>) {
  const interests = new Map<string, Interest>()
  let told = new Map<string, Told>()
  /** Keys whose interest changed, so that the node may have to be told. */
  let changed = createUniqueQueue() as UniqueQueue<string>
  /**
   * Walks over all keys to send them again; keys that change meanwhile go first. A walk instead of a queue of all keys:
   * making that would take as long as a few thousand answers.
   */
  let repeating: Iterator<string> | undefined

  function startAnew() {
    told = new Map()
    changed = createUniqueQueue()
    repeating = interests.size > 0 ? interests.keys() : undefined
  }

  /** @returns the next key that may have to be sent */
  function nextKey(): string | undefined {
    const key = changed.take()
    if (key !== undefined || !repeating) return key
    const { done, value } = repeating.next()
    if (done) repeating = undefined
    return value
  }

  function want(key: string, change: Partial<Interest>) {
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

  /** Sends a standing watch again: its payload changed. */
  function renewWatch(key: string) {
    const known = told.get(key)
    if (!known || !interests.get(key)?.watch) return
    known.isWatchDue = true
    changed.add(key)
  }

  function forgetIfIdle(key: string) {
    const interest = interests.get(key)
    if (interest && !interest.watch && !interest.get) interests.delete(key)
    const known = told.get(key)
    if (known && !known.watch && !known.get && !interests.has(key)) told.delete(key)
  }

  /**
   * Notes that the node answered for a key after it had heard the first `reached` requests.
   *
   * @returns `earlier`: the answer belongs to an interest that ended; `got`: it answers and ends the key's get
   */
  function take(key: string, reached: number): 'earlier' | 'state' | 'got' {
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
   * @param nextNumber called once for each request
   */
  function* nextRequests(nextNumber: () => number): Generator<{ number: number; saying: Saying<S> }> {
    const keys: { watch: string[]; get: string[]; unwatch: string[]; cancelGet: string[] } = {
      watch: [],
      get: [],
      unwatch: [],
      cancelGet: [],
    }
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
    for (const type of ['unwatch', 'cancelGet'] as const) {
      if (keys[type].length === 0) continue
      const number = nextNumber()
      for (const key of keys[type]) noteUntold(key, type)
      yield { number, saying: { type, keys: keys[type] } }
    }
    for (const type of ['watch', 'get'] as const) {
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

  function noteTold(key: string, type: 'watch' | 'get', number: number) {
    const known = told.get(key) ?? { watch: false, get: false, since: number, getNumber: 0, isWatchDue: false }
    known[type] = true
    known.since = Math.min(known.since, number)
    if (type === 'get') known.getNumber = number
    else known.isWatchDue = false
    told.set(key, known)
  }

  function noteUntold(key: string, type: 'unwatch' | 'cancelGet') {
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
    /** @returns any key that is wanted */
    sample: (): string | undefined => interests.keys().next().value,
  }
}

/** Payloads are flat; only longer ones have to be counted. */
function payloadBytes(payload: Record<string, unknown> | undefined) {
  let bytes = 0
  for (const field in payload) {
    const value = payload[field]
    if (typeof value === 'string') bytes += value.length
  }
  return bytes
}
