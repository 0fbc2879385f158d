// What a link is sent of a key: decided at the moment it goes out, from what the key's state is then and what the link
// was sent before. Nothing is queued per link, so nobody is ever sent a state that has passed.
import { isFresh, isNoOlder } from '../keys/entry.js'

/**
 * @typedef {import('@keycast/backbone').Answer} Answer
 * @typedef {import('../keys/entry.js').Entry} Entry
 * @typedef {import('../keys/entry.js').Waiter} Waiter
 * @typedef {import('../keys/entry.js').Watcher} Watcher
 */

/**
 * The key's latest state for a link, which counts as sent then.
 *
 * @param {Entry} entry
 * @param {string} link
 * @param {number} now
 * @returns {{ answer: Answer | undefined, more: boolean }} `more`: there is more to say, ask again
 */
export function takeAnswer(entry, link, now) {
  const watcher = entry.watchers.get(link)
  const waiter = entry.waiters.get(link)
  // The gateway takes any answer for the one its fetch waits for: none may go out before that one can.
  if (waiter && !waiter.ready) return { answer: undefined, more: false }
  entry.waiters.delete(link)

  const answer = waiter ? answerWaiter(entry, waiter, now) : watcher && answerWatcher(entry, watcher, now)
  if (watcher && answer) note(entry, watcher, answer)
  return { answer, more: watcher !== undefined && answer !== undefined && lacksProblem(entry, watcher) }
}

/** @param {Entry} entry @param {Waiter} waiter @param {number} now */
function answerWaiter(entry, waiter, now) {
  if (entry.problem && !(entry.value && isFresh(entry, now))) return failed(entry, now)
  return state(entry, waiter.version, now)
}

/** @param {Entry} entry @param {Watcher} watcher @param {number} now */
function answerWatcher(entry, watcher, now) {
  // Where what it holds was asked for later, a fetch under way will tell.
  const isCurrent = entry.value?.version === watcher.version
  if (entry.value && !isCurrent && isNoOlder(entry, watcher)) return state(entry, watcher.version, now)
  if (lacksProblem(entry, watcher)) return failed(entry, now)
  const isNews = watcher.owed || watcher.problem !== undefined || watcher.askedAt < entry.askedAt
  return isCurrent && !entry.problem && isNews ? state(entry, watcher.version, now) : undefined
}

/** @param {Entry} entry @param {Watcher} watcher */
function lacksProblem(entry, watcher) {
  if (!entry.problem || watcher.problem === entry.problem) return false
  return entry.problem.code !== 'not_found' || isNoOlder(entry, watcher)
}

/**
 * @param {Entry} entry
 * @param {Watcher} watcher
 * @param {Answer} answer
 */
function note(entry, watcher, answer) {
  watcher.owed = false
  watcher.problem = answer.type === 'failed' ? entry.problem : undefined
  if (answer.type !== 'failed') {
    watcher.version = answer.version
    watcher.askedAt = Math.max(watcher.askedAt, entry.askedAt)
  } else if (answer.code === 'not_found') {
    // A gateway lets go of its value then.
    watcher.version = undefined
    watcher.askedAt = entry.askedAt
  }
}

/**
 * @param {Entry} entry
 * @param {string | undefined} version the gateway holds
 * @param {number} now
 * @returns {Answer | undefined}
 */
function state({ key, value, askedAt, maxAgeMs }, version, now) {
  if (!value) return undefined
  const { store } = value
  const ageMs = now - askedAt
  if (value.version === version) return { type: 'current', key, version, ageMs, maxAgeMs, store }
  const { contentType, format, body } = value
  const delta = value.delta?.from === version ? value.delta : undefined
  return { type: 'value', key, version: value.version, ageMs, maxAgeMs, store, contentType, format, body, delta }
}

/** @param {Entry} entry @param {number} now @returns {Answer | undefined} */
function failed({ key, problem, maxAgeMs, nextTryAt }, now) {
  if (!problem) return undefined
  const { code, message, askedAt } = problem
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
