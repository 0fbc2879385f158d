// The backends behind the namespaces, by origin: how much each can take, and whether it works.
import type { Namespaces } from '@keycast/service'
import { createFetchQueue, type FetchQueue } from '../fetching/fetch-queue.ts'
import type { Fetch } from '../fetching/fetches.ts'
import type { Entry } from '../keys/entry.ts'
import type { Timer } from '../timing/timer-wheel.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import { createFetchLimit, type FetchLimit } from './fetch-limit.ts'

export interface Origin {
  /** Scheme, host and port. */
  name: string
  /** Used by fetches.ts. */
  queue: FetchQueue<Fetch>
  /** Of its fetches in flight; told of each fetch by fetches.ts. */
  limit: FetchLimit
  /** Told of each fetch by fetches.ts. */
  breaker: Breaker
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
  namespaces: Namespaces
  /** Fetches, each. */
  inFlightMax: number
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createOrigins({ namespaces, inFlightMax, now }: Options): Map<string, Origin> {
  const origins = new Map<string, Origin>()
  for (const name of originNames(namespaces)) {
    const limit = createFetchLimit({ max: inFlightMax, now })
    origins.set(name, {
      name,
      limit,
      queue: createFetchQueue({ limit: limit.inForce }),
      breaker: createBreaker({ now }),
      keptKeys: 0,
      failing: new Set(),
      wokenAt: Number.NEGATIVE_INFINITY,
      probeTimer: undefined,
      probedAt: Number.NEGATIVE_INFINITY,
      probes: undefined,
    })
  }
  return origins
}
