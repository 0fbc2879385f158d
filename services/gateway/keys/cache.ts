// Entries by key, within a limit of bytes. Wanted entries stay; of the others the least recently used goes first.
import { createUniqueQueue } from '@keycast/service'
import { isMissing, isWanted } from './entry.ts'

/**
 * @typedef {import('./entry.ts').Entry} Entry
 * @typedef {import('@keycast/service').UniqueQueue<Entry>} IdleQueue
 * @typedef {ReturnType<typeof createCache>} Cache
 */

/**
 * The cost of an entry beside its value: the record, its key twice in maps, and a Buffer's and a frame's fixed part.
 */
export const ENTRY_BYTES = 1_024

/**
 * The part of the cache for keys that were never found. Strangers can invent such keys and watch them for ever, and
 * must leave room for the keys of others.
 */
const MISSING_PART = 1 / 8

/**
 * @param {object} options
 * @param {number} options.bytesMax
 * @param {(value: import('./value.ts').Value) => number} options.valueBytes the bytes that a value takes in all its
 *   forms
 * @param {(entry: Entry) => void} [options.onUnwanted] the entry is no longer wanted
 * @param {(entry: Entry) => boolean} [options.mayKeep] tells whether an unwanted entry may stay
 * @param {(entry: Entry) => void} [options.onRemoved]
 */
export function createCache({ bytesMax, valueBytes, onUnwanted, mayKeep = () => true, onRemoved = () => {} }) {
  /** By wire key. @type {Map<string, Entry>} */
  const entries = new Map()
  /** Unwanted entries, the least recently used first. */
  const idle = newQueue()
  /** Unwanted entries that are missing: these go before all others. */
  const idleMissing = newQueue()
  /** All missing entries, wanted ones too. @type {Set<Entry>} */
  const missing = new Set()
  const missingMax = Math.floor((bytesMax * MISSING_PART) / ENTRY_BYTES)
  let bytes = 0
  let idleBytes = 0

  /** @param {string} wireKey */
  function peek(wireKey) {
    return entries.get(wireKey)
  }

  /**
   * This lookup counts as use.
   *
   * @param {string} wireKey
   */
  function get(wireKey) {
    const entry = entries.get(wireKey)
    if (entry && idle.delete(entry)) idle.add(entry)
    else if (entry && idleMissing.delete(entry)) idleMissing.add(entry)
    return entry
  }

  /** @param {Entry} entry the key has none yet */
  function add(entry) {
    entry.bytes = ENTRY_BYTES
    entries.set(entry.wireKey, entry)
    bytes += entry.bytes
  }

  /**
   * Must be called after each change of an entry, or of the demand for it. Counts its bytes again, drops it if it is of
   * no use, and drops others if there is no room.
   *
   * @param {Entry} entry
   */
  function update(entry) {
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

  /** @param {IdleQueue} from that is not empty */
  function dropOldest(from) {
    const oldest = /** @type {Entry} */ (from.take())
    idleBytes -= oldest.bytes
    remove(oldest)
  }

  /** @param {Entry} entry that is not idle */
  function remove(entry) {
    entries.delete(entry.wireKey)
    missing.delete(entry)
    bytes -= entry.bytes
    onRemoved(entry)
  }

  /** Whether an entry that is wanted fits beside the others that are, with the value it has. @param {Entry} entry */
  function fits(entry) {
    return bytes - idleBytes - entry.bytes + bytesOf(entry) <= bytesMax
  }

  /** Whether a missing entry that is wanted has its place among the others that are. @param {Entry} entry */
  function fitsMissing(entry) {
    return missing.has(entry) || missing.size - idleMissing.size < missingMax
  }

  /** Whether wanted entries alone take all the room there is. */
  function isFull() {
    return bytes - idleBytes >= bytesMax
  }

  /** @param {Entry} entry */
  function bytesOf({ value }) {
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

/** @returns {IdleQueue} */
const newQueue = () => createUniqueQueue()

/** @param {Entry} entry that is not wanted */
function isWorthKeeping(entry) {
  if (!entry.store) return false
  return entry.value !== undefined || entry.problem?.code === 'not_found'
}
