// This gateway's record of each key: its value, its last failure, and the sessions and requests that want it. Where values
// differ per user, there is one for each user. The records are kept within a limit of bytes: wanted ones stay, and of the
// others the least recently used goes first. Each wanted one is charged to one of those who want it, and nobody may hold
// more than their share.
import { readViewerKey } from '@keycast/backbone'
import type { ErrorCode, Problem } from '@keycast/protocol'
import {
  createStock,
  createUniqueQueue,
  type Holder,
  type Payer,
  SHARE_TAKEN,
  type Stock,
  type UniqueQueue,
  type ValueNamespace,
} from '@keycast/service'
import type { Kind, Topic } from '../topics.ts'
import type { Failure } from './failure.ts'
import type { Paying } from './payer-choice.ts'
import type { Refreshes } from './staleness.ts'
import type { ValueSubscription } from './subscriptions.ts'
import { type Slots, type Value, valueBytes } from './value.ts'

/**
 * The answer to a request for a key. `ageMs`: since the backend was asked for it; `maxAgeMs`: up to which age it may be
 * used; `store` false: not to be kept by anyone (`no-store`, `private`).
 */
export interface Found {
  value: Value
  problem?: undefined
  ageMs: number
  maxAgeMs: number
  store: boolean
}

interface NotFound {
  value?: undefined
  problem: Problem
}

export type Result = Found | NotFound

/** A request that waits for an answer of the fetcher, and who sent it. */
export interface Waiter extends Paying {
  resolve: (result: Result) => void
  deadlineAtMs: number
}

/**
 * Clients to whom another gateway has sent the value with the number `order`: none is sent one with a lower number before
 * the fetcher has said what is the latest, in so many `answers` to gets. `isDoubted`: its node's memory is not
 * believed, and the backend must be asked. After `untilMs` they are told that it takes long, each once.
 */
export interface Lag {
  waiting: Map<ValueSubscription, { order: number; answers: number; isTold: boolean }>
  isDoubted: boolean
  untilMs: number
}

export interface Entry extends Topic {
  /** That clients know. */
  readonly key: string
  /** For the cache and the backbone: the key, or the viewer key of a user's own value. */
  wireKey: string
  /** The viewer whose own value it is; `undefined` if all viewers have the same. */
  viewer: string | undefined
  namespace: ValueNamespace
  value: Value | undefined
  /** Whether it has had a value since it was made. */
  wasFound: boolean
  /** The time at which the backend was asked for the known state (value or `not_found`); never moves back while one is. */
  askedAtMs: number
  /** Silent refreshes, which move the time above on without an answer: see staleness.ts. */
  refreshes: Refreshes | undefined
  maxAgeMs: number
  store: boolean
  /** Of the last try; undefined after a good one. */
  failure: Failure | undefined
  subscriptions: ValueSubscription[]
  /** The number of subscriptions that were sent nothing of the value yet. */
  pendingSubscriptions: number
  watchedAtMs: number
  /** Whether any answer came since the watch began: from then on the fetcher keeps the key fresh. */
  isWatchAnswered: boolean
  /** While this gateway may be behind. */
  lag: Lag | undefined
  /** Of the `error` that every subscriber has been sent. */
  announcedCode: ErrorCode | undefined
  /** Whether every subscriber has been sent `stale`. */
  stale: boolean
  /** The frames of that `error` or `stale`. */
  problemFrames: Slots<Buffer> | undefined
  problemFramesAtMs: number
  waiters: Waiter[]
  /** Who is charged for it, of those who want it: by the fetcher, and by the cache, whose account {@link holder} is. */
  paying: Paying | undefined
  holder: Holder | undefined
  /** Its page in the calendar; Infinity if it has none. */
  calendarPage: number
  /** Its size, as the cache counted it. */
  bytes: number
}

/** Shared by all entries without subscriptions or waiters, so that an idle one costs no lists. Never pushed to. */
export const NOBODY = Object.freeze([]) as unknown as never[]

export type Cache = ReturnType<typeof createCache>

/**
 * The cost of an entry beside its value: the record, its key twice in maps, and a Buffer's and a frame's fixed part.
 */
export const ENTRY_BYTES = 1_024

/**
 * The part of the cache for keys that were never found. Strangers can invent such keys and watch them for ever, and
 * must leave room for the keys of others.
 */
const MISSING_PART = 1 / 8

const shareTaken: Problem = { code: 'capacity', message: SHARE_TAKEN }

/** A part of the cache, and who holds how much of it. */
interface Part {
  bytesMax: number
  stock: Stock
}

const createPart = (bytesMax: number, heldBytes: () => number): Part => ({
  bytesMax,
  stock: createStock({ free: () => bytesMax - heldBytes() }),
})

interface Options {
  bytesMax: number
  /** The entry is no longer wanted. */
  onUnwanted: (entry: Entry) => void
  /** Tells whether an unwanted entry may stay. */
  mayKeep: (entry: Entry) => boolean
  onRemoved: (entry: Entry) => void
}

export function createCache({ bytesMax, onUnwanted, mayKeep, onRemoved }: Options) {
  /** By wire key. */
  const entries = new Map<string, Entry>()
  /** Unwanted entries, the least recently used first. */
  const idle = createUniqueQueue<Entry>()
  /** Unwanted entries that are missing: these go before all others. */
  const idleMissing = createUniqueQueue<Entry>()
  /** All missing entries, wanted ones too. */
  const missing = new Set<Entry>()
  const missingMax = Math.floor((bytesMax * MISSING_PART) / ENTRY_BYTES)
  let bytes = 0
  let idleBytes = 0
  const wantedBytes = () => bytes - idleBytes
  const wantedMissing = () => missing.size - idleMissing.size
  const partOfMissing = createPart(missingMax * ENTRY_BYTES, () => wantedMissing() * ENTRY_BYTES)
  const partOfOthers = createPart(bytesMax, wantedBytes)
  const partOf = (entry: Entry) => (missing.has(entry) ? partOfMissing : partOfOthers)

  function peek(wireKey: string) {
    return entries.get(wireKey)
  }

  /** This lookup counts as use. */
  function get(wireKey: string) {
    const entry = entries.get(wireKey)
    if (entry && idle.delete(entry)) idle.add(entry)
    else if (entry && idleMissing.delete(entry)) idleMissing.add(entry)
    return entry
  }

  /** @param entry the key has none yet */
  function add(entry: Entry) {
    entry.bytes = ENTRY_BYTES
    entries.set(entry.wireKey, entry)
    bytes += entry.bytes
  }

  /**
   * Must be called after each change of an entry, or of the demand for it. Counts its bytes again, drops it if it is of
   * no use, and drops others if there is no room.
   */
  function update(entry: Entry) {
    if (entries.get(entry.wireKey) !== entry) return
    if (idle.delete(entry) || idleMissing.delete(entry)) idleBytes -= entry.bytes
    const cost = bytesOf(entry)
    bytes += cost - entry.bytes
    const isOfMissing = isMissing(entry)
    const former = partOf(entry)
    if (isOfMissing) missing.add(entry)
    else missing.delete(entry)
    charge(entry, former, cost)
    entry.bytes = cost

    if (!isWanted(entry)) {
      // A session that ended would stay in memory with all that it had, as long as the entry.
      entry.paying = undefined
      onUnwanted(entry)
      if (!isWorthKeeping(entry) || !mayKeep(entry)) return remove(entry)
      if (isOfMissing) idleMissing.add(entry)
      else idle.add(entry)
      idleBytes += cost
    }
    while (idleMissing.size > 0 && (missing.size > missingMax || bytes > bytesMax)) dropOldest(idleMissing)
    while (idle.size > 0 && bytes > bytesMax) dropOldest(idle)
  }

  /**
   * @param former the part in which it was charged
   * @param cost its size from now on
   */
  function charge(entry: Entry, former: Part, cost: number) {
    const { holder } = entry
    const { stock } = partOf(entry)
    const payer = isWanted(entry) ? entry.paying?.payer : undefined
    if (holder?.payer === payer && stock === former.stock) {
      if (holder) stock.change(holder, cost - entry.bytes)
      return
    }
    if (holder) former.stock.change(holder, -entry.bytes)
    entry.holder = stock.charge(payer, cost)
  }

  /** @param from that is not empty */
  function dropOldest(from: UniqueQueue<Entry>) {
    const oldest = from.take() as Entry
    idleBytes -= oldest.bytes
    remove(oldest)
  }

  /** @param entry that is not idle */
  function remove(entry: Entry) {
    entries.delete(entry.wireKey)
    missing.delete(entry)
    bytes -= entry.bytes
    onRemoved(entry)
  }

  /**
   * Why a key that was not wanted until now may not be.
   *
   * @param entry its own, if it has one
   */
  function refusal(payer: Payer | undefined, entry: Entry | undefined): Problem | undefined {
    const isOfMissing = entry !== undefined && missing.has(entry)
    if (wantedBytes() >= bytesMax || (isOfMissing && wantedMissing() >= missingMax)) return { code: 'capacity' }
    const hasRoom =
      partOfOthers.stock.hasRoom(payer, entry?.bytes ?? ENTRY_BYTES) &&
      (!isOfMissing || partOfMissing.stock.hasRoom(payer, ENTRY_BYTES))
    return hasRoom ? undefined : shareTaken
  }

  /**
   * Why an entry that is wanted does not fit beside the others that are: with its first value, or as one of the missing.
   *
   * @returns with `account`: it holds as much as it may, and others who want the entry may have it, if one of them pays
   */
  function misfit(entry: Entry): (Problem & { account?: string }) | undefined {
    const isNewlyMissing = isMissing(entry) && !missing.has(entry)
    const { stock } = isNewlyMissing ? partOfMissing : partOfOthers
    const more = isNewlyMissing ? ENTRY_BYTES : bytesOf(entry) - entry.bytes
    if (more === 0) return undefined
    const isFull = isNewlyMissing ? wantedMissing() >= missingMax : wantedBytes() + more > bytesMax
    if (isFull) return { code: 'capacity' }
    const account = stock.fullOf(entry.holder?.payer, more)
    return account === undefined ? undefined : { ...shareTaken, account }
  }

  /** Whether another who wants an entry may be charged for it in place of the one who is. */
  function mayPay(entry: Entry, { payer }: Paying) {
    const { stock, bytesMax } = partOf(entry)
    return !entry.holder || payer === undefined || !stock.isPast(payer, entry.bytes, entry.holder, bytesMax)
  }

  function bytesOf({ value }: Entry) {
    return ENTRY_BYTES + (value ? valueBytes(value) : 0)
  }

  return {
    peek,
    get,
    add,
    update,
    refusal,
    misfit,
    mayPay,
    /** Those that are added meanwhile come, too. */
    entries: () => entries.values(),
    stats: () => ({ bytes, wantedBytes: wantedBytes(), entries: entries.size, idle: idle.size + idleMissing.size }),
    /** The number of users, addresses and networks that pay for a key. */
    accounts: () => partOfOthers.stock.size() + partOfMissing.stock.size(),
  }
}

export function createEntry(wireKey: string, namespace: ValueNamespace, kind: Kind): Entry {
  const viewed = namespace.isPerUser ? readViewerKey(wireKey) : undefined
  return {
    kind,
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
    failure: undefined,
    subscriptions: NOBODY,
    pendingSubscriptions: 0,
    watchedAtMs: Number.NEGATIVE_INFINITY,
    isWatchAnswered: false,
    lag: undefined,
    announcedCode: undefined,
    stale: false,
    problemFrames: undefined,
    problemFramesAtMs: Number.NEGATIVE_INFINITY,
    waiters: NOBODY,
    paying: undefined,
    holder: undefined,
    calendarPage: Number.POSITIVE_INFINITY,
    bytes: 0,
  }
}

/** From now on nothing is known of the key: any answer is news. */
export function forget(entry: Entry) {
  entry.value = undefined
  entry.refreshes = undefined
  entry.askedAtMs = Number.NEGATIVE_INFINITY
}

/** Whether the backend never had anything under the key, as far as this gateway saw. Anyone can invent such keys. */
export function isMissing({ wasFound, failure }: Entry) {
  return !wasFound && failure?.problem.code === 'not_found'
}

/** Whether a session or a request wants the key now. A wanted entry is kept, however large. */
export function isWanted(entry: Entry) {
  return entry.subscriptions.length > 0 || entry.waiters.length > 0
}

/** @param entry that is not wanted */
function isWorthKeeping(entry: Entry) {
  if (!entry.store) return false
  return entry.value !== undefined || entry.failure?.problem.code === 'not_found'
}
