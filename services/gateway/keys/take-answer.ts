// Takes an answer that the backbone brings: the entry is changed, the requests that wait are given it, and the
// key's subscribers are due what changed.
import { applyAnswer } from './apply-answer.ts'
import { isMissing, isWanted } from './entry.ts'
import { createProblem } from './problem.ts'

/**
 * @param {object} deps
 * @param {import('./cache.ts').Cache} deps.cache
 * @param {Pick<import('@keycast/backbone').Backbone, 'get' | 'renewCredentials'>} deps.backbone
 * @param {Pick<import('./own-values.ts').OwnValues, 'noteRefused' | 'hasTokenLeft'>} deps.ownValues
 * @param {Pick<import('./values.ts').Values, 'fresh' | 'latest'>} deps.values
 * @param {Pick<import('./single-flight.ts').SingleFlight, 'resolve'>} deps.singleFlight
 * @param {Pick<import('./subscriptions.ts').Subscriptions, 'changed'>} deps.subscriptions
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createTakeAnswer({ cache, backbone, ownValues, values, singleFlight, subscriptions, now }) {
  /**
   * @param {import('@keycast/backbone').Answer} answer
   * @param {boolean} isForGet whether it answers the key's get, and not only its watch
   * @param {import('@keycast/backbone').Confirmations} [confirmations]
   */
  return function takeAnswer(answer, isForGet, confirmations) {
    const entry = cache.get(answer.key)
    // The key is no longer wanted, and none of its data is kept.
    if (!entry) return
    if (answer.type === 'failed' && hasOtherToken(entry, answer)) return askAgain(entry)
    const isFirst = !entry.value
    let change = applyAnswer(entry, answer, now(), confirmations)
    if (!change) {
      // The answer confirms bytes that were dropped since the request. A second request, without a version, brings the
      // bytes.
      if (isWanted(entry)) backbone.get(entry.wireKey)
      return
    }
    entry.isWatchAnswered = entry.isWatchAnswered || entry.subscriptions.length > 0
    if (entry.waiters.length > 0) answerWaiters(entry, isForGet)
    // The waiting requests are answered. A newer version of a stored value is always taken: an update must not end a
    // subscription.
    const hasNoRoom =
      (isFirst && change === 'value' && isWanted(entry) && !cache.fits(entry)) ||
      (change === 'gone' && isMissing(entry) && isWanted(entry) && !cache.fitsMissing(entry))
    if (hasNoRoom) {
      entry.value = undefined
      entry.wasFound = false
      entry.problem = createProblem('capacity', now())
      change = 'refused'
    }
    subscriptions.changed(entry, change)
    cache.update(entry)
  }

  /**
   * Whether the answer is about one of the user's tokens, so that the backend should be asked with another.
   *
   * @param {import('./entry.ts').Entry} entry
   * @param {import('@keycast/backbone').FailedAnswer} answer
   */
  function hasOtherToken(entry, { code, tokenDigest }) {
    if (code === 'forbidden') return ownValues.noteRefused(entry, tokenDigest)
    return code === 'token_expired' && ownValues.hasTokenLeft(entry)
  }

  /** @param {import('./entry.ts').Entry} entry has a viewer with another token */
  function askAgain(entry) {
    entry.value = undefined
    if (entry.waiters.length > 0) backbone.get(entry.wireKey)
    if (entry.subscriptions.length > 0) backbone.renewCredentials(entry.wireKey)
    cache.update(entry)
  }

  /** @param {import('./entry.ts').Entry} entry @param {boolean} isForGet */
  function answerWaiters(entry, isForGet) {
    // A watch may be answered with an older state than a later request accepts. The get's own answer follows.
    const result = isForGet ? lastTry(entry) : values.fresh(entry.wireKey)
    if (result) singleFlight.resolve(entry, result)
  }

  /** @param {import('./entry.ts').Entry} entry @returns {import('./entry.ts').Result} */
  function lastTry(entry) {
    return entry.problem ? { problem: entry.problem } : values.latest(entry)
  }
}
