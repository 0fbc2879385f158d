// Single flight: however many requests want a key that has to be asked for, the fetcher is asked once, and all of them
// are given its answer.
import type { Backbone } from '@keycast/backbone'
import { ANSWER_GRACE_MS, type Calendar } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Cache } from './cache.ts'
import { type Entry, NOBODY, type Result } from './entry.ts'
import { silentFetcher } from './failure.ts'
import type { Values } from './values.ts'

export type SingleFlight = ReturnType<typeof createSingleFlight>

interface Deps {
  values: Pick<Values, 'open'>
  cache: Cache
  backbone: Pick<Backbone, 'get' | 'cancelGet' | 'nodesAlive'>
  calendar: Pick<Calendar<Entry>, 'schedule'>
  counts: Pick<Counts, 'coalesced'>
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createSingleFlight({ values, cache, backbone, calendar, counts, now }: Deps) {
  /**
   * Waits for the fetcher's next answer for a key.
   *
   * @param wireKey of a key that passed the gate
   * @param options how long to wait; by default as long as an answer may take
   * @returns never rejects
   */
  function want(wireKey: string, { deadlineMs }: { deadlineMs?: number } = {}): Promise<Result> {
    if (!cache.peek(wireKey) && cache.isFull()) return Promise.resolve({ problem: { code: 'capacity' } })
    const entry = values.open(wireKey)
    const deadlineAtMs = now() + (deadlineMs ?? entry.namespace.timeoutMs + ANSWER_GRACE_MS)
    return new Promise(resolve => {
      if (entry.waiters.length === 0) {
        entry.waiters = [{ resolve, deadlineAtMs }]
        cache.update(entry)
        backbone.get(wireKey)
      } else {
        entry.waiters.push({ resolve, deadlineAtMs })
        counts.coalesced++
      }
      calendar.schedule(entry, deadlineAtMs)
    })
  }

  /** Gives a result to all who wait for a key. */
  function resolve(entry: Entry, result: Result) {
    for (const waiter of entry.waiters) waiter.resolve(result)
    entry.waiters = NOBODY
  }

  /**
   * Gives up on the requests that have waited past their deadline. With the last of them the fetcher is asked no longer.
   */
  function expire(entry: Entry) {
    if (entry.waiters.length === 0) return
    const nowMs = now()
    const inTime = entry.waiters.filter(waiter => waiter.deadlineAtMs > nowMs)
    if (inTime.length < entry.waiters.length) {
      const problem = silentFetcher(backbone.nodesAlive())
      for (const waiter of entry.waiters) if (waiter.deadlineAtMs <= nowMs) waiter.resolve({ problem })
      entry.waiters = inTime.length > 0 ? inTime : NOBODY
      if (inTime.length === 0) {
        backbone.cancelGet(entry.wireKey)
        cache.update(entry)
      }
    }
    for (const waiter of inTime) calendar.schedule(entry, waiter.deadlineAtMs)
  }

  return { want, resolve, expire }
}
