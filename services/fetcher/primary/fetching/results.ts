// Applies a fetch's result to its key: the state held from now on, the links to notify, the time of the next try.
import type { HandedOver } from '@keycast/backbone'
import { errorCodes } from '@keycast/protocol'
import { detached } from '@keycast/service'
import { type FailedResult, hasFailed, type Result } from '../../worker-messages.ts'
import type { Refusals } from '../gateways/refusals.ts'
import type { Entry } from '../keys/entry.ts'
import { confirmValue, holdFailure, holdNotFound, holdValue, invalidate, isFailing } from '../keys/held.ts'
import { isCold, isKept, isWaitedFor } from '../keys/interest.ts'
import type { KeySource } from '../origins/origins.ts'
import type { Schedule } from '../timing/schedule.ts'
import type { Fetch, Fetches } from './fetches.ts'

export type Ended = Pick<Fetch, 'entry' | 'again' | 'superseded' | 'queuedAt' | 'sentAt' | 'askedAt' | 'authorization'>

interface Deps {
  table: {
    hasRoomFor: (entry: Entry, bytes: number) => boolean
    hasShareFor: (entry: Entry, bytes: number) => boolean
    recount: (entry: Entry) => void
  }
  interest: { notifyAll: (entry: Entry, how?: { isAsAssured: boolean }) => void }
  schedule: Schedule
  refreshes: { end: (entry: Entry) => void }
  recovery: {
    noteEnd: (source: KeySource, succeeded: boolean, closed: boolean) => void
    probe: (source: KeySource) => void
  }
  fetches: Pick<Fetches, 'want' | 'supersede'>
  refusals: Pick<Refusals, 'refuseAll' | 'refuseShares' | 'forbid'>
  now: () => number
  wallNow: () => number
}

export function createResults({
  table,
  interest,
  schedule,
  refreshes,
  recovery,
  fetches,
  refusals,
  now,
  wallNow,
}: Deps) {
  /**
   * @param body of a value
   * @param delta turns the version that the result names into the body
   * @param closed whether it closed the namespace's breaker
   */
  function take(fetch: Ended, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) {
    const { entry, again, queuedAt, sentAt = now(), askedAt = sentAt } = fetch
    if (entry.namespace.isPerUser && isForbidden(result)) {
      refreshes.end(entry)
      refusals.forbid(entry, fetch.authorization)
      return noteEnd(entry.source, false, closed)
    }
    // The value that it confirms is gone where a token of its user was revoked meanwhile.
    const isOfDropped = result.kind === 'current' && !entry.held.value
    if (fetch.superseded || isOfDropped) {
      passOver(entry, again || isOfDropped)
      return noteEnd(entry.source, !hasFailed(result), closed)
    }
    const fits = result.kind !== 'value' || !body || table.hasRoomFor(entry, body.length)
    // Of the first value alone: all who watch a value that has grown would lose it.
    const isWithinShare = entry.held.value || result.kind !== 'value' || !body || table.hasShareFor(entry, body.length)
    if ((fits || entry.held.value) && isWithinShare) {
      // Links that have watched for long keep their value and do not pay for newer watchers. They are told that it is
      // old, and get the next value that fits.
      const before = termsOf(entry)
      // A result that was asked for before the refresh was due says less than the links were told already.
      const isInTime = entry.refresh === undefined || sentAt >= entry.refresh.againAt
      refreshes.end(entry)
      hold(entry, fits ? result : noRoom, body, delta, {
        askedAt,
        waitedMs: Math.round(sentAt - queuedAt),
        changed: again,
      })
      interest.notifyAll(entry, { isAsAssured: isInTime && result.kind !== 'failed' && termsOf(entry) === before })
      // A failing key is tried again anyway. For a key that nobody waits for the mark `invalid` is enough.
      if (again && !isFailing(entry) && (isKept(entry) || isCold(entry))) fetches.want(entry)
      table.recount(entry)
    } else {
      refreshes.end(entry)
      if (fits) refusals.refuseShares(entry)
      else refusals.refuseAll(entry)
    }
    noteEnd(entry.source, !hasFailed(result), closed)
  }

  function noteEnd(source: KeySource, succeeded: boolean, closed: boolean) {
    // Where no key fails there is nothing to recover.
    if (source.failing.size > 0) recovery.noteEnd(source, succeeded, closed)
  }

  /** Takes no notice of a result: the entry has a newer value, or none. Those who came meanwhile are given that. */
  function passOver(entry: Entry, again: boolean) {
    interest.notifyAll(entry)
    // A refresh that is under way came due since that value came.
    if ((again || entry.refresh) && (isKept(entry) || isCold(entry))) fetches.want(entry)
    // Whoever came since the value counted on this fetch to begin the key's period.
    else if (isKept(entry) && entry.timing.timer === undefined) schedule.begin(entry)
    table.recount(entry)
  }

  /**
   * The backend hands over a value, or says that the key has none. A fetch that began before is of no use any more; one
   * that begins later brings a newer value.
   *
   * Nobody's share counts here: a stranger who has had theirs, and watches the key, would keep the backend's value out.
   *
   * @returns whether there is room for it; otherwise everything stays as it was
   */
  function takeHandedOver(entry: Entry, content: HandedOver['content']): boolean {
    if (content && !table.hasRoomFor(entry, content.body.length)) {
      table.recount(entry)
      return false
    }
    const before = termsOf(entry)
    refreshes.end(entry)
    fetches.supersede(entry)
    const result = content ? ({ kind: 'value', store: true, status: 200, ...content } as const) : removed
    hold(entry, result, content?.body, undefined, { askedAt: now(), waitedMs: 0, changed: false })
    interest.notifyAll(entry, { isAsAssured: content !== undefined && termsOf(entry) === before })
    table.recount(entry)
    return true
  }

  /**
   * @param received the body
   * @param when when the backend was asked, how long the change waited for a worker, and whether the key changed since
   */
  function hold(
    entry: Entry,
    result: Result,
    received: Buffer | undefined,
    delta: Buffer | undefined,
    { askedAt, waitedMs, changed }: { askedAt: number; waitedMs: number; changed: boolean },
  ) {
    const wallMs = wallNow() - Math.round(now() - askedAt)
    switch (result.kind) {
      case 'value': {
        const body = detached(received ?? Buffer.alloc(0))
        // A delta is kept only if it fits beside the body: another key is worth more than a delta.
        const isKeptToo = delta !== undefined && table.hasRoomFor(entry, body.length + delta.length)
        holdValue(entry, result, body, isKeptToo ? detached(delta) : undefined, {
          askedAt,
          waitedMs,
          cameAt: now(),
          invalid: changed,
          wallMs,
        })
        return schedule.succeeded(entry)
      }
      case 'current': {
        confirmValue(entry, result, askedAt, changed, wallMs)
        return schedule.succeeded(entry)
      }
      case 'failed': {
        if (result.code !== 'not_found') return fail(entry, result, askedAt, changed)
        holdNotFound(entry, { code: result.code, message: result.message, askedAt }, result.maxAgeMs, changed)
        return schedule.succeeded(entry)
      }
    }
  }

  function fail(entry: Entry, failed: FailedResult, askedAt: number, changed: boolean) {
    holdFailure(entry, { code: failed.code, message: failed.message, askedAt })
    if (changed) invalidate(entry)
    schedule.failed(entry, failed)
  }

  /** The backend's breaker is open: it is not asked, and links that wait get the failure at once. */
  function refuse(entry: Entry) {
    // Gateways that were told of the problem need not hear that nothing was tried since.
    if (!isFailing(entry) || isWaitedFor(entry)) {
      // A `not_found` is dropped, too: nobody knows any more whether the key exists.
      holdFailure(entry, { code: 'backend_unavailable', message: breakerOpen, askedAt: now() })
    }
    refreshes.end(entry)
    schedule.park(entry, entry.source.breaker.retryAt())
    interest.notifyAll(entry)
    table.recount(entry)
    recovery.probe(entry.source)
  }

  return { take, takeHandedOver, refuse }
}

/** How long the held state may be used. Links are told of a change here even if the version is the same. */
const termsOf = ({ held: { value, takenOver, maxAgeMs } }: Entry) =>
  // Gateways make no plan for a value that may not be stored.
  takenOver ? `${takenOver.version} true ${maxAgeMs}` : `${value?.version} ${value?.store} ${maxAgeMs}`

/**
 * Answers that the backend gives to one user; given to the fetcher itself, each would be a mistake in keycast.yaml.
 */
const isForbidden = (result: Result) => result.kind === 'failed' && (result.status === 401 || result.status === 403)

const removed: FailedResult = { kind: 'failed', code: 'not_found', message: errorCodes.not_found }

const breakerOpen = 'the backend failed too often: its circuit breaker is open'

/** Room is not made in a moment, and each try costs the backend a whole response. */
const NO_ROOM_RETRY_MS = 5_000

const noRoom: FailedResult = {
  kind: 'failed',
  code: 'capacity',
  message: 'the value has grown, and the server holds as many values as it may',
  retryAfterMs: NO_ROOM_RETRY_MS,
}
