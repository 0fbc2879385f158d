// Takes an answer that the backbone brings: the entry is changed, the requests that wait are given it, and the
// key's subscribers are due what changed.
import type { Answer, Backbone, Confirmations, FailedAnswer } from '@keycast/backbone'
import { applyAnswer } from './apply-answer.ts'
import type { Cache } from './cache.ts'
import { type Entry, isMissing, isWanted, type Result } from './entry.ts'
import type { OwnValues } from './own-values.ts'
import type { SingleFlight } from './single-flight.ts'
import type { Subscriptions } from './subscriptions.ts'
import type { Values } from './values.ts'

interface Deps {
  cache: Cache
  backbone: Pick<Backbone, 'get' | 'renewCredentials'>
  ownValues: Pick<OwnValues, 'noteRefused' | 'hasTokenLeft'>
  values: Pick<Values, 'fresh' | 'latest'>
  singleFlight: Pick<SingleFlight, 'resolve'>
  subscriptions: Pick<Subscriptions, 'changed'>
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createTakeAnswer({ cache, backbone, ownValues, values, singleFlight, subscriptions, now }: Deps) {
  /** @param isForGet whether it answers the key's get, and not only its watch */
  return function takeAnswer(answer: Answer, isForGet: boolean, confirmations?: Confirmations) {
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
      entry.failure = { problem: { code: 'capacity' }, atMs: now(), isLocal: false }
      change = 'refused'
    }
    subscriptions.changed(entry, change)
    cache.update(entry)
  }

  /** Whether the answer is about one of the user's tokens, so that the backend should be asked with another. */
  function hasOtherToken(entry: Entry, { code, tokenDigest }: FailedAnswer) {
    if (code === 'forbidden') return ownValues.noteRefused(entry, tokenDigest)
    return code === 'token_expired' && ownValues.hasTokenLeft(entry)
  }

  /** @param entry has a viewer with another token */
  function askAgain(entry: Entry) {
    entry.value = undefined
    if (entry.waiters.length > 0) backbone.get(entry.wireKey)
    if (entry.subscriptions.length > 0) backbone.renewCredentials(entry.wireKey)
    cache.update(entry)
  }

  function answerWaiters(entry: Entry, isForGet: boolean) {
    // A watch may be answered with an older state than a later request accepts. The get's own answer follows.
    const result = isForGet ? lastTry(entry) : values.fresh(entry.wireKey)
    if (result) singleFlight.resolve(entry, result)
  }

  function lastTry(entry: Entry): Result {
    return entry.failure ? { problem: entry.failure.problem } : values.latest(entry)
  }
}
