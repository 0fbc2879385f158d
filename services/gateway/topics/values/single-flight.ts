// Single flight: however many requests want a key that has to be asked for, the fetcher is asked once, and all of them
// are given its answer.
import type { Backbone } from '@keycast/backbone'
import { ANSWER_GRACE_MS, type Calendar } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import { type Cache, type Entry, isWanted, NOBODY, type Result, type Waiter } from './cache.ts'
import { silentOwner } from './failure.ts'
import type { Paying } from './payer-choice.ts'

/** Of an operator's question. */
const NOBODYS: Paying = { payer: undefined, account: undefined }

interface Deps {
  subscriptions: { open(wireKey: string): Entry }
  cache: Cache
  backbone: Pick<Backbone, 'get' | 'cancelGet' | 'renewWatch' | 'nodesAlive'>
  calendar: Pick<Calendar<Entry>, 'schedule'>
  counts: Pick<Counts, 'coalesced'>
  now: () => number
}

export function createSingleFlight({ subscriptions, cache, backbone, calendar, counts, now }: Deps) {
  /**
   * Waits for the fetcher's next answer for a key.
   *
   * @param wireKey of a key that passed the gate
   * @param asker for whom
   * @returns never rejects
   */
  function want(wireKey: string, { payer, account }: Paying = NOBODYS): Promise<Result> {
    const known = cache.peek(wireKey)
    const problem = known && isWanted(known) ? undefined : cache.refusal(payer, known)
    if (problem) return Promise.resolve({ problem })
    const entry = subscriptions.open(wireKey)
    const deadlineAtMs = now() + entry.namespace.timeoutMs + ANSWER_GRACE_MS
    return new Promise(resolve => {
      const waiter = { resolve, deadlineAtMs, payer, account }
      if (entry.waiters.length === 0) {
        if (entry.subscriptions.length === 0) entry.paying = waiter
        entry.waiters = [waiter]
        cache.update(entry)
        backbone.get(wireKey)
      } else {
        entry.waiters.push(waiter)
        counts.coalesced++
      }
      calendar.schedule(entry, deadlineAtMs)
    })
  }

  /** Gives a result to all who wait for a key, or to some of them. */
  function resolve(entry: Entry, result: Result, isMeant: (waiter: Waiter) => boolean = () => true) {
    const { waiters } = entry
    const left = waiters.filter(waiter => !isMeant(waiter))
    entry.waiters = left.length > 0 ? left : NOBODY
    if (entry.subscriptions.length === 0) entry.paying = entry.waiters[0]
    for (const waiter of waiters) if (isMeant(waiter)) waiter.resolve(result)
  }

  /**
   * Gives up on the requests that have waited past their deadline. With the last of them the fetcher is asked no longer.
   */
  function expire(entry: Entry) {
    if (entry.waiters.length === 0) return
    const nowMs = now()
    const isLate = ({ deadlineAtMs }: Waiter) => deadlineAtMs <= nowMs
    if (entry.waiters.some(isLate)) {
      resolve(entry, { problem: silentOwner(entry.namespace, backbone.nodesAlive(entry.wireKey)) }, isLate)
      if (entry.waiters.length === 0) {
        backbone.cancelGet(entry.wireKey)
        // Its answer would have said what confirms the key from then on: see leaveNode in staleness.ts. And clients with a
        // later version than this gateway waited for it, too: the watch's answer has the key asked for again for them.
        if (entry.subscriptions.length > 0) backbone.renewWatch(entry.wireKey)
      }
      cache.update(entry)
    }
    for (const waiter of entry.waiters) calendar.schedule(entry, waiter.deadlineAtMs)
  }

  return { want, resolve, expire }
}
