// Entries by key, within a limit of bytes: wanted ones stay, of the others the least recently used goes first.
import { isWanted } from './entry.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {ReturnType<typeof createCache>} Cache
 */

/** What an entry costs beside its value: the entry, its key twice in maps, a Buffer's and a frame's fixed part. */
export const ENTRY_BYTES = 1_024

/**
 * @param {object} options
 * @param {number} options.bytesMax
 * @param {(value: import('./value.js').Value) => number} options.valueBytes what a value takes in all its forms
 * @param {(entry: Entry) => void} [options.onUnwanted] the entry is no longer wanted
 */
export function createCache({ bytesMax, valueBytes, onUnwanted }) {
  /** @type {Map<string, Entry>} */
  const entries = new Map()
  /** Unwanted entries, the least recently used first. @type {Set<Entry>} */
  const idle = new Set()
  let bytes = 0
  let idleBytes = 0

  /** @param {string} key */
  function peek(key) {
    return entries.get(key)
  }

  /**
   * Counts as use.
   *
   * @param {string} key
   */
  function get(key) {
    const entry = entries.get(key)
    if (entry && idle.delete(entry)) idle.add(entry)
    return entry
  }

  /** @param {Entry} entry whose key has none */
  function add(entry) {
    entry.bytes = ENTRY_BYTES
    entries.set(entry.key, entry)
    bytes += entry.bytes
  }

  /**
   * To be called after each change of an entry, or of who wants it: counts its bytes again, drops it where it is of no
   * use, and others where there is no room.
   *
   * @param {Entry} entry
   */
  function update(entry) {
    if (entries.get(entry.key) !== entry) return
    if (idle.delete(entry)) idleBytes -= entry.bytes
    const cost = bytesOf(entry)
    bytes += cost - entry.bytes
    entry.bytes = cost

    if (!isWanted(entry)) {
      onUnwanted?.(entry)
      if (!isWorthKeeping(entry)) return remove(entry)
      idle.add(entry)
      idleBytes += cost
    }
    while (bytes > bytesMax && idle.size > 0) {
      const [oldest] = idle
      idle.delete(oldest)
      idleBytes -= oldest.bytes
      remove(oldest)
    }
  }

  /** @param {Entry} entry that is not idle */
  function remove(entry) {
    entries.delete(entry.key)
    bytes -= entry.bytes
  }

  /** Whether an entry that is wanted fits beside the others that are, with the value it has. @param {Entry} entry */
  function fits(entry) {
    return bytes - idleBytes - entry.bytes + bytesOf(entry) <= bytesMax
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
    isFull,
    stats: () => ({ bytes, entries: entries.size, idle: idle.size }),
  }
}

/** @param {Entry} entry that is not wanted */
function isWorthKeeping(entry) {
  if (!entry.store) return false
  return entry.value !== undefined || entry.problem?.code === 'not_found'
}
