// Entries by key, within a limit of bytes: wanted keys stay, the others are evicted, the one used longest ago first.
import { createUniqueQueue } from '@keycast/service'
import { isInUse } from './entry.js'
import { dropValue } from './held.js'
import { isKept } from './interest.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {ReturnType<typeof createKeyTable>} KeyTable
 */

/**
 * What an entry costs beside its body: the entry, its key, a few watchers, validators, and its places in timers, queues
 * and this table.
 */
export const ENTRY_BYTES = 2_048

/** @param {{ bytesMax: number }} options */
export function createKeyTable({ bytesMax }) {
  /** @type {Map<string, Entry>} */
  const entries = new Map()
  /** Entries that nobody wants now, the one used longest ago first. @type {import('@keycast/service').UniqueQueue<Entry>} */
  const idle = createUniqueQueue()
  let bytes = 0
  let idleBytes = 0
  let kept = 0

  /** @param {string} key */
  function get(key) {
    return entries.get(key)
  }

  /**
   * The entry of a key that somebody is about to want.
   *
   * @param {string} key
   * @param {() => Entry} create
   * @returns {Entry | undefined} `undefined` where what is wanted takes all the room there is
   */
  function open(key, create) {
    const opened = entries.get(key)
    if (opened) return opened
    if (wantedBytes() + ENTRY_BYTES > bytesMax) return undefined
    const entry = create()
    entry.bytes = ENTRY_BYTES
    bytes += entry.bytes
    entries.set(key, entry)
    return entry
  }

  /**
   * Whether a body of that size fits beside everything that is wanted.
   *
   * @param {Entry} entry that is wanted
   * @param {number} bodyBytes
   */
  function hasRoomFor(entry, bodyBytes) {
    return wantedBytes() - entry.bytes + ENTRY_BYTES + bodyBytes <= bytesMax
  }

  /**
   * Counts an entry again. Removes it where it is of no use, and others where there is no room. To be called after each change
   * of what an entry holds, of who wants it, and of whether it is fetched; check-invariants.fixture.js finds a missed call.
   *
   * @param {Entry} entry
   */
  function recount(entry) {
    if (entries.get(entry.key) !== entry) return
    if (idle.delete(entry)) idleBytes -= entry.bytes
    const inUse = isInUse(entry)
    kept += Number(isKept(entry)) - Number(entry.counted)
    entry.counted = isKept(entry)
    if (!inUse && entry.held.value?.store === false) dropValue(entry)

    const cost = costOf(entry)
    bytes += cost - entry.bytes
    entry.bytes = cost
    if (!inUse) {
      if (!entry.held.value && !entry.held.failure) return remove(entry)
      idle.add(entry)
      idleBytes += cost
    }
    while (bytes > bytesMax && idle.size > 0) {
      const oldest = /** @type {Entry} */ (idle.take())
      idleBytes -= oldest.bytes
      remove(oldest)
    }
  }

  /** @param {Entry} entry that is not idle */
  function remove(entry) {
    entries.delete(entry.key)
    bytes -= entry.bytes
  }

  function wantedBytes() {
    return bytes - idleBytes
  }

  return {
    get,
    open,
    hasRoomFor,
    recount,
    /** All of them, for checks. */
    entries: () => entries.values(),
    stats: () => ({ keys: entries.size, kept, bytes }),
  }
}

/** What an entry counts as. @param {Entry} entry */
export function costOf({ held: { value } }) {
  return ENTRY_BYTES + (value ? value.body.length + (value.delta?.bytes.length ?? 0) : 0)
}
