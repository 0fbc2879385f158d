// Entries by key, within a limit of bytes. Wanted entries stay; of the others the least recently used goes first.
import { createUniqueQueue, type UniqueQueue } from '@keycast/service'
import { type Entry, isMissing, isWanted } from './entry.ts'
import type { Value } from './value.ts'

type IdleQueue = UniqueQueue<Entry>
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

interface Options {
  bytesMax: number
  /** The bytes that a value takes in all its forms. */
  valueBytes: (value: Value) => number
  /** The entry is no longer wanted. */
  onUnwanted?: (entry: Entry) => void
  /** Tells whether an unwanted entry may stay. */
  mayKeep?: (entry: Entry) => boolean
  onRemoved?: (entry: Entry) => void
}

export function createCache({ bytesMax, valueBytes, onUnwanted, mayKeep = () => true, onRemoved = () => {} }: Options) {
  /** By wire key. */
  const entries = new Map<string, Entry>()
  /** Unwanted entries, the least recently used first. */
  const idle = newQueue()
  /** Unwanted entries that are missing: these go before all others. */
  const idleMissing = newQueue()
  /** All missing entries, wanted ones too. */
  const missing = new Set<Entry>()
  const missingMax = Math.floor((bytesMax * MISSING_PART) / ENTRY_BYTES)
  let bytes = 0
  let idleBytes = 0

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
    entry.bytes = cost
    const isOfMissing = isMissing(entry)
    if (isOfMissing) missing.add(entry)
    else missing.delete(entry)

    if (!isWanted(entry)) {
      onUnwanted?.(entry)
      if (!isWorthKeeping(entry) || !mayKeep(entry)) return remove(entry)
      if (isOfMissing) idleMissing.add(entry)
      else idle.add(entry)
      idleBytes += cost
    }
    while (idleMissing.size > 0 && (missing.size > missingMax || bytes > bytesMax)) dropOldest(idleMissing)
    while (idle.size > 0 && bytes > bytesMax) dropOldest(idle)
  }

  /** @param from that is not empty */
  function dropOldest(from: IdleQueue) {
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

  /** Whether an entry that is wanted fits beside the others that are, with the value it has. */
  function fits(entry: Entry) {
    return bytes - idleBytes - entry.bytes + bytesOf(entry) <= bytesMax
  }

  /** Whether a missing entry that is wanted has its place among the others that are. */
  function fitsMissing(entry: Entry) {
    return missing.has(entry) || missing.size - idleMissing.size < missingMax
  }

  /** Whether wanted entries alone take all the room there is. */
  function isFull() {
    return bytes - idleBytes >= bytesMax
  }

  function bytesOf({ value }: Entry) {
    return ENTRY_BYTES + (value ? valueBytes(value) : 0)
  }

  return {
    peek,
    get,
    add,
    update,
    fits,
    fitsMissing,
    isFull,
    stats: () => ({ bytes, entries: entries.size, idle: idle.size + idleMissing.size }),
  }
}

const newQueue = (): IdleQueue => createUniqueQueue()

/** @param entry that is not wanted */
function isWorthKeeping(entry: Entry) {
  if (!entry.store) return false
  return entry.value !== undefined || entry.failure?.problem.code === 'not_found'
}
