// How many fetches one backend may have in flight: as many as it answers without getting slower, up to a ceiling. Additive
// increase, multiplicative decrease, as TCP does it (Chiu and Jain, 1989). Why no library: docs/decisions, 15.

/**
 * What a fetch says about the backend's load: `answered`, with whatever; `overloaded`, it said so or gave no answer;
 * `void`, nothing: the fetch was lost on our side, or only the user whom it was for was turned away.
 *
 * @typedef {'answered' | 'overloaded' | 'void'} Sign
 * @typedef {{ sentAt: number, namespace: string, sign: Sign }} Ended
 * @typedef {ReturnType<typeof createFetchLimit>} FetchLimit
 *
 * Fetches that were sent one after the other, about as many as are in flight at one time. `limit`: when the round began.
 * `overloaded`, `results`: of those. `peak`: the most that were in flight. `latencies`: by namespace, whose fetches take about the same time.
 * @typedef {{ beganAt: number, limit: number, results: number, overloaded: number, peak: number, latencies: Map<string, Latencies> }} Round
 * @typedef {{ sumMs: number, count: number }} Latencies
 */

/** A backend that nothing is known of is asked this much at once: each request opens a connection. */
export const LIMIT_INITIAL = 256

/** Never fewer: a backend that cannot take so many is for its circuit breaker. */
export const LIMIT_MIN = 16

/** By how much the limit grows in a round, once the backend said that it was overloaded. Before that it doubles. */
const GROWTH = 16

/** A backend is slower where it takes this many times as long as in its quickest round, and so much longer. */
const SLOWER_RATIO = 2
const SLOWER_MS = 25

/** A crowd of new keys makes one round slow, and is over then. */
const SLOW_ROUNDS = 2

const CUT_WHEN_SLOWER = 0.8
const CUT_WHEN_OVERLOADED = 0.5

/** Share of a round's fetches that must fail. A single connection that is reset says nothing. */
const OVERLOADED_SHARE = 0.1

/**
 * After this long the quickest round is measured anew, at half the limit: a backend that was given another disk, or whose
 * load of others passed, has another quickest. Measured at the full limit, a queue at the backend would pass for its speed.
 */
const QUICKEST_MS = 30_000

/** Fewer results say too little. */
const ROUND_RESULTS_MIN = 16

/** @param {{ max: number, now: () => number }} options `max`: at least 1. `now`: monotonic, in milliseconds */
export function createFetchLimit({ max, now }) {
  const min = Math.min(LIMIT_MIN, max)
  let limit = Math.min(LIMIT_INITIAL, max)
  let wasOverloaded = false
  /** By how much the limit grows in a round. */
  let growth = Number.POSITIVE_INFINITY
  let slowRounds = 0
  /** Mean latency of the quickest round, by namespace. @type {Map<string, number>} */
  let quickestMs = new Map()
  let quickestSince = now()
  let isMeasuring = false
  let round = newRound()

  /** @returns {number} fetches that may be in flight now */
  function inForce() {
    return isMeasuring ? Math.max(min, Math.floor(limit / 2)) : Math.floor(limit)
  }

  /** @returns {Round} */
  function newRound() {
    return { beganAt: now(), limit: inForce(), results: 0, overloaded: 0, peak: 0, latencies: new Map() }
  }

  /** @param {number} inFlight fetches, this one included */
  function started(inFlight) {
    round.peak = Math.max(round.peak, inFlight)
  }

  /** @param {Ended} fetch */
  function ended({ sentAt, namespace, sign }) {
    if (sign === 'void') return
    if (sign === 'answered' && isLimited() && slowRounds === 0)
      limit = Math.min(max, limit + Math.min(1, growth / limit))
    // Sent under the limit of the round before: it says nothing of this one.
    if (sentAt < round.beganAt) return
    round.results++
    if (sign === 'overloaded') round.overloaded++
    else noteLatency(namespace, now() - sentAt)
    if (round.results >= Math.max(ROUND_RESULTS_MIN, Math.min(round.peak, round.limit))) endRound()
  }

  /** Whether the round used up what it was allowed. */
  const isLimited = () => round.peak >= round.limit

  /** @param {string} namespace @param {number} ms */
  function noteLatency(namespace, ms) {
    const latencies = round.latencies.get(namespace)
    if (latencies) {
      latencies.sumMs += ms
      latencies.count++
    } else round.latencies.set(namespace, { sumMs: ms, count: 1 })
  }

  function endRound() {
    if (round.overloaded >= round.results * OVERLOADED_SHARE) {
      wasOverloaded = true
      cut(CUT_WHEN_OVERLOADED)
    } else if (isSlower()) {
      slowRounds++
      // Far below the limit it is not our fetches that make the backend slow.
      if (slowRounds >= SLOW_ROUNDS && round.peak > limit / 2) cut(CUT_WHEN_SLOWER)
    } else {
      slowRounds = 0
      // Slowness may have been our own, as that of a process just started: what goes well is soon tried further.
      if (isLimited() && !wasOverloaded) growth *= 2
    }
    learnQuickest()
    round = newRound()
  }

  /** @param {number} share of what was in flight that stays */
  function cut(share) {
    limit = Math.max(min, Math.min(limit, round.peak) * share)
    growth = GROWTH
    slowRounds = 0
  }

  /** Whether most fetches were of namespaces that took much longer than in their quickest round. */
  function isSlower() {
    let slower = 0
    for (const [namespace, { sumMs, count }] of round.latencies) {
      const quickest = quickestMs.get(namespace) ?? Number.POSITIVE_INFINITY
      if (sumMs / count > quickest * SLOWER_RATIO + SLOWER_MS) slower += count
    }
    return slower > round.results / 2
  }

  function learnQuickest() {
    if (isMeasuring) {
      isMeasuring = false
      quickestMs = new Map()
    } else if (now() - quickestSince >= QUICKEST_MS) {
      isMeasuring = true
      quickestSince = now()
    }
    for (const [namespace, { sumMs, count }] of round.latencies) {
      quickestMs.set(namespace, Math.min(sumMs / count, quickestMs.get(namespace) ?? Number.POSITIVE_INFINITY))
    }
  }

  return { inForce, started, ended }
}
