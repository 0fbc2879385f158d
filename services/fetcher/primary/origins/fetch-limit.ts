// The number of fetches that one namespace may have in flight: as many as its backend answers without getting slower, up
// to a ceiling. Additive increase, multiplicative decrease, as in TCP (Chiu and Jain, 1989). Why no library: docs/decisions,
// 15.
import type { Result } from '../../worker-messages.ts'

/**
 * A fetch's news about the backend's load: `answered`, with any status; `overloaded`, it said so or gave no answer;
 * `void`, nothing: the fetch was lost on our side, or the backend only refused its user.
 */
export type Sign = 'answered' | 'overloaded' | 'void'

/** A backend's answers to a token, which it gives without doing any work. */
const turnsAway = new Set<number | undefined>([401, 403, 429])

/** Whether a backend refused a user whose own value was asked for, and perhaps no other. */
export const turnsUserAway = (result: Result, { isPerUser }: { isPerUser?: boolean }) =>
  isPerUser === true && result.kind === 'failed' && turnsAway.has(result.status)

export function signOf(result: Result, namespace: { isPerUser?: boolean }): Sign {
  if (result.kind !== 'failed') return 'answered'
  // A refusal of one user must not slow down all: it is no sign of overload, nor is its latency that of other fetches.
  if (turnsUserAway(result, namespace)) return 'void'
  switch (result.code) {
    case 'fetcher_timeout':
      return 'void'
    case 'backend_throttled':
    case 'backend_timeout':
    case 'backend_unreachable':
      return 'overloaded'
    default:
      return result.status === 503 ? 'overloaded' : 'answered'
  }
}

interface Ended {
  sentAt: number
  sign: Sign
}

export interface Limit {
  /** Requests that may be in flight now. */
  inForce: () => number
  /** `inFlight`: with this one. */
  started: (inFlight: number) => void
  ended: (request: Ended) => void
}

/**
 * Fetches that were sent one after the other, about as many as are in flight at one time. `limit`: when the round
 * began. `overloaded`, `results`: of those. `peak`: the most that were in flight. `tookMs`: those that were answered, in
 * all.
 */
interface Round {
  beganAt: number
  limit: number
  results: number
  overloaded: number
  peak: number
  tookMs: number
}

/** An unknown backend is asked this much at once, by all its namespaces together: each request opens a connection. */
export const LIMIT_INITIAL = 256

/** The limits never fall below this, together: a backend that cannot take so many is for its circuit breakers. */
export const LIMIT_MIN = 16

/**
 * The growth of the limit per round after a cut; before the first it doubles. A small limit grows by less: a backend that
 * refuses what it has no room for would be driven far beyond its room every few rounds.
 */
const GROWTH = 16
const GROWTH_SHARE_MAX = 1 / 8

/**
 * From this share of a limit that was too high on, it grows evenly, and after overload hardly: faster growth would
 * overshoot it each time.
 */
const NEAR_SLOWER = 0.9
const NEAR_OVERLOADED = 0.8
const NEAR_GROWTH_SHARE_MAX = 1 / 64

/** A backend counts as slower if a round takes this many times as long as its quickest round, and so much longer. */
const SLOWER_RATIO = 2
const SLOWER_MS = 25

/** A crowd of new keys makes only one round slow. */
const SLOW_ROUNDS = 2

const CUT_WHEN_SLOWER = 0.8
const CUT_WHEN_OVERLOADED = 0.5

/** A round counts as overloaded from this share of failed fetches on, six at least: two of sixteen may be mere chance. */
const OVERLOADED_SHARE = 0.1
const OVERLOADED_MIN = 6

/**
 * The quickest round is measured anew after this time: a backend with a new disk or less other load has another. At the
 * full limit a queue at the backend would pass for its speed, so it is measured at a share of it. This share times
 * `SLOWER_RATIO` must be well below 1, or the limit of a backend with a queue would creep up with each measurement.
 */
const QUICKEST_MS = 30_000
const QUICKEST_SHARE = 0.25

/** The first time, which corrects what a crowd of new keys made of the first round. */
const QUICKEST_FIRST_MS = 2_000

/** With fewer results a round says too little. */
const ROUND_RESULTS_MIN = 16

interface Options {
  /** At least 1. */
  max: number
  /** How many namespaces the backend has. */
  sources?: number
  now: () => number
}

export function createFetchLimit({ max, sources = 1, now }: Options): Limit {
  const min = Math.min(Math.ceil(LIMIT_MIN / sources), max)
  let limit = Math.min(Math.ceil(LIMIT_INITIAL / sources), max)
  /** The growth of the limit per round. */
  let growth = Number.POSITIVE_INFINITY
  /** The limit at the first of the last cuts, until it was exceeded without one; and from where on it grows evenly. */
  let tooHigh = Number.POSITIVE_INFINITY
  let near = Number.POSITIVE_INFINITY
  let wasCut = false // by the last round
  let wasOverloaded = false
  let slowRounds = 0
  /** The mean latency of the quickest round. */
  let quickestMs = Number.POSITIVE_INFINITY
  let measureAt = now() + QUICKEST_FIRST_MS
  let isMeasuring = false
  let round = newRound()

  function inForce() {
    return isMeasuring ? Math.max(min, Math.floor(limit * QUICKEST_SHARE)) : Math.floor(limit)
  }

  function newRound(): Round {
    return { beganAt: now(), limit: inForce(), results: 0, overloaded: 0, peak: 0, tookMs: 0 }
  }

  /** @param inFlight fetches, this one included */
  function started(inFlight: number) {
    round.peak = Math.max(round.peak, inFlight)
  }

  function ended({ sentAt, sign }: Ended) {
    if (sign === 'void') return
    if (sign === 'answered' && isLimited() && slowRounds === 0) grow()
    // Sent under the limit of an earlier round: it says nothing of this one.
    if (sentAt < round.beganAt) return
    round.results++
    if (sign === 'overloaded') round.overloaded++
    else round.tookMs += now() - sentAt
    if (round.results >= Math.max(ROUND_RESULTS_MIN, Math.min(round.peak, round.limit))) endRound()
  }

  /** By one fetch's share of a round's growth. */
  function grow() {
    const isNear = limit >= near
    const shareMax = !wasOverloaded ? 1 : isNear ? NEAR_GROWTH_SHARE_MAX : GROWTH_SHARE_MAX
    limit = Math.min(max, limit + Math.min(shareMax, (isNear ? GROWTH : growth) / limit))
    if (limit > tooHigh) tooHigh = near = Number.POSITIVE_INFINITY
  }

  /** Whether the round used up its limit. */
  const isLimited = () => round.peak >= round.limit

  function endRound() {
    if (round.overloaded >= Math.max(OVERLOADED_MIN, round.results * OVERLOADED_SHARE)) {
      wasOverloaded = true
      cut(CUT_WHEN_OVERLOADED, NEAR_OVERLOADED)
    } else if (meanMs() > quickestMs * SLOWER_RATIO + SLOWER_MS) {
      slowRounds++
      // Far below the limit our fetches are not the cause of the slowness.
      if (slowRounds >= SLOW_ROUNDS && round.peak > limit / 2) cut(CUT_WHEN_SLOWER, NEAR_SLOWER)
    } else {
      slowRounds = 0
      wasCut = false
      // The slowness may have been our own, as in a process that just started: the limit soon grows faster again.
      if (isLimited() && !wasOverloaded) growth *= 2
    }
    learnQuickest()
    round = newRound()
  }

  /** @param share of the fetches in flight that stays */
  function cut(share: number, nearShare: number) {
    const before = Math.min(limit, round.peak)
    // One cut after the other is the same trouble, as with a backend that is down for a second. And where the limit was
    // not used up, others may have caused it.
    if (!wasCut) tooHigh = isLimited() ? before : Number.POSITIVE_INFINITY
    near = tooHigh * nearShare
    wasCut = true
    limit = Math.max(min, before * share)
    growth = GROWTH
    slowRounds = 0
  }

  /** NaN where none was answered: it says nothing. */
  const meanMs = () => round.tookMs / (round.results - round.overloaded)

  function learnQuickest() {
    if (isMeasuring) quickestMs = Number.POSITIVE_INFINITY
    isMeasuring = !isMeasuring && now() >= measureAt
    // At the same time as the backend's other namespaces: one that went on at its full limit would be measured, too.
    if (isMeasuring) measureAt = (Math.floor(now() / QUICKEST_MS) + 1) * QUICKEST_MS
    if (meanMs() < quickestMs) quickestMs = meanMs()
  }

  return { inForce, started, ended }
}
