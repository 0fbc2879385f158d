// keycast.yaml changed while keys are kept fresh: requests go to other backends or at other times from now on. Held
// values stay, so that no viewer sees a gap; the next fetch of each key is the first by the new rules.
import { idOf } from '@keycast/protocol'
import { idProblem, type NamespaceChanges } from '@keycast/service'
import type { Entry } from './keys/entry.ts'
import { forgetValidators, isAnswered, isFailing } from './keys/held.ts'
import { isKept } from './keys/interest.ts'
import { sharedKeyOf } from './keys/viewer.ts'
import type { KeySources } from './origins/origins.ts'
import type { InTurns } from './timing/in-turns.ts'

interface Deps {
  sources: Pick<KeySources, 'renew' | 'get'>
  refreshes: { renew: () => void }
  table: { entries: () => Iterator<Entry> & Iterable<Entry> }
  schedule: { begin: (entry: Entry) => void; takeOver: (entry: Entry, atMs: number) => void }
  interest: { oweAll: (entry: Entry) => void }
  refusals: { refuseMisfit: (entry: Entry, why: string) => void }
  inTurns: InTurns
  now: () => number
  random: () => number
}

export function createReconfigure({
  sources,
  refreshes,
  table,
  schedule,
  interest,
  refusals,
  inTurns,
  now,
  random,
}: Deps) {
  /** The namespaces have their new rules already. */
  return function reconfigure({ request, times }: Pick<NamespaceChanges, 'request' | 'times'>) {
    sources.renew()
    refreshes.renew()
    for (const name of request) {
      const source = sources.get(name)
      if (source) source.requestChanges++
    }
    // At once: an ETag sent to another URL may be the name of other content there.
    if (request.size > 0) {
      for (const entry of table.entries()) if (request.has(entry.namespace.name)) renewRequest(entry)
    }
    if (times.size === 0) return
    const entries = table.entries()
    inTurns(() => {
      const { done, value: entry } = entries.next()
      if (!done && times.has(entry.namespace.name)) retime(entry)
      return !done
    })
  }

  function renewRequest(entry: Entry) {
    forgetValidators(entry)
    // The new URL may have no place for it, or places that it cannot fill.
    const problem = idProblem(entry.namespace, idOf(sharedKeyOf(entry)))
    if (problem) refusals.refuseMisfit(entry, problem)
  }

  function retime(entry: Entry) {
    if (!isKept(entry)) return
    const { namespace, held, timing } = entry
    const { refreshMs } = namespace
    const isDueByItself = refreshMs > 0 && isAnswered(entry) && !isFailing(entry)
    if (isDueByItself && !entry.fetch) schedule.begin(entry)
    // Its next time is that of the node before this one, and may be a former period away.
    if (held.takenOver && refreshMs > 0) {
      schedule.takeOver(entry, Math.min(timing.nextTryAt ?? Number.POSITIVE_INFINITY, now() + random() * refreshMs))
    }
    // Links that rely on beats count by the period that they were told.
    interest.oweAll(entry)
  }
}
