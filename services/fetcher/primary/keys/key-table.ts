// Entries by key, within a limit of bytes: wanted keys stay; of the others the least recently used is evicted first.
// Strangers can invent keys that the backend never had, so these get little room, and none that another key needs. Each
// wanted key is charged to one of those who want it, and nobody may hold more than their share.
import { createStock, createUniqueQueue, type Payer, type UniqueQueue } from '@keycast/service'
import type { Entry } from './entry.ts'
import { dropAllButFailure, dropValue, isMissing } from './held.ts'
import { isInUse, isKept, payersOf, wantsOf } from './interest.ts'
import { credentialBytesOf, sharedKeyOf } from './viewer.ts'

export type KeyTable = ReturnType<typeof createKeyTable>

/** Entries that may have to go, the one that went in longest ago first, and their bytes. */
interface Evictable {
  queue: UniqueQueue<Entry>
  bytes: number
}

/**
 * The cost of an entry beside its body: the record, its key, the wants of {@link WANTS_INCLUDED} links, validators, and
 * its places in timers, queues and this table.
 */
export const ENTRY_BYTES = 2_048

export const WANTS_INCLUDED = 4

/** The cost of each further link: its want, its place in the index by link, and in the link's due keys. */
export const WANT_BYTES = 256

/** The share of the room for keys that the backend never had. */
export const MISSING_SHARE = 1 / 8

interface Options {
  bytesMax: number
  /** A wanted key must go: all its links are to be told, and the entry recounted. */
  onEvicted?: (entry: Entry) => void
  /** The one who paid has left, and nobody else who wants the key may pay for it; likewise. */
  onUnpaid?: (entry: Entry) => void
}

export function createKeyTable({ bytesMax, onEvicted = () => {}, onUnpaid = () => {} }: Options) {
  const entries = new Map<string, Entry>()
  /** Users' own values, by the key that they share. */
  const own = new Map<string, Set<Entry>>()
  let ownCount = 0
  /** Entries that nobody wants now. */
  const idle = newEvictable()
  /** Entries that the backend never had, and nobody wants. */
  const missingIdle = newEvictable()
  /** Entries that the backend never had, and somebody wants. */
  const missing = newEvictable()
  const evictables = [idle, missingIdle, missing]
  let bytes = 0
  const stock = createStock({ free: () => bytesMax - wantedBytes() })

  function get(key: string) {
    return entries.get(key)
  }

  /**
   * The entry of a key that a link is about to want.
   *
   * @returns 'full' if wanted keys take all the room, 'share' if the payer has had theirs
   */
  function open(key: string, payer: Payer | undefined, create: () => Entry): Entry | 'full' | 'share' {
    const opened = entries.get(key)
    if (opened && !hasRoomForWant(opened)) return 'full'
    // One that is in use is charged to another payer already.
    if (!opened?.holder && !stock.hasRoom(payer, opened?.bytes ?? ENTRY_BYTES)) return 'share'
    if (opened) return opened
    if (wantedBytes() + ENTRY_BYTES > bytesMax) return 'full'
    const entry = create()
    entry.bytes = ENTRY_BYTES
    bytes += entry.bytes
    entries.set(key, entry)
    if (entry.namespace.isPerUser) addOwn(entry)
    return entry
  }

  /** Whether one more link may want the key. */
  function hasRoomForWant(entry: Entry) {
    return wantsOf(entry) < WANTS_INCLUDED || wantedBytes() + WANT_BYTES <= bytesMax
  }

  /**
   * Whether a body of that size fits beside everything that is wanted.
   *
   * @param entry that is wanted
   */
  function hasRoomFor(entry: Entry, bodyBytes: number) {
    const own = missing.queue.has(entry) ? 0 : entry.bytes
    return wantedBytes() - own + bareCostOf(entry) + bodyBytes <= bytesMax
  }

  /** The same in the share of its payer. */
  const hasShareFor = (entry: Entry, bodyBytes: number) =>
    stock.hasRoom(entry.holder?.payer, bareCostOf(entry) + bodyBytes - entry.bytes)

  /**
   * Charges an entry to the payer who holds least of those who want it, once that is less than half.
   *
   * @returns false where it is to go, as none of them may pay
   */
  function charge(entry: Entry, inUse: boolean): boolean {
    const { holder } = entry
    const payer = inUse ? leastLoaded(entry) : undefined
    // A fetch may be under way that nobody wants any more.
    if (inUse && payer === undefined) return payersOf(entry).next().done === true
    if (payer === holder?.payer) return true
    if (holder) stock.change(holder, -entry.bytes)
    entry.holder = stock.charge(payer, entry.bytes)
    return true
  }

  function leastLoaded(entry: Entry): Payer | undefined {
    const { holder, bytes } = entry
    let least: Payer | undefined
    let leastLoad = Number.POSITIVE_INFINITY
    for (const payer of payersOf(entry)) {
      const isOther = payer !== holder?.payer
      const load = stock.loadOf(payer) * (isOther ? 1 : 0.5)
      if (load >= leastLoad) continue
      // Else two could open keys for each other until one holds all there is.
      if (holder && isOther && stock.isPast(payer, bytes, holder, bytesMax)) continue
      least = payer
      leastLoad = load
    }
    return least
  }

  /**
   * Counts an entry again. Removes it if it is of no use, and others if there is no room. Must be called after each
   * change of an entry's content, of its links, or of whether it is fetched; check-invariants.fixture.ts finds a missed
   * call.
   */
  function recount(entry: Entry) {
    if (entries.get(entry.key) !== entry) return
    for (const evictable of evictables) if (evictable.queue.delete(entry)) evictable.bytes -= entry.bytes
    const inUse = isInUse(entry)
    if (isKept(entry) !== entry.counted) {
      entry.counted = !entry.counted
      entry.source.keptKeys += entry.counted ? 1 : -1
    }
    // A user's own value is of no use once the user is gone. A failure stays: without its backoff each get of theirs
    // would ask the backend again, also before its Retry-After is over.
    if (!inUse && entry.namespace.isPerUser) dropAllButFailure(entry)
    else if (!inUse && entry.held.value?.store === false) dropValue(entry)

    const cost = costOf(entry)
    bytes += cost - entry.bytes
    if (entry.holder) stock.change(entry.holder, cost - entry.bytes)
    entry.bytes = cost
    const isPaid = charge(entry, inUse)
    if (!inUse && !entry.held.value && !entry.held.failure) return remove(entry)
    const evictable = evictableOf(entry, inUse)
    evictable?.queue.add(entry)
    if (evictable) evictable.bytes += cost
    makeRoom()
    if (!isPaid && entries.get(entry.key) === entry) onUnpaid(entry)
  }

  /** @returns `undefined` for one that stays */
  function evictableOf(entry: Entry, inUse: boolean): Evictable | undefined {
    if (isMissing(entry)) return inUse ? missing : missingIdle
    return inUse ? undefined : idle
  }

  function makeRoom() {
    const missingMax = bytesMax * MISSING_SHARE
    // One always fits: otherwise, in a small table, no key could be watched before the backend has it.
    while (missingIdle.bytes + missing.bytes > missingMax && missingIdle.queue.size + missing.queue.size > 1) {
      evictFrom(missingIdle.queue.size > 0 ? missingIdle : missing)
    }
    while (bytes > bytesMax) {
      const evictable = [missingIdle, idle, missing].find(({ queue }) => queue.size > 0)
      if (!evictable) return
      evictFrom(evictable)
    }
  }

  /** @param evictable that is not empty */
  function evictFrom(evictable: Evictable) {
    const entry = evictable.queue.take() as Entry
    evictable.bytes -= entry.bytes
    if (evictable === missing) onEvicted(entry)
    else remove(entry)
  }

  /** @param entry that is in no queue */
  function remove(entry: Entry) {
    entries.delete(entry.key)
    bytes -= entry.bytes
    if (entry.namespace.isPerUser) removeOwn(entry)
  }

  /** @param entry of a viewer */
  function addOwn(entry: Entry) {
    const key = sharedKeyOf(entry)
    const ofKey = own.get(key)
    if (ofKey) ofKey.add(entry)
    else own.set(key, new Set([entry]))
    ownCount++
  }

  /** @param entry of a viewer */
  function removeOwn(entry: Entry) {
    const key = sharedKeyOf(entry)
    const ofKey = own.get(key)
    if (!ofKey?.delete(entry)) return
    ownCount--
    if (ofKey.size === 0) own.delete(key)
  }

  /** The bytes that cannot be evicted: those of all wanted keys that the backend has or had. */
  function wantedBytes() {
    return bytes - idle.bytes - missingIdle.bytes - missing.bytes
  }

  return {
    get,
    open,
    hasRoomForWant,
    hasRoomFor,
    hasShareFor,
    /** The same string for a payer of many keys. */
    shared: stock.shared,
    recount,
    /** All of them, for checks. */
    entries: () => entries.values(),
    stats: () => ({ keys: entries.size, bytes }),
    wantedBytes,
    /** The number of users, addresses and networks that pay for a key. */
    accounts: stock.size,
    /** Every user's own value of a key. */
    ownOf: (key: string): Iterable<Entry> => own.get(key) ?? [],
    /** The number of users' own values. */
    own: () => ownCount,
    /** The number of keys that the backend never had. */
    missing: () => missingIdle.queue.size + missing.queue.size,
  }
}

function newEvictable(): Evictable {
  return { queue: createUniqueQueue(), bytes: 0 }
}

/** The size of an entry. */
export function costOf(entry: Entry) {
  const { value } = entry.held
  return bareCostOf(entry) + (value ? value.body.length + (value.delta?.bytes.length ?? 0) : 0)
}

/** The size of an entry without its content. */
function bareCostOf(entry: Entry) {
  return ENTRY_BYTES + Math.max(0, wantsOf(entry) - WANTS_INCLUDED) * WANT_BYTES + credentialBytesOf(entry)
}
