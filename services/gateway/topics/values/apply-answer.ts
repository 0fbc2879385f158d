// Applies an answer of the fetcher to the entry of its key.
import type { Answer, Confirmations, FailedAnswer, KeptAnswer, Next } from '@keycast/backbone'
import type { ErrorCode } from '@keycast/protocol'
import { askedAtOf, endRefreshes } from './age.ts'
import type { Entry } from './entry.ts'
import type { Failure } from './failure.ts'
import { createValue, type Value } from './value.ts'

/**
 * `value`: another version, or one where there was none; `confirmed`: the entry's version is the latest; `kept`:
 * another node goes on from what is known of it; `failed`: the try gave nothing and the entry keeps its value; `gone`:
 * the backend has nothing under the key; `refused`: it failed and will not be tried again.
 */
export type Change = 'value' | 'confirmed' | 'kept' | 'failed' | 'gone' | 'refused'

/**
 * @param confirmations that come with `next`
 * @returns `undefined` if it does not fit the entry's state, and the key must be asked for again
 */
export function applyAnswer(
  entry: Entry,
  answer: Answer,
  nowMs: number,
  confirmations?: Confirmations,
): Change | undefined {
  if (answer.type === 'kept') return keep(entry, answer, nowMs, confirmations)
  const askedAtMs = nowMs - answer.ageMs
  switch (answer.type) {
    case 'value':
      confirm(entry, answer, askedAtMs)
      awaitRefreshes(entry, answer.next, nowMs, confirmations)
      if (entry.value?.version === answer.version) return reorder(entry.value, answer.order)
      entry.value = createValue(answer, entry.key)
      entry.wasFound = true
      return 'value'
    case 'current':
      if (entry.value?.version !== answer.version) return undefined
      confirm(entry, answer, askedAtMs)
      awaitRefreshes(entry, answer.next, nowMs, confirmations)
      return reorder(entry.value, answer.order)
    case 'failed':
      return answer.code === 'not_found' ? takeNotFound(entry, answer, nowMs) : takeFailure(entry, answer, nowMs)
  }
}

/** Another node may number the same version higher; a node that does not know the number yet may number it lower. */
function reorder(value: Value, order: number | undefined): Change {
  if (order !== undefined && order > (value.order ?? 0)) value.order = order
  return 'confirmed'
}

function keep(
  entry: Entry,
  { version, next }: KeptAnswer,
  nowMs: number,
  confirmations: Confirmations | undefined,
): Change | undefined {
  // Subscribers that were told of a problem must hear when it ends, and no stored state says so.
  if (entry.value?.version !== version || entry.failure) return undefined
  endRefreshes(entry)
  awaitRefreshes(entry, next, nowMs, confirmations)
  return 'kept'
}

function confirm(entry: Entry, { maxAgeMs, store }: { maxAgeMs: number; store: boolean }, askedAtMs: number) {
  entry.askedAtMs = Math.max(askedAtOf(entry), askedAtMs)
  entry.maxAgeMs = maxAgeMs
  entry.store = store
  entry.failure = undefined
}

function awaitRefreshes(entry: Entry, next: Next | undefined, nowMs: number, confirmations: Confirmations | undefined) {
  entry.refreshes = next && confirmations && { confirmations, atMs: nowMs + next.inMs, everyMs: next.everyMs }
}

/** An absent key is an answer like any other, with an age up to which it may be used. */
function takeNotFound(entry: Entry, answer: FailedAnswer, nowMs: number): Change {
  entry.value = undefined
  endRefreshes(entry)
  entry.askedAtMs = Math.max(entry.askedAtMs, nowMs - answer.ageMs)
  entry.maxAgeMs = answer.maxAgeMs ?? entry.namespace.maxAgeMs
  // A subscription outlives it: the backend may have the key at the next refresh, and the client is told so.
  const retryAfterMs = answer.retryAfterMs ?? (entry.namespace.refreshMs || entry.maxAgeMs)
  entry.failure = failureOf(answer, retryAfterMs, nowMs)
  return 'gone'
}

function takeFailure(entry: Entry, answer: FailedAnswer, nowMs: number): Change {
  endRefreshes(entry)
  // The value was fetched with a token that may no longer read it.
  if (entry.viewer !== undefined && tokenCodes.has(answer.code)) entry.value = undefined
  entry.failure = failureOf(answer, answer.retryAfterMs, nowMs)
  return answer.retryAfterMs === undefined ? 'refused' : 'failed'
}

/** Codes about a user's token. */
const tokenCodes = new Set<ErrorCode>(['forbidden', 'token_expired'])

function failureOf({ code, message }: FailedAnswer, retryAfterMs: number | undefined, nowMs: number): Failure {
  return {
    problem: { code, message, retryAfterMs: retryAfterMs && Math.ceil(retryAfterMs) },
    atMs: nowMs,
    isLocal: false,
  }
}
