// The primary's record of one key. Each part is changed by one module only; all others call that module's functions.
//
// part            changed by                      says
// interest        keys/interest.ts                which links watch the key or wait for it
// held            keys/held.ts                    the value, or why there is none
// timing          timing/schedule.ts              when the key is tried by itself
// absence         timing/absent-keys.ts           who asked in vain for what the backend never had
// fetch           fetching/fetches.ts             the fetch under way
// refresh         timing/refreshes-under-way.ts   the refresh under way
// bytes, counted  keys/key-table.ts               what the entry costs
// holder          keys/key-table.ts               who pays for it
import type { Holder, Namespace } from '@keycast/service'
import type { Fetch } from '../fetching/fetches.ts'
import type { KeySource } from '../origins/origins.ts'
import type { Absence } from '../timing/absent-keys.ts'
import type { Refresh } from '../timing/refreshes-under-way.ts'
import { newTiming, type Timing } from '../timing/schedule.ts'
import { type Held, newHeld } from './held.ts'
import { type EntryInterest, newInterest } from './interest.ts'

export interface Entry {
  /** well-formed, of a known namespace; or a viewer key of one. */
  key: string
  namespace: Namespace
  source: KeySource
  interest: EntryInterest
  held: Held
  timing: Timing
  /** Of a key that the backend never had. */
  absence: Absence | undefined
  fetch: Fetch | undefined
  /** Of a key whose links hear of changes only. */
  refresh: Refresh | undefined
  /** The entry's size, as the key table counted it. */
  bytes: number
  /** Who is charged for these bytes; nobody while the entry is not in use. */
  holder: Holder | undefined
  /** Whether the count of its backend's keys kept fresh has it. */
  counted: boolean
}

/** @param key may be a viewer key */
export function createEntry(key: string, namespace: Namespace, source: KeySource): Entry {
  return {
    key,
    namespace,
    source,
    interest: newInterest(),
    held: newHeld(namespace.maxAgeMs),
    timing: newTiming(),
    absence: undefined,
    fetch: undefined,
    refresh: undefined,
    bytes: 0,
    holder: undefined,
    counted: false,
  }
}
