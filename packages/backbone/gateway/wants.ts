// The keys that a gateway wants of one node, the keys that the node was told of, and the requests that make up the
// difference. Wants are state: all of them can be sent again at any time.
import { createUniqueQueue, type Payer, type UniqueQueue } from '@keycast/service'
import { type Service, textIn } from '../wire/codec.ts'
import { KEYS_PER_REQUEST_MAX, REQUEST_BYTES_MAX, type Saying } from '../wire/envelope.ts'

/**
 * A key that a gateway wants, or of which a node is still to be told that it is wanted no more. A watch stands until it
 * is ended; a get is over with its answer.
 *
 * - `watchTold`, `getTold`: the node was told of it, in this `generation` of its link. Of an earlier generation they count
 *   for nothing: so a new connection costs nothing per key.
 * - `since`: number of the request from which on the node knew the key; answers made before it belong to an earlier
 *   interest. `getNumber`: number of the request that said the get. Both are Infinity while that is not said yet.
 * - `isWatchDue`: the watch is to be said again though the node was told of it.
 * - `place`: in its link's list.
 */
export interface Want<L = unknown> {
  key: string
  watch: boolean
  get: boolean
  /** Whose node was asked. A link and not a name: a node that is found again under its name was not asked then. */
  link: L | undefined
  generation: number
  watchTold: boolean
  getTold: boolean
  since: number
  getNumber: number
  isWatchDue: boolean
  place: number
}

export const newWant = <L>(key: string, link?: L): Want<L> => ({
  key,
  watch: false,
  get: false,
  link,
  generation: 0,
  watchTold: false,
  getTold: false,
  since: Number.POSITIVE_INFINITY,
  getNumber: Number.POSITIVE_INFINITY,
  isWatchDue: false,
  place: -1,
})

type Change = Partial<Pick<Want, 'watch' | 'get'>>

export const isWanted = ({ watch, get }: Want) => watch || get

export interface WantEvents<S extends Service> {
  /** The gateway's position in the key; looked up when a want is sent. */
  position: (key: string, type: 'watch' | 'get') => S['Position'] | undefined
  /** Other fields of a want; looked up likewise. */
  payload?: (key: string, type: 'watch' | 'get') => S['Payload'] | undefined
  /** Whom the node charges for it; looked up likewise. */
  payer?: (key: string, type: 'watch' | 'get') => Payer | undefined
}

/** Bytes of the payloads in one request: with the other fields of 500 wants it stays below a node's limit. */
const PAYLOAD_BYTES_MAX = REQUEST_BYTES_MAX / 2

export interface WantOptions<S extends Service> extends WantEvents<S> {
  /** All that the gateway wants, by key: of this link, and of others. */
  table?: Map<string, Want>
}

export function createWants<S extends Service>({ position, payload, payer, table = new Map() }: WantOptions<S>) {
  /** The wants of this link, and those that another link has by now and whose end is still to be said. */
  const listed: Want[] = []
  let generation = 1
  /** Wants that changed, so that the node may have to be told. */
  let changed = createUniqueQueue() as UniqueQueue<Want>
  /**
   * How many of the list are to be sent again, from its start; what changes meanwhile goes first. A walk instead of a
   * queue of all: making that would take as long as a few thousand answers. It goes backwards, so that a want which takes
   * the place of one that was removed is never left out.
   */
  let repeating = 0

  function startAnew() {
    forgetEnded()
    generation++
    changed = createUniqueQueue()
    repeating = listed.length
  }

  /** Their ends are due to be said, and there is nobody to be told. */
  function forgetEnded() {
    for (let want = changed.take(); want; want = changed.take()) if (!isWanted(want)) unlist(want)
  }

  /** @returns the next that may have to be sent */
  function next(): Want | undefined {
    const want = changed.take()
    if (want) return want
    repeating = Math.min(repeating, listed.length)
    return repeating > 0 ? listed[--repeating] : undefined
  }

  /** @returns the want, as one of this link */
  function open(key: string): Want {
    const want = table.get(key) ?? newWant(key)
    table.set(key, want)
    if (listed[want.place] !== want) want.place = listed.push(want) - 1
    return want
  }

  /** A node forgets all that it was told of an earlier generation. */
  function catchUp(want: Want) {
    if (want.generation === generation) return
    want.generation = generation
    want.watchTold = want.getTold = false
    want.since = want.getNumber = Number.POSITIVE_INFINITY
  }

  function unlist(want: Want) {
    // One request may name a key twice: as one that changed, and in its turn. A second time would remove another one.
    if (listed[want.place] !== want) return
    const last = listed.pop() as Want
    if (last !== want) {
      listed[want.place] = last
      last.place = want.place
    }
    want.place = -1
    changed.delete(want)
    if (table.get(want.key) === want) table.delete(want.key)
  }

  function alter(want: Want, change: Change) {
    catchUp(want)
    // A new interest waits for an answer, and the node only answers a new request.
    if (!isWanted(want)) want.since = Number.POSITIVE_INFINITY
    if (change.watch !== undefined) want.isWatchDue = change.watch && (want.isWatchDue || !want.watch)
    if (change.get && !want.get) want.getNumber = Number.POSITIVE_INFINITY
    Object.assign(want, change)
    changed.add(want)
    forgetIfIdle(want)
  }

  /** Sends a standing watch again: its payload changed. */
  function renewWatch(key: string) {
    const want = ofKey(key)
    if (!want?.watch) return
    want.isWatchDue = true
    changed.add(want)
  }

  /** @returns the want, if it is this link's */
  function ofKey(key: string) {
    const want = table.get(key)
    return want && listed[want.place] === want ? want : undefined
  }

  /** @param want that is caught up */
  function forgetIfIdle(want: Want) {
    if (!isWanted(want) && !want.watchTold && !want.getTold) unlist(want)
  }

  /**
   * Notes that the node answered for a key after it had heard the first `reached` requests.
   *
   * @returns `earlier`: the answer belongs to an interest that ended; `got`: it answers and ends the key's get;
   * `before`: that answer is still to come
   */
  function take(key: string, reached: number): 'earlier' | 'state' | 'before' | 'got' {
    const want = ofKey(key)
    if (!want || !isWanted(want) || want.generation !== generation || reached < want.since) return 'earlier'
    if (!want.getTold) return 'state'
    if (reached < want.getNumber) return 'before'
    want.getTold = false
    want.get = false
    forgetIfIdle(want)
    return 'got'
  }

  /**
   * The next requests, none with more keys than a message may name; each counts as told when it is taken.
   *
   * @param nextNumber called once for each request
   */
  function* nextRequests(nextNumber: () => number): Generator<{ number: number; saying: Saying<S> }> {
    const due: { watch: Want[]; get: Want[]; unwatch: Want[]; cancelGet: Want[] } = {
      watch: [],
      get: [],
      unwatch: [],
      cancelGet: [],
    }
    for (let count = 0; count < KEYS_PER_REQUEST_MAX; count++) {
      const want = next()
      if (!want) break
      catchUp(want)
      if (want.watch && (!want.watchTold || want.isWatchDue)) due.watch.push(want)
      if (!want.watch && want.watchTold) due.unwatch.push(want)
      if (want.get && want.getNumber === Number.POSITIVE_INFINITY) due.get.push(want)
      if (!want.get && want.getTold) due.cancelGet.push(want)
      forgetIfIdle(want)
    }
    const moved = due.unwatch.filter(isMoved)
    if (moved.length > 0) due.unwatch = due.unwatch.filter(want => !isMoved(want))
    yield* ends(due.unwatch, 'unwatch', nextNumber, { left: true })
    yield* ends(moved, 'unwatch', nextNumber)
    yield* ends(due.cancelGet, 'cancelGet', nextNumber)
    for (const type of ['watch', 'get'] as const) {
      for (let at = 0; at < due[type].length; ) {
        let number: number | undefined
        const wants = []
        for (let bytes = 0; at < due[type].length && bytes < PAYLOAD_BYTES_MAX; at++) {
          const want = due[type][at]
          if (!want[type]) continue // it ended while the requests before this one were sent
          number ??= nextNumber()
          noteTold(want, type, number)
          const { key } = want
          const said = payload?.(key, type)
          wants.push({ key, position: position(key, type), payload: said, payer: payer?.(key, type) })
          bytes += textIn(said)
        }
        if (number !== undefined) yield { number, saying: { type, wants } }
      }
    }
  }

  function* ends(wants: Want[], type: 'unwatch' | 'cancelGet', nextNumber: () => number, more: { left?: true } = {}) {
    if (wants.length === 0) return
    const number = nextNumber()
    for (const want of wants) noteUntold(want, type)
    yield { number, saying: { type, keys: wants.map(({ key }) => key), ...more } }
  }

  /** Another link's node is asked for the key by now. */
  function isMoved(want: Want) {
    const now = table.get(want.key)
    return now !== undefined && now !== want
  }

  function noteTold(want: Want, type: 'watch' | 'get', number: number) {
    want.since = Math.min(want.since, number)
    if (type === 'get') {
      want.getTold = true
      want.getNumber = number
    } else {
      want.watchTold = true
      want.isWatchDue = false
    }
  }

  function noteUntold(want: Want, type: 'unwatch' | 'cancelGet') {
    if (type === 'unwatch') want.watchTold = false
    else want.getTold = false
    forgetIfIdle(want)
  }

  return {
    startAnew,
    want: (key: string, change: Change) => alter(open(key), change),
    /** Another link has the key from now on: the end of all that this one's node was told is said. */
    drop: (want: Want) => alter(want, { watch: false, get: false }),
    renewWatch,
    take,
    nextRequests,
    isAllSaid: () => changed.size === 0 && repeating === 0,
    /** @returns any key that is wanted */
    sample: (): string | undefined => listed.find(isWanted)?.key,
    /** No more will be said. */
    stop: forgetEnded,
  }
}
