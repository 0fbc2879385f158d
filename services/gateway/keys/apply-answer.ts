// Applies an answer of the fetcher to the entry of its key.
import { askedAtOf, endRefreshes } from './age.ts'
import { createProblem } from './problem.ts'
import { createValue } from './value.ts'

/**
 * @typedef {import('@keycast/backbone').Answer} Answer
 * @typedef {import('@keycast/backbone').FailedAnswer} FailedAnswer
 * @typedef {import('./entry.ts').Entry} Entry
 *
 * `value`: another version, or one where there was none; `confirmed`: the entry's version is the latest; `kept`: another
 * node goes on from what is known of it; `failed`: the try gave nothing and the entry keeps its value; `gone`: the backend
 * has nothing under the key; `refused`: it failed and will not be tried again.
 * @typedef {'value' | 'confirmed' | 'kept' | 'failed' | 'gone' | 'refused'} Change
 */

/**
 * @param {Entry} entry
 * @param {Answer} answer
 * @param {number} nowMs
 * @param {import('@keycast/backbone').Confirmations} [confirmations] that come with `next`
 * @returns {Change | undefined} `undefined` if it does not fit the entry's state, and the key must be asked for again
 */
export function applyAnswer(entry, answer, nowMs, confirmations) {
  if (answer.type === 'kept') return keep(entry, answer, nowMs, confirmations)
  const askedAtMs = nowMs - answer.ageMs
  switch (answer.type) {
    case 'value':
      confirm(entry, answer, askedAtMs)
      awaitRefreshes(entry, answer.next, nowMs, confirmations)
      if (entry.value?.version === answer.version) return 'confirmed'
      entry.value = createValue(answer, entry.key)
      entry.wasFound = true
      return 'value'
    case 'current':
      if (entry.value?.version !== answer.version) return undefined
      confirm(entry, answer, askedAtMs)
      awaitRefreshes(entry, answer.next, nowMs, confirmations)
      return 'confirmed'
    case 'failed':
      return answer.code === 'not_found' ? takeNotFound(entry, answer, nowMs) : takeFailure(entry, answer, nowMs)
  }
}

/**
 * @param {Entry} entry
 * @param {import('@keycast/backbone').KeptAnswer} answer
 * @param {number} nowMs
 * @param {import('@keycast/backbone').Confirmations | undefined} confirmations
 * @returns {Change | undefined}
 */
function keep(entry, { version, next }, nowMs, confirmations) {
  // Subscribers that were told of a problem must hear when it ends, and no stored state says so.
  if (entry.value?.version !== version || entry.problem) return undefined
  endRefreshes(entry)
  awaitRefreshes(entry, next, nowMs, confirmations)
  return 'kept'
}

/**
 * @param {Entry} entry
 * @param {{ maxAgeMs: number, store: boolean }} answer
 * @param {number} askedAtMs
 */
function confirm(entry, { maxAgeMs, store }, askedAtMs) {
  entry.askedAtMs = Math.max(askedAtOf(entry), askedAtMs)
  entry.maxAgeMs = maxAgeMs
  entry.store = store
  entry.problem = undefined
}

/**
 * @param {Entry} entry
 * @param {import('@keycast/backbone').Next | undefined} next
 * @param {number} nowMs
 * @param {import('@keycast/backbone').Confirmations | undefined} confirmations
 */
function awaitRefreshes(entry, next, nowMs, confirmations) {
  entry.refreshes = next && confirmations && { confirmations, atMs: nowMs + next.inMs, everyMs: next.everyMs }
}

/**
 * An absent key is an answer like any other, with an age up to which it may be used.
 *
 * @param {Entry} entry
 * @param {FailedAnswer} answer
 * @param {number} nowMs
 * @returns {Change}
 */
function takeNotFound(entry, answer, nowMs) {
  entry.value = undefined
  endRefreshes(entry)
  entry.askedAtMs = Math.max(entry.askedAtMs, nowMs - answer.ageMs)
  entry.maxAgeMs = answer.maxAgeMs ?? entry.namespace.maxAgeMs
  // A subscription outlives it: the backend may have the key at the next refresh, and the client is told so.
  const retryAfterMs = answer.retryAfterMs ?? (entry.namespace.refreshMs || entry.maxAgeMs)
  entry.problem = problemOf(answer, retryAfterMs, nowMs)
  return 'gone'
}

/**
 * @param {Entry} entry
 * @param {FailedAnswer} answer
 * @param {number} nowMs
 * @returns {Change}
 */
function takeFailure(entry, answer, nowMs) {
  endRefreshes(entry)
  // The value was fetched with a token that may no longer read it.
  if (entry.viewer !== undefined && tokenCodes.has(answer.code)) entry.value = undefined
  entry.problem = problemOf(answer, answer.retryAfterMs, nowMs)
  return answer.retryAfterMs === undefined ? 'refused' : 'failed'
}

/** Codes about a user's token. @type {Set<import('@keycast/protocol').ErrorCode>} */
const tokenCodes = new Set(['forbidden', 'token_expired'])

/** @param {FailedAnswer} answer @param {number | undefined} retryAfterMs @param {number} nowMs */
function problemOf({ code, message }, retryAfterMs, nowMs) {
  return createProblem(code, nowMs, { message, retryAfterMs: retryAfterMs && Math.ceil(retryAfterMs) })
}
