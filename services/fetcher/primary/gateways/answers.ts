// Decides what a link is sent of a key: the refusal of its want, or the state. The decision is made at the moment of sending,
// from the state held then and the state the link was sent before. No state is queued per link, so no gateway is ever sent
// an outdated one.
import type { Answer, FailedAnswer } from '@keycast/backbone'
import type { Entry } from '../keys/entry.ts'
import { isFresh, isNoOlder } from '../keys/held.ts'
import { type Waiter, type Want, waiterOf, watcherOf } from '../keys/interest.ts'
import { ASSURED, OWED, QUIET, type Watcher } from '../keys/watchers.ts'
import { absentForMs } from '../timing/absent-keys.ts'
import { isOverdue, nextOf } from '../timing/refreshes-under-way.ts'

/** `wants`: a link may both watch a key and wait for it. */
interface Refusal {
  answer: FailedAnswer
  wants: Set<Want>
}

export type RefusedWants = ReturnType<typeof createRefusedWants>

/**
 * Wants that this node refuses, until each link is told the reason. Such a key has no entry. Mostly there is no room
 * for one (`capacity`), or a gateway with a newer configuration names a namespace that this node does not know. Bounded
 * like the hub's own set of due keys.
 */
export function createRefusedWants() {
  /** By link and key. */
  const byLink = new Map<string, Map<string, Refusal>>()

  function forget(link: string, key: string) {
    const refusals = byLink.get(link)
    if (refusals?.delete(key) && refusals.size === 0) byLink.delete(link)
  }

  return {
    /** @param want that is refused, beside one refused already */
    add(link: string, answer: FailedAnswer, want: Want) {
      const refusals = byLink.get(link) ?? new Map()
      byLink.set(link, refusals)
      const wants = refusals.get(answer.key)?.wants ?? new Set()
      refusals.set(answer.key, { answer, wants: wants.add(want) })
    },

    /** The link dropped this want: it is told nothing about it. */
    withdraw(link: string, key: string, want: Want) {
      const wants = byLink.get(link)?.get(key)?.wants
      if (wants?.delete(want) && wants.size === 0) forget(link, key)
    },

    /**
     * The key can be served after all: the link is not told of the refusal.
     *
     * @param want granted now
     * @returns whether the link's other want was refused before, and should be granted, too
     */
    forgive(link: string, key: string, want: Want): boolean {
      const wants = byLink.get(link)?.get(key)?.wants
      forget(link, key)
      return wants?.has(want === 'watch' ? 'get' : 'watch') === true
    },

    /** @returns to be sent now */
    take(link: string, key: string): FailedAnswer | undefined {
      const answer = byLink.get(link)?.get(key)?.answer
      forget(link, key)
      return answer
    },

    dropLink(link: string) {
      byLink.delete(link)
    },
  }
}

/**
 * The key's latest state for a link; it counts as sent from now on.
 *
 * @returns `more`: the link is due another one
 */
export function takeAnswer(
  interest: { noteSent: (link: string, entry: Entry, answer: Answer | undefined) => void },
  entry: Entry,
  link: string,
  now: number,
): { answer: Answer | undefined; more: boolean } {
  const watcher = watcherOf(entry, link)
  const waiter = waiterOf(entry, link)
  // The gateway takes any answer for the one that its get waits for: nothing may go out before that answer is ready.
  if (waiter && !waiter.ready) return { answer: undefined, more: false }

  const answer = waiter ? answerWaiter(entry, waiter, now) : watcher && answerWatcher(entry, watcher, now)
  if (watcher && watcher.state & QUIET && answer && answer.type !== 'failed') answer.next ??= nextOf(entry, now)
  interest.noteSent(link, entry, answer)
  return { answer, more: watcher !== undefined && answer !== undefined && isDueFailure(entry, watcher) }
}

function answerWaiter(entry: Entry, waiter: Waiter, now: number) {
  const { value, failure } = entry.held
  if (failure && !(value && isFresh(entry, now) && isNoOlder(entry, waiter))) {
    const answer = failed(entry, now, absentForMs(entry, waiter.payer, now))
    if (answer && waiter.isOld) answer.onlyFor = waiter.payer
    return answer
  }
  return state(entry, waiter.version, now)
}

function answerWatcher(entry: Entry, watcher: Watcher, now: number): Answer | undefined {
  const { value, failure, takenOver, askedAt } = entry.held
  const isOwed = (watcher.state & OWED) !== 0
  const isNoLongerAssured = (watcher.state & ASSURED) !== 0 && isOverdue(entry)
  if (takenOver) {
    const { version } = takenOver
    const isDue = watcher.version === version && (isOwed || isNoLongerAssured)
    return isDue ? { type: 'kept', key: entry.key, version, next: nextOf(entry, now) } : undefined
  }
  // The gateway's state was asked for later than the held one: the result of a fetch under way is news to it.
  const isCurrent = value?.version === watcher.version
  if (value && !isCurrent && isNoOlder(entry, watcher)) return state(entry, watcher.version, now)
  if (isDueFailure(entry, watcher)) return failed(entry, now)
  const isNews = isOwed || watcher.failure !== undefined || watcher.askedAt < Math.floor(askedAt) || isNoLongerAssured
  return isCurrent && !failure && isNews ? state(entry, watcher.version, now) : undefined
}

/** Whether a link must still be sent the reason why the last fetch failed. */
function isDueFailure(entry: Entry, watcher: Watcher) {
  const { failure } = entry.held
  if (!failure || watcher.failure === failure) return false
  return failure.code !== 'not_found' || isNoOlder(entry, watcher)
}

/** @param version the gateway holds */
function state(
  { key, held: { value, askedAt, maxAgeMs, order, rank } }: Entry,
  version: string | undefined,
  now: number,
): Answer | undefined {
  if (!value) return undefined
  const { store } = value
  const ageMs = now - askedAt
  if (value.version === version) return { type: 'current', key, version, order, rank, ageMs, maxAgeMs, store }
  const { contentType, format, body } = value
  const delta = value.delta?.from === version ? value.delta : undefined
  const said = { key, version: value.version, order, rank, ageMs, maxAgeMs, store }
  return { type: 'value', ...said, contentType, format, body, delta }
}

/** @param absentMs so long the backend is not asked for those who wait; 0: whenever they ask */
function failed(
  { key, held: { failure, maxAgeMs }, timing: { nextTryAt } }: Entry,
  now: number,
  absentMs = 0,
): FailedAnswer | undefined {
  if (!failure) return undefined
  const { code, message, askedAt } = failure
  const triedInMs = nextTryAt === undefined ? undefined : Math.max(0, nextTryAt - now)
  return {
    type: 'failed',
    key,
    code,
    message,
    ageMs: now - askedAt,
    maxAgeMs: code === 'not_found' ? maxAgeMs : undefined,
    retryAfterMs: absentMs > 0 ? Math.min(absentMs, triedInMs ?? absentMs) : triedInMs,
  }
}
