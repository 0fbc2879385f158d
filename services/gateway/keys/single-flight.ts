// Single flight: however many requests want a key that has to be asked for, the fetcher is asked once, and all of them
// are given its answer.
import { ANSWER_GRACE_MS } from '@keycast/service'
import { NOBODY } from './entry.ts'
import { createProblem, silentFetcher } from './problem.ts'

/**
 * @typedef {import('@keycast/backbone').Backbone} Backbone
 * @typedef {import('./entry.ts').Entry} Entry
 * @typedef {import('./entry.ts').Result} Result
 * @typedef {ReturnType<typeof createSingleFlight>} SingleFlight
 */

/**
 * @param {object} deps
 * @param {Pick<import('./values.ts').Values, 'open'>} deps.values
 * @param {import('./cache.ts').Cache} deps.cache
 * @param {Pick<Backbone, 'get' | 'cancelGet' | 'nodesAlive'>} deps.backbone
 * @param {Pick<import('./calendar.ts').Calendar<Entry>, 'schedule'>} deps.calendar
 * @param {Pick<import('../counts.ts').Counts, 'coalesced'>} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createSingleFlight({ values, cache, backbone, calendar, counts, now }) {
  /**
   * Waits for the fetcher's next answer for a key.
   *
   * @param {string} wireKey of a key that passed the gate
   * @param {{ deadlineMs?: number }} [options] how long to wait; by default as long as an answer may take
   * @returns {Promise<Result>} never rejects
   */
  function want(wireKey, { deadlineMs } = {}) {
    if (!cache.peek(wireKey) && cache.isFull()) return Promise.resolve({ problem: createProblem('capacity', now()) })
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

  /**
   * Gives a result to all who wait for a key.
   *
   * @param {Entry} entry
   * @param {Result} result
   */
  function resolve(entry, result) {
    for (const waiter of entry.waiters) waiter.resolve(result)
    entry.waiters = NOBODY
  }

  /**
   * Gives up on the requests that have waited past their deadline. With the last of them the fetcher is asked no longer.
   *
   * @param {Entry} entry
   */
  function expire(entry) {
    if (entry.waiters.length === 0) return
    const nowMs = now()
    const inTime = entry.waiters.filter(waiter => waiter.deadlineAtMs > nowMs)
    if (inTime.length < entry.waiters.length) {
      const problem = silentFetcher(backbone.nodesAlive(), nowMs)
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
