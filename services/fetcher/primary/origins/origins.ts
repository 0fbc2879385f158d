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

/** The backends that keycast.yaml names, each once: metrics have a label for each, and for no other. */
export function originNames({ names, get }: Namespaces) {
  return new Set(names.flatMap(name => get(name)?.origin ?? []))
}

interface Options {
  /** The origin of each namespace, and how many of its requests go as one. */
  namespaces: Iterable<[name: string, origin: string, batchMax?: number]>
  /** Requests to each backend. */
  inFlightMax: number
  /** `sources`: how many namespaces its backend has. */
  newLimit: (sources: number) => Limit
  now: () => number
}

/** @returns by namespace */
export function createSources<R extends Request>({ namespaces, inFlightMax, newLimit, now }: Options) {
  const origins = new Map<string, Origin<R>>()
  const named = [...namespaces]
  const sources = new Map<string, Source<R>>()
  for (const [namespace, name, batchMax = 1] of named) {
    const origin = origins.get(name) ?? { name, inFlightMax, inFlight: 0, sources: [], turn: 0 }
    origins.set(name, origin)
    const limit = newLimit(named.filter(([, other]) => other === name).length)
    const queue = createFetchQueue<R>({ limit: limit.inForce })
    const breaker = createBreaker({ now })
    const source = { namespace, origin, queue, limit, breaker, isRefusing: false, batchMax, isGathering: false }
    origin.sources.push(source)
    sources.set(namespace, source)
  }
  return sources
}

/** @returns the sources of keys, by namespace */
export function createKeySources({
  namespaces: { names, get },
  inFlightMax,
  now,
}: {
  namespaces: Namespaces
  /** Fetches, each backend. */
  inFlightMax: number
  now: () => number
}): Map<string, KeySource> {
  const sources = createSources<Fetch>({
    namespaces: names.flatMap(name => {
      const namespace = get(name)
      return namespace === undefined ? [] : [[name, namespace.origin, namespace.batch?.max]]
    }),
    inFlightMax,
    newLimit: sources => createFetchLimit({ max: inFlightMax, sources, now }),
    now,
  })
  for (const source of sources.values()) {
    Object.assign(source, {
      keptKeys: 0,
      failing: new Set(),
      wokenAt: Number.NEGATIVE_INFINITY,
      probeTimer: undefined,
      probedAt: Number.NEGATIVE_INFINITY,
      probes: undefined,
    })
  }
  return sources as Map<string, KeySource>
}

/** @returns each once */
export const originsOf = <R extends Request>(sources: Iterable<Source<R>>): Origin<R>[] => [
  ...new Set(Array.from(sources, ({ origin }) => origin)),
]
