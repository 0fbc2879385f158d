// Answers that the backbone brings: the key's entry is changed, the requests that wait are given the answer, and the key's
// subscribers are due what changed.
import type { Answer, Backbone, Confirmations, FailedAnswer, KeptAnswer, Next } from '@keycast/backbone'
import type { ErrorCode, Problem } from '@keycast/protocol'
import { accountsOf, type Payer } from '@keycast/service'
import { type Cache, type Entry, forget, isMissing, isWanted, type Result } from './cache.ts'
import type { Failure } from './failure.ts'
import type { Paying } from './payer-choice.ts'
import { askedAtOf, endRefreshes } from './staleness.ts'
import type { ValueSubscription } from './subscriptions.ts'
import { createValue, type Value, withOrder } from './value.ts'
import type { Values } from './values.ts'

/**
 * `value`: another version, or one where there was none; `confirmed`: the entry's version is the latest; `kept`:
 * another node goes on from what is known of it; `failed`: the try gave nothing and the entry keeps its value; `gone`:
 * the backend has nothing under the key; `refused`: it failed and will not be tried again.
 */
export type Change = 'value' | 'confirmed' | 'kept' | 'failed' | 'gone' | 'refused'

interface Deps {
  cache: Cache
  backbone: Pick<Backbone, 'get' | 'renewWatch'>
  ownValues: { noteRefused(entry: Entry, digest?: string): boolean; hasTokenLeft(entry: Entry): boolean }
  ownValueTokens: { doubt(entry: Entry): void }
  values: Pick<Values, 'latest'>
  singleFlight: {
    resolve(entry: Entry, result: Result, isMeant?: (asker: Paying) => boolean): void
  }
  subscriptions: {
    changed(entry: Entry, change: Change, isLatest: boolean): void
    refuse(entry: Entry, problem: Problem, subscriptions: ValueSubscription[]): void
    passOn(entry: Entry): void
  }
  now: () => number
}

export function createAnswers({
  cache,
  backbone,
  ownValues,
  ownValueTokens,
  values,
  singleFlight,
  subscriptions,
  now,
}: Deps) {
  /** @param isForGet whether it answers the key's get, and not only its watch */
  return function takeAnswer(answer: Answer, isForGet: boolean, confirmations?: Confirmations) {
    const entry = cache.get(answer.key)
    // The key is no longer wanted, and none of its data is kept.
    if (!entry) return
    if (answer.type === 'failed' && hasOtherToken(entry, answer)) {
      forget(entry)
      return askAgain(entry)
    }
    if (answer.type === 'failed' && answer.payer !== undefined)
      return refuseShare(entry, answer, ({ payer }) => payer === answer.payer)
    if (answer.type === 'failed' && answer.code === 'token_expired') ownValueTokens.doubt(entry)
    const isFirst = !entry.value
    let change = applyAnswer(entry, answer, now(), confirmations)
    if (!change) {
      // The answer confirms bytes that were dropped since the request. A second request, without a version, brings the
      // bytes.
      if (isWanted(entry)) backbone.get(entry.wireKey)
      return
    }
    // Its node had not heard yet that nobody watches it any more.
    if (entry.subscriptions.length === 0) endRefreshes(entry)
    entry.isWatchAnswered = entry.isWatchAnswered || entry.subscriptions.length > 0
    // Of a watch it may be older than a later request accepts, by as long as it waited to be read. The get's own follows.
    if (isForGet && entry.waiters.length > 0)
      answerWaiters(entry, answer.type === 'failed' ? answer.onlyFor : undefined)
    // The waiting requests are answered. A newer version of a stored value is always taken: an update must not end a
    // subscription.
    const takesRoom = change === 'value' ? isFirst : change === 'gone' && isMissing(entry)
    const misfit = takesRoom && isWanted(entry) ? cache.misfit(entry) : undefined
    if (misfit) {
      const { account, ...problem } = misfit
      forget(entry)
      entry.wasFound = false
      entry.failure = undefined
      if (account !== undefined)
        return refuseShare(entry, problem, ({ payer }) => payer !== undefined && accountsOf(payer).includes(account))
      entry.failure = { problem, atMs: now(), isLocal: false }
      change = 'refused'
    }
    subscriptions.changed(entry, change, isForGet)
    cache.update(entry)
  }

  /**
   * The payer has had their share: the key is asked for again in the name of another who wants it.
   *
   * @param isMeant whether it is the payer, or another of whom the same is known
   */
  function refuseShare(entry: Entry, { code, message, retryAfterMs }: Problem, isMeant: (asker: Paying) => boolean) {
    const problem = { code, message, retryAfterMs }
    singleFlight.resolve(entry, { problem }, isMeant)
    const meant = entry.subscriptions.filter(({ session }) => isMeant(session))
    subscriptions.refuse(entry, problem, meant)
    // Else it was about one who paid before.
    if (!entry.paying || isMeant(entry.paying)) subscriptions.passOn(entry)
    askAgain(entry)
  }

  /** Whether the answer is about one of the user's tokens, so that the backend should be asked with another. */
  function hasOtherToken(entry: Entry, { code, tokenDigest }: FailedAnswer) {
    if (code === 'forbidden') return ownValues.noteRefused(entry, tokenDigest)
    return code === 'token_expired' && ownValues.hasTokenLeft(entry)
  }

  /** The node is told by which token, or in whose name, it is to ask from now on. */
  function askAgain(entry: Entry) {
    if (entry.waiters.length > 0) backbone.get(entry.wireKey)
    if (entry.subscriptions.length > 0) backbone.renewWatch(entry.wireKey)
    cache.update(entry)
  }

  /** @param onlyFor the payer for whose get a `not_found` is old: those who came meanwhile must not be fooled by it */
  function answerWaiters(entry: Entry, onlyFor: Payer | undefined) {
    const isMeant = ({ payer }: Paying) => payer === onlyFor
    const isForOne = onlyFor !== undefined && entry.waiters.some(isMeant)
    singleFlight.resolve(entry, lastTry(entry), isForOne ? isMeant : undefined)
    if (entry.waiters.length > 0) backbone.get(entry.wireKey)
  }

  function lastTry(entry: Entry): Result {
    return entry.failure ? { problem: entry.failure.problem } : values.latest(entry)
  }
}

/**
 * Applies an answer to the entry of its key.
 *
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
      if (entry.value?.version === answer.version) return renumber(entry, entry.value, answer)
      entry.value = createValue(answer, entry.key)
      entry.wasFound = true
      return 'value'
    case 'current':
      if (entry.value?.version !== answer.version) return undefined
      confirm(entry, answer, askedAtMs)
      awaitRefreshes(entry, answer.next, nowMs, confirmations)
      return renumber(entry, entry.value, answer)
    case 'failed':
      return answer.code === 'not_found' ? takeNotFound(entry, answer, nowMs) : takeFailure(entry, answer, nowMs)
  }
}

/** Another node may number the same version higher; a node that does not know the number yet may number it lower. */
function renumber(entry: Entry, value: Value, { order, rank }: { order?: number; rank?: number }): Change {
  if (rank !== undefined && rank > (value.rank ?? -1)) value.rank = rank
  if (order !== undefined && order > (value.order ?? 0)) entry.value = withOrder(value, order)
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
  if (entry.viewer !== undefined && tokenCodes.has(answer.code)) forget(entry)
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
