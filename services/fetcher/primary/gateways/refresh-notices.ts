// The backend's content changed, as gateways say: the keys that it may be of are asked for now.
import { userOfViewer } from '@keycast/backbone'
import { namespaceOf } from '@keycast/protocol'
import { allKeysOf } from '../changes/changed-keys.ts'
import type { Fetches } from '../fetching/fetches.ts'
import type { Entry } from '../keys/entry.ts'
import { invalidate, isFailing, isMissing } from '../keys/held.ts'
import { isKept } from '../keys/interest.ts'
import type { KeyTable } from '../keys/key-table.ts'
import { viewerOf } from '../keys/viewer.ts'
import { forgetAbsence } from '../timing/absent-keys.ts'
import type { InTurns } from '../timing/in-turns.ts'
import { notBeforeAtOf, type Schedule } from '../timing/schedule.ts'
import type { ReportedChanges } from './reported-changes.ts'

interface Deps {
  table: KeyTable
  fetches: Fetches
  schedule: Schedule
  inTurns: InTurns
  reported: ReportedChanges
  now: () => number
}

export function createRefreshNotices({ table, fetches, schedule, inTurns, reported, now }: Deps) {
  /** Namespaces whose keys are being gone through; true: once more after that. */
  const walks = new Map<string, boolean>()

  /** Nobody knows which keys changed. Only namespaces with a stream of changes are named so. */
  function refreshNamespace(name: string) {
    const isWalking = walks.has(name)
    walks.set(name, isWalking)
    if (isWalking) return
    const entries = table.entries()
    inTurns(() => {
      const { done, value: entry } = entries.next()
      if (!done) {
        if (entry.namespace.name === name) refreshUnlessFailing(entry)
        return true
      }
      const isRepeated = walks.get(name)
      walks.delete(name)
      if (isRepeated) refreshNamespace(name)
      return false
    })
  }

  /** Without news of a key itself its backoff holds, and a key that the backend never had keeps its place behind all others. */
  function refreshUnlessFailing(entry: Entry) {
    if (!isFailing(entry) && !isMissing(entry)) return refreshOne(entry)
    if (!fetches.repeat(entry) && !isFailing(entry) && isKept(entry)) fetches.want(entry)
  }

  /** @param key of one value, or of each user's own @param users whose alone */
  function refreshKey(key: string, users: ReadonlySet<string> | undefined) {
    reported.add(key)
    const entry = table.get(key)
    // With no value and no `not_found`, nothing can be old.
    if (entry) return refreshOne(entry)
    const own = [...table.ownOf(key)].filter(entry => !users || users.has(userOfViewer(viewerOf(entry) ?? '')))
    inTurns(() => {
      const next = own.pop()
      if (next && table.get(next.key) === next) refreshOne(next)
      return next !== undefined
    })
  }

  function refreshOne(entry: Entry) {
    invalidate(entry)
    forgetAbsence(entry)
    if (fetches.repeat(entry)) return
    if (notBeforeAtOf(entry) > now()) schedule.insist(entry)
    else if (isKept(entry)) fetches.want(entry)
    else schedule.forgetBackoff(entry)
  }

  return function onNotice({ keys, users }: { keys: string[]; users?: string[] }) {
    const named = users && new Set(users)
    for (const key of keys) {
      if (key === allKeysOf(namespaceOf(key))) refreshNamespace(namespaceOf(key))
      else refreshKey(key, named)
    }
  }
}
