// The backends behind the namespaces, and each namespace's part of one: what is queued and in flight, how much of it the
// backend can take, and whether it works. A namespace that hangs or fails does so alone.
import type { Namespaces } from '@keycast/service'
import { createFetchQueue, type FetchQueue } from '../fetching/fetch-queue.ts'
import type { Fetch } from '../fetching/fetches.ts'
import type { Entry } from '../keys/entry.ts'
import type { Timer } from '../timing/timer-wheel.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import type { Request } from './dispatcher.ts'
import { createFetchLimit, type Limit } from './fetch-limit.ts'

/** A backend, as requests of one kind see it. The counters are dispatcher.ts's. */
export interface Origin<R extends Request> {
  /** Scheme, host and port. */
  name: string
  inFlightMax: number
  inFlight: number
  sources: Source<R>[]
  /** The source that is first next time. */
  turn: number
}

/** What one namespace asks of its backend. The parts are told of each request by dispatcher.ts. */
export interface Source<R extends Request> {
  namespace: string
  origin: Origin<R>
  queue: FetchQueue<R>
  /** Of its requests in flight. */
  limit: Limit
  breaker: Breaker
  /** Whether its queue is being emptied; changed by dispatcher.ts. */
  isRefusing: boolean
  /** How many of the queued go in one request. */
  batchMax: number
  /** Whether the queued wait for company; changed by dispatcher.ts. */
  isGathering: boolean
}

/** One of keys. */
export interface KeySource extends Source<Fetch> {
  /** How often keycast.yaml changed what the backend is sent for a key; changed by reconfigure.ts. */
  requestChanges: number
  /** How many of its keys are kept fresh; changed by key-table.ts. */
  keptKeys: number
  /** Keys kept fresh whose last fetch failed, the one tried longest ago first; changed by schedule.ts. */
  failing: Set<Entry>
  /**
   * When failing keys were last tried before their time, because another key's fetch succeeded; changed by recovery.ts.
   */
  wokenAt: number
  /** Changed by recovery.ts. */
  probeTimer: Timer | undefined
  /** When a failing key was last looked for to be tried; changed by recovery.ts. */
  probedAt: number
  /** How far the look at failing keys is; changed by recovery.ts. */
  probes: Iterator<Entry> | undefined
}

/** The backends that namespaces name for something, each once: metrics have a label for each, and for no other. */
export function originsOf<N>(
  { names, get }: { names: string[]; get: (name: string) => N | undefined },
  nameOf: (namespace: N) => string | undefined,
) {
  const given = names.map(get).filter(namespace => namespace !== undefined)
  return new Set(given.flatMap(namespace => nameOf(namespace) ?? []))
}

interface Options {
  /** Requests to each backend. */
  inFlightMax: number
  /** `sources`: how many namespaces its backend has. */
  newLimit: (sources: number) => Limit
  now: () => number
}

/**
 * Those of requests of one kind. Their origins are in the order in which they take turns: dispatcher.ts changes it.
 *
 * @param complete makes a source of the parts that all have
 */
export function createSources<R extends Request, S extends Source<R> = Source<R>>(
  { inFlightMax, newLimit, now }: Options,
  complete: (source: Source<R>) => S = source => source as S,
) {
  const byNamespace = new Map<string, S>()
  let named = new Set<S>()
  const origins: Origin<R>[] = []

  function originOf(name: string) {
    const known = origins.find(origin => origin.name === name)
    if (known) return known
    const origin: Origin<R> = { name, inFlightMax, inFlight: 0, sources: [], turn: 0 }
    origins.push(origin)
    return origin
  }

  function add(namespace: string, origin: Origin<R>, sources: number, batchMax: number) {
    const limit = newLimit(sources)
    const queue = createFetchQueue<R>({ limit: limit.inForce })
    const breaker = createBreaker({ now })
    const source = complete({
      namespace,
      origin,
      queue,
      limit,
      breaker,
      isRefusing: false,
      batchMax,
      isGathering: false,
    })
    origin.sources.push(source)
    byNamespace.set(namespace, source)
  }

  /**
   * Requests in flight count for the backend of before until they end. The limit finds out by itself what the next one
   * can take.
   *
   * @param source whose backend is another from now on
   */
  function move(source: S, origin: Origin<R>) {
    source.origin.sources.splice(source.origin.sources.indexOf(source), 1)
    origin.sources.push(source)
    Object.assign(source, { origin, breaker: createBreaker({ now }) })
  }

  return {
    origins,
    get: (namespace: string) => byNamespace.get(namespace),
    values: () => byNamespace.values(),
    /** Those that keycast.yaml names now. Of the others nothing is told: a breaker that was open would be for ever. */
    named: (): ReadonlySet<S> => named,

    /**
     * As keycast.yaml says now. A namespace that is gone keeps its source, for the keys that gateways still watch.
     *
     * @param given the origin of each namespace, and how many of its requests go as one
     */
    take(given: [namespace: string, origin: string, batchMax?: number][]) {
      for (const [namespace, name, batchMax = 1] of given) {
        const source = byNamespace.get(namespace)
        if (!source) {
          add(namespace, originOf(name), given.filter(([, other]) => other === name).length, batchMax)
          continue
        }
        source.batchMax = batchMax
        if (source.origin.name !== name) move(source, originOf(name))
      }
      named = new Set(given.map(([namespace]) => byNamespace.get(namespace) as S))
    },
  }
}

export type KeySources = ReturnType<typeof createKeySources>

/** The sources of keys. */
export function createKeySources({
  namespaces,
  inFlightMax,
  now,
}: {
  namespaces: Namespaces
  /** Fetches, each backend. */
  inFlightMax: number
  now: () => number
}) {
  const sources = createSources<Fetch, KeySource>(
    { inFlightMax, newLimit: sources => createFetchLimit({ max: inFlightMax, sources, now }), now },
    source =>
      Object.assign(source, {
        requestChanges: 0,
        keptKeys: 0,
        failing: new Set<Entry>(),
        wokenAt: Number.NEGATIVE_INFINITY,
        probeTimer: undefined,
        probedAt: Number.NEGATIVE_INFINITY,
        probes: undefined,
      }),
  )

  /** As the namespaces are now. */
  function renew() {
    sources.take(
      namespaces.names.flatMap(name => {
        const namespace = namespaces.get(name)
        return namespace === undefined ? [] : [[name, namespace.origin, namespace.batch?.max]]
      }),
    )
  }

  renew()
  return Object.assign(sources, { renew })
}
