// Values that the backend hands over, each by any gateway: the key's value from now on, until a later fetch or the next.
// They are ordered by when they come here, or by the backend's own numbers.
import type { HandedOver, Taken } from '@keycast/backbone'
import { idOf, keyProblem, namespaceOf, type Problem } from '@keycast/protocol'
import { idProblem, type Namespaces } from '@keycast/service'
import { createEntry, type Entry } from '../keys/entry.ts'
import type { KeyTable } from '../keys/key-table.ts'
import type { FetcherMetrics } from '../metrics.ts'
import type { KeySources } from '../origins/origins.ts'

/** Room is not made in a moment. */
const NO_ROOM_RETRY_MS = 5_000

const noRoom: Problem = {
  code: 'capacity',
  message: 'nothing was changed: the fetcher node holds as many values as it may (FETCHER_CACHE_BYTES_MAX)',
  retryAfterMs: NO_ROOM_RETRY_MS,
}

/** The gateway has the key asked for instead. */
const perhapsOlder: Problem = {
  code: 'fetcher_unavailable',
  message: 'nothing was changed: the node that had the key before may have taken a newer value',
}

interface Deps {
  namespaces: Namespaces
  sources: Pick<KeySources, 'get'>
  table: Pick<KeyTable, 'get' | 'open' | 'recount'>
  results: { takeHandedOver: (entry: Entry, content: HandedOver['content']) => boolean }
  metrics: Pick<FetcherMetrics, 'handedOver'>
}

export function createHandedOver({ namespaces, sources, table, results, metrics }: Deps) {
  function take({ key, content, rank, isRepeated }: HandedOver): Taken {
    const entry = open(key)
    if ('code' in entry) return entry
    const { held } = entry
    if (rank !== undefined && held.rank !== undefined && rank < held.rank) return { outcome: 'older', rank: held.rank }
    if (isRepeated) {
      held.rank = rank ?? held.rank
      table.recount(entry)
      return perhapsOlder
    }
    if (!results.takeHandedOver(entry, content)) return noRoom
    held.rank = rank ?? held.rank
    return { outcome: 'taken' }
  }

  /** @param key anything a gateway sent */
  function open(key: string): Entry | Problem {
    const opened = table.get(key)
    if (opened && !opened.namespace.isPerUser) return opened
    const why = keyProblem(key)
    if (why !== undefined) return { code: 'bad_key', message: why }
    const namespace = namespaces.get(namespaceOf(key))
    const source = sources.get(namespaceOf(key))
    if (!namespace || !source || namespace.isPerUser || idProblem(namespace, idOf(key))) {
      return { code: 'unknown_namespace', message: 'the fetcher has another configuration than the gateway' }
    }
    const entry = table.open(key, undefined, () => createEntry(key, namespace, source))
    return entry === 'full' || entry === 'share' ? noRoom : entry
  }

  return (value: HandedOver): Taken => {
    const taken = take(value)
    metrics.handedOver('outcome' in taken ? taken.outcome : 'refused')
    return taken
  }
}
