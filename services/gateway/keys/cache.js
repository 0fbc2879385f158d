// Entries by key, within a limit of bytes: wanted ones stay, of the others the least recently used goes first.
import { createUniqueQueue } from '@keycast/service'
import { isMissing, isWanted } from './entry.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {import('@keycast/service').UniqueQueue<Entry>} IdleQueue
 * @typedef {ReturnType<typeof createCache>} Cache
 */

/** What an entry costs beside its value: the entry, its key twice in maps, a Buffer's and a frame's fixed part. */
export const ENTRY_BYTES = 1_024

/**
 * Part of the cache that keys may take which were never found: strangers can invent them and watch them for ever, and
 * what they take must leave room for the keys of others.
 */
const MISSING_PART = 1 / 8

/**
 * @param {object} options
 * @param {number} options.bytesMax
 * @param {(value: import('./value.js').Value) => number} options.valueBytes what a value takes in all its forms
 * @param {(entry: Entry) => void} [options.onUnwanted] the entry is no longer wanted
 * @param {(entry: Entry) => boolean} [options.mayKeep] whether an entry that nobody wants may stay
 * @param {(entry: Entry) => void} [options.onRemoved]
 */
export function createCache({ bytesMax, valueBytes, onUnwanted, mayKeep = () => true, onRemoved = () => {} }) {
  /** By wire key. @type {Map<string, Entry>} */
  const entries = new Map()
  /** Unwanted entries, the least recently used first. */
  const idle = newQueue()
  /** Those of them that are missing: they go before all others. */
  const idleMissing = newQueue()
  /** Missing entries, wanted ones too. @type {Set<Entry>} */
  const missing = new Set()
  const missingMax = Math.floor((bytesMax * MISSING_PART) / ENTRY_BYTES)
  let bytes = 0
  let idleBytes = 0

  /** @param {string} wireKey */
  function peek(wireKey) {
    return entries.get(wireKey)
  }

  /**
   * Counts as use.
   *
   * @param {string} wireKey
   */
  function get(wireKey) {
    const entry = entries.get(wireKey)
    if (entry && idle.delete(entry)) idle.add(entry)
    else if (entry && idleMissing.delete(entry)) idleMissing.add(entry)
    return entry
  }

  /** @param {Entry} entry whose key has none */
  function add(entry) {
    entry.bytes = ENTRY_BYTES
    entries.set(entry.wireKey, entry)
    bytes += entry.bytes
  }

  /**
   * To be called after each change of an entry, or of who wants it: counts its bytes again, drops it where it is of no
   * use, and others where there is no room.
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
