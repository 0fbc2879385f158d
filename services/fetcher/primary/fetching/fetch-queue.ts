// Chooses the next fetch of one namespace: a limit of fetches in flight, shared by lanes. Cold fetches, for which somebody
// waits, go first; refreshes follow; keys that the backend never had come behind both. Each of the first two gets at most
// three quarters of the limit while the other has fetches queued. So a flood of new keys does not stop refreshes, and a slow backend's refreshes do not stop new keys.
// Within a lane accounts take turns: one that wants 50,000 keys keeps no other waiting.
import { createFairQueue, createUniqueQueue, type FairQueue, type LanePath, type UniqueQueue } from '@keycast/service'

export const lanes = ['cold', 'refresh', 'missing'] as const

export type Lane = (typeof lanes)[number]

/** `lane`: it is queued in, or was started from. `path`: of the account that it is for. */
interface Queued {
  lane: Lane
  path: LanePath
}

/** A lane's share of the limit while the other has fetches queued. */
const SHARE = 0.75

export type FetchQueue<T extends Queued> = ReturnType<typeof createFetchQueue<T>>

/** @param options at least 1 */
export function createFetchQueue<T extends Queued>({ limit }: { limit: () => number }) {
  const queued: Record<Lane, FairQueue<T>> = {
    cold: createFairQueue(),
    refresh: createFairQueue(),
    missing: createFairQueue(),
  }
  /** Items that were started and given back. */
  const returned: Record<Lane, UniqueQueue<T>> = {
    cold: createUniqueQueue(),
    refresh: createUniqueQueue(),
    missing: createUniqueQueue(),
  }
  const inFlight = { cold: 0, refresh: 0, missing: 0 }
  /** The lane that was served last. */
  let last: Lane | undefined

  function add(item: T) {
    queued[item.lane].add(item, item.path)
  }

  /** Another account wants a queued item: it comes up in the turn of either. */
  function join(item: T, path: LanePath) {
    const { lane } = item
    if (queued[lane].has(item)) queued[lane].add(item, path)
  }

  /** Puts an item before the others of its lane: it has had its turn already. @param item that {@link ended} */
  function putBack(item: T) {
    returned[item.lane].add(item)
  }

  /** Moves a queued item to a lane that goes before its own. */
  function promote(item: T, to: Lane) {
    const from = item.lane
    if (lanes.indexOf(to) >= lanes.indexOf(from)) return
    if (queued[from].delete(item)) queued[to].add(item, item.path)
    else if (returned[from].delete(item)) returned[to].add(item)
    else return
    item.lane = to
  }

  function remove(item: T) {
    queued[item.lane].delete(item)
    returned[item.lane].delete(item)
  }

  function queuedIn(lane: Lane) {
    return queued[lane].size + returned[lane].size
  }

  /**
   * Takes the next item out; it is in flight until {@link ended}.
   *
   * @returns `undefined` if nothing is queued or nothing more may start
   */
  function next(): T | undefined {
    const limitNow = limit()
    if (inFlightNow() >= limitNow) return undefined
    // At least one per lane, or a limit of 1 would let nothing through while both have fetches queued.
    const share = Math.max(1, Math.floor(limitNow * SHARE))
    // That leaves no room for the other: they take turns.
    const isRefreshsTurn = limitNow <= share && last === 'cold'
    const [first, second] = isRefreshsTurn ? (['refresh', 'cold'] as const) : (['cold', 'refresh'] as const)
    return takeFrom(first, second, share) ?? takeFrom(second, first, share) ?? start('missing')
  }

  /** @param share of the lane while the other has fetches queued */
  function takeFrom(lane: Lane, other: Lane, share: number) {
    if (inFlight[lane] >= share && queuedIn(other) > 0) return undefined
    return start(lane)
  }

  function start(lane: Lane) {
    const item = takeOut(lane)
    if (!item) return undefined
    inFlight[lane]++
    last = lane
    return item
  }

  const takeOut = (lane: Lane) => returned[lane].take() ?? queued[lane].take()

  const inFlightNow = () => inFlight.cold + inFlight.refresh + inFlight.missing

  /** @param item that {@link next} gave */
  function ended(item: T) {
    inFlight[item.lane]--
  }

  /**
   * Takes an item out that goes along with one of this lane, in the same request. Those that were given back are left.
   *
   * @returns `undefined` where none is queued
   */
  function takeAlong(lane: Lane): T | undefined {
    return queued[lane].take() ?? queued.cold.take() ?? queued.refresh.take() ?? queued.missing.take()
  }

  /** Takes an item out without starting it. @returns `undefined` where none is queued */
  function withdraw(): T | undefined {
    return takeOut('cold') ?? takeOut('refresh') ?? takeOut('missing')
  }

  return {
    add,
    join,
    putBack,
    promote,
    remove,
    next,
    takeAlong,
    ended,
    withdraw,
    queuedIn,
    queued: () => lanes.reduce((sum, lane) => sum + queuedIn(lane), 0),
    inFlightOf: (lane: Lane) => inFlight[lane],
    inFlight: inFlightNow,
  }
}
