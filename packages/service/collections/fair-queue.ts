// A queue whose lanes take turns: thousands of items in one lane do not keep another lane waiting. Lanes nest: those of an
// office's users lie in the lane of its address. Each item is taken once.

/** Names of lanes, the outermost first. No lane that holds items has lanes in it. */
export type LanePath = readonly unknown[]

/** In the lane of all who have none. */
export const NO_LANE: LanePath = Object.freeze([undefined])

/**
 * One of an item's places. Taking it out of the middle of a list would move all that follow: it stays there, `isGone`.
 */
interface Place<T> {
  readonly item: T
  readonly lane: Lane<T>
  isGone: boolean
}

/**
 * Made and let go of for nearly every item, so it is one object, and those in a lane are a ring without a collection.
 * `queued`: places from `head` on, of which `size` are not gone. `first`: of the lanes in it, whose turn is next. `turnsLeft`:
 * items that it gives before the lane beside it has its turn.
 */
interface Lane<T> {
  readonly name: unknown
  readonly parent: Lane<T> | undefined
  queued: Place<T>[]
  head: number
  size: number
  lanes: Map<unknown, Lane<T>> | undefined
  first: Lane<T> | undefined
  before: Lane<T>
  after: Lane<T>
  turnsLeft: number
}

/** Places that are gone are let go of together, once a list has this many and half of them are. */
const GONE_MAX = 100

/**
 * Of a lane with others in it, in one turn: as many as it has lanes, and no more than this. So an office of 1,000 is
 * served more than one person is, and a provider's network takes no more than this part of what is there.
 */
const TURNS_MAX = 32

/** An item that is added in several lanes has a place in each; it is taken when it comes up in the first of them. */
export function createFairQueue<T>() {
  const root = newLane<T>(undefined, undefined)
  const places = new Map<T, Place<T>[]>()
  /** The one item of a queue that was empty: most are taken at once, and need no lanes. */
  let single: { item: T; path: LanePath } | undefined

  /** @param path of the lane; the item stays where it is if it stands there already */
  function add(item: T, path: LanePath) {
    if (!single && places.size === 0) {
      single = { item, path }
      return
    }
    if (single) {
      const first = single
      single = undefined
      enter(first.item, first.path)
    }
    enter(item, path)
  }

  function enter(item: T, path: LanePath) {
    let lane = root
    for (const name of path) lane = open(lane, name)
    const known = places.get(item)
    if (known?.some(place => place.lane === lane)) return
    const place = { item, lane, isGone: false }
    lane.queued.push(place)
    lane.size++
    if (known) known.push(place)
    else places.set(item, [place])
  }

  function open(parent: Lane<T>, name: unknown) {
    parent.lanes ??= new Map()
    const known = parent.lanes.get(name)
    if (known) return known
    const lane = newLane(name, parent)
    parent.lanes.set(name, lane)
    if (!parent.first) parent.first = lane
    else {
      lane.after = parent.first
      lane.before = parent.first.before
      lane.before.after = lane
      lane.after.before = lane
    }
    return lane
  }

  /** @returns whether it was queued */
  function remove(item: T): boolean {
    if (single?.item === item) {
      single = undefined
      return true
    }
    const known = places.get(item)
    if (!known) return false
    places.delete(item)
    for (const place of known) {
      place.isGone = true
      leave(place.lane)
    }
    return true
  }

  /** One of the lane's places is gone. */
  function leave(lane: Lane<T>) {
    lane.size--
    if (lane.size === 0) return close(lane)
    if (lane.queued.length < GONE_MAX || lane.queued.length < 2 * lane.size) return
    lane.queued = lane.queued.filter(({ isGone }) => !isGone)
    lane.head = 0
  }

  /** Removes a lane, and those around it, as far as they are empty. */
  function close(lane: Lane<T>) {
    const { parent, name, size, first, before, after } = lane
    if (!parent || first || size > 0) return
    parent.lanes?.delete(name)
    before.after = after
    after.before = before
    if (parent.first === lane) parent.first = after === lane ? undefined : after
    close(parent)
  }

  function nextLane() {
    let lane: Lane<T> = root
    for (let inner = lane.first; inner; inner = lane.first) {
      // Its turn begins.
      if (inner.turnsLeft === 0) inner.turnsLeft = Math.min(TURNS_MAX, Math.max(1, inner.lanes?.size ?? 0))
      lane = inner
    }
    return lane
  }

  function firstOf(lane: Lane<T>): T | undefined {
    while (lane.queued[lane.head]?.isGone) lane.head++
    return lane.queued[lane.head]?.item
  }

  /** @returns the next one, which is queued no more */
  function take(): T | undefined {
    if (single) {
      const { item } = single
      single = undefined
      return item
    }
    const last = nextLane()
    const item = firstOf(last)
    if (item === undefined) return undefined
    remove(item)
    for (let lane = last; lane.parent; lane = lane.parent) {
      lane.turnsLeft--
      if (lane.turnsLeft === 0 && lane.parent.first === lane) lane.parent.first = lane.after
    }
    return item
  }

  return {
    add,
    delete: remove,
    has: (item: T) => single?.item === item || places.has(item),
    take,
    get size() {
      return single ? 1 : places.size
    },
  }
}

function newLane<T>(name: unknown, parent: Lane<T> | undefined): Lane<T> {
  const lane = { name, parent, queued: [], head: 0, size: 0, lanes: undefined, first: undefined, turnsLeft: 0 }
  // Alone in its ring.
  return Object.assign(lane, { before: lane as unknown as Lane<T>, after: lane as unknown as Lane<T> })
}

export type FairQueue<T> = ReturnType<typeof createFairQueue<T>>
