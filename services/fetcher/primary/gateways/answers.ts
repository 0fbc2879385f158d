// Decides what a link is sent of a key. The decision is made at the moment of sending, from the state held then and the
// state the link was sent before. Nothing is queued per link, so no gateway is ever sent an outdated state.
import type { Answer } from '@keycast/backbone'
import type { Entry } from '../keys/entry.ts'
import { isFresh, isNoOlder } from '../keys/held.ts'
import { type Waiter, waiterOf, watcherOf } from '../keys/interest.ts'
import { ASSURED, OWED, QUIET, type Watcher } from '../keys/watchers.ts'
import { isOverdue, nextOf } from '../timing/refreshes-under-way.ts'

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
  if (failure && !(value && isFresh(entry, now))) return failed(entry, now)
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
  const isNews = isOwed || watcher.failure !== undefined || watcher.askedAt < askedAt || isNoLongerAssured
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
  { key, held: { value, askedAt, maxAgeMs, order } }: Entry,
  version: string | undefined,
  now: number,
): Answer | undefined {
  if (!value) return undefined
  const { store } = value
  const ageMs = now - askedAt
  if (value.version === version) return { type: 'current', key, version, order, ageMs, maxAgeMs, store }
  const { contentType, format, body } = value
  const delta = value.delta?.from === version ? value.delta : undefined
  return { type: 'value', key, version: value.version, order, ageMs, maxAgeMs, store, contentType, format, body, delta }
}

function failed({ key, held: { failure, maxAgeMs }, timing: { nextTryAt } }: Entry, now: number): Answer | undefined {
  if (!failure) return undefined
  const { code, message, askedAt } = failure
  return {
    type: 'failed',
    key,
    code,
    message,
    ageMs: now - askedAt,
    maxAgeMs: code === 'not_found' ? maxAgeMs : undefined,
    retryAfterMs: nextTryAt === undefined ? undefined : Math.max(0, nextTryAt - now),
  }
}
