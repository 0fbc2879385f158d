// The answers that the values in memory give: to requests, to the fetcher and to operators.
import type { Backbone, Held } from '@keycast/backbone'
import { problemText } from '@keycast/protocol'
import type { Entry, Result } from './cache.ts'
import { type Failure, problemNow } from './failure.ts'
import { askedAtOf, latestAskedAtOf, planOf } from './staleness.ts'

export type Values = ReturnType<typeof createValues>

/** In the place of a value: the backend has none. */
const ABSENT: Pick<Held, 'version' | 'order' | 'rank'> = { version: undefined }

interface Deps {
  cache: { get(wireKey: string): Entry | undefined; peek(wireKey: string): Entry | undefined }
  backbone: Pick<Backbone, 'ownerOf'>
  now: () => number
}

export function createValues({ cache, backbone, now }: Deps) {
  /**
   * The answer for a key from memory, no older than its `maxAgeMs`: its value, or `not_found`. `undefined` if the
   * fetcher must be asked.
   *
   * @param asOfMs the time at which it must not be too old: now, unless the question was asked earlier
   */
  function fresh(wireKey: string, asOfMs: number = now()): Result | undefined {
    const entry = cache.get(wireKey)
    if (!entry) return undefined
    if (asOfMs - askedAtOf(entry) > entry.maxAgeMs) return undefined
    if (entry.value) return latest(entry)
    return entry.failure?.problem.code === 'not_found' ? latest(entry) : undefined
  }

  /**
   * The last known value or failure of a key, however old.
   *
   * @param entry that has a value, or whose last try failed
   */
  function latest(entry: Entry): Result {
    if (!entry.value) return { problem: problemNow(entry.failure as Failure, now()) }
    return { value: entry.value, ageMs: ageOf(entry), maxAgeMs: entry.maxAgeMs, store: entry.store }
  }

  /** This gateway's state of a key, which the backbone tells the fetcher: an older state is no answer to it. */
  function held(wireKey: string, type: 'watch' | 'get'): Held | undefined {
    const entry = cache.get(wireKey)
    if (!entry || entry.askedAtMs === Number.NEGATIVE_INFINITY) return undefined
    // No state from before this moment is an answer.
    if (type === 'get' && entry.lag?.isDoubted) return { ...ABSENT, ageMs: 0 }
    const nowMs = now()
    const ageMs = Math.max(0, nowMs - latestAskedAtOf(entry))
    const { version, order, rank } = entry.value ?? ABSENT
    return { version, ageMs, order, rank, plan: planOf(entry, nowMs) }
  }

  function ageOf(entry: Entry) {
    return Math.max(0, now() - askedAtOf(entry))
  }

  /** Everything known of a key, for an operator who asks why it is stale. All of it is this gateway's view. */
  function describe(key: string) {
    const entry = cache.peek(key)
    const nowMs = now()
    return {
      key,
      owner: backbone.ownerOf(key),
      watched: entry ? entry.subscriptions.length > 0 : false,
      subscribers: entry?.subscriptions.length ?? 0,
      waiters: entry?.waiters.length ?? 0,
      stale: entry?.stale ?? false,
      value: entry?.value && {
        version: entry.value.version,
        contentType: entry.value.contentType,
        bytes: entry.value.body.length,
        ageMs: Math.round(nowMs - askedAtOf(entry)),
        maxAgeMs: entry.maxAgeMs,
        store: entry.store,
      },
      lastFailure: entry?.failure && {
        code: entry.failure.problem.code,
        message: problemText(entry.failure.problem),
        retryAfterMs: entry.failure.problem.retryAfterMs,
        agoMs: Math.round(nowMs - entry.failure.atMs),
      },
    }
  }

  return { fresh, latest, held, describe }
}
