// The primary's record of one key. Each part is changed by one module only; all others call that module's functions.
//
// part            changed by                      says
// interest        keys/interest.ts                which links watch the key or wait for it
// held            keys/held.ts                    the value, or why there is none
// timing          timing/schedule.ts              when the key is tried by itself
// fetch           fetching/fetches.ts             the fetch under way
// refresh         timing/refreshes-under-way.ts   the refresh under way
// bytes, counted  keys/key-table.ts               what the entry costs
import { readViewerKey } from '@keycast/backbone'
import { newTiming } from '../timing/schedule.ts'
import { newHeld } from './held.ts'
import { isWanted, newInterest } from './interest.ts'

/**
 * @typedef {import('@keycast/service').Namespace} Namespace
 * @typedef {import('../fetching/fetches.ts').Fetch} Fetch
 * @typedef {import('../origins/origins.ts').Origin} Origin
 *
 * @typedef {object} Entry
 * @property {string} key well-formed, of a known namespace; or a viewer key of one
 * @property {Namespace} namespace
 * @property {Origin} origin
 * @property {import('./interest.ts').EntryInterest} interest
 * @property {import('./held.ts').Held} held
 * @property {import('../timing/schedule.ts').Timing} timing
 * @property {Fetch | undefined} fetch
 * @property {import('../timing/refreshes-under-way.ts').Refresh | undefined} refresh of a key whose links hear of changes only
 * @property {number} bytes the entry's size, as the key table counted it
 * @property {boolean} counted whether the count of its backend's keys kept fresh has it
 */

/**
 * @param {string} key may be a viewer key
 * @param {Namespace} namespace
 * @param {Origin} origin
 * @returns {Entry}
 */
export function createEntry(key, namespace, origin) {
  return {
    key,
    namespace,
    origin,
    interest: newInterest(),
    held: newHeld(namespace.maxAgeMs),
    timing: newTiming(),
    fetch: undefined,
    refresh: undefined,
    bytes: 0,
    counted: false,
  }
}

/** Whether the entry must stay. @param {Entry} entry */
export const isInUse = entry => isWanted(entry) || entry.fetch !== undefined

/**
 * The viewer whose own value it is; `undefined` if all have the same. Read from the key each time: most keys have none,
 * and a field would cost a million of them 8 MB.
 *
 * @param {Pick<Entry, 'key' | 'namespace'>} entry
 */
export const viewerOf = ({ key, namespace }) => (namespace.isPerUser ? readViewerKey(key)?.viewer : undefined)

/** The key as clients and backends know it. @param {Pick<Entry, 'key' | 'namespace'>} entry */
export const sharedKeyOf = ({ key, namespace }) => (namespace.isPerUser && readViewerKey(key)?.key) || key
