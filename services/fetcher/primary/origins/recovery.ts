// How the failing keys of a namespace find out that it works again, sooner than by their own backoff and without a storm:
// one of them is tried each second. Once any key's fetch succeeds, the others follow, spread over a second.
import type { Entry } from '../keys/entry.ts'
import type { InTurns } from '../timing/in-turns.ts'
import { notBeforeAtOf, wakeAgainAtOf, wokenAtOf } from '../timing/schedule.ts'
import type { Timer } from '../timing/timer-wheel.ts'
import { PROBE_MS } from './breaker.ts'
import type { KeySource } from './origins.ts'

/** All keys of a recovered backend are tried within this time. */
const SPREAD_MS = 1_000

/**
 * Failing keys that one probe looks at: the next one goes on behind them. With all of 100,000 keys waiting out a
 * Retry-After, a look at each would take milliseconds, and find none to try.
 */
const LOOKED_AT_MAX = 10_000

interface Deps {
  wheel: { set: (atMs: number, run: () => void) => Timer; cancel: (timer: Timer | undefined) => void }
  inTurns: InTurns
  schedule: { wake: (entry: Entry, atMs: number) => void }
  /** Has the key fetched, unless that is under way. */
  want: (entry: Entry) => void
  now: () => number
  random: () => number
}

export function createRecovery({ wheel, inTurns, schedule, want, now, random }: Deps) {
  /**
   * Must be called when a key's fetch has ended, after everything else that follows from it.
   *
   * @param closed its breaker closed
   */
  function noteEnd(source: KeySource, succeeded: boolean, closed: boolean) {
    if (closed || (succeeded && now() - source.wokenAt >= SPREAD_MS)) wake(source, closed)
    probe(source)
  }

  /** @param all whether keys woken a moment ago are tried as well: with the breaker open none was tried by itself */
  function wake(source: KeySource, all: boolean) {
    if (source.failing.size === 0) return
    const since = now()
    source.wokenAt = since
    // Walks without a copy: the copy alone would take too long. Keys that fail again stand behind the others and come
    // up once more.
    const failing = source.failing.values()
    inTurns(() => {
      const { done, value: entry } = failing.next()
      if (done) return false
      if (wokenAtOf(entry) < since) wakeOne(entry, all)
      return true
    })
  }

  /** @param entry that fails */
  function wakeOne(entry: Entry, all: boolean) {
    const nowMs = now()
    const { timer, nextTryAt } = entry.timing
    if (entry.fetch || (!all && nowMs < wakeAgainAtOf(entry))) return
    const atMs = Math.max(nowMs + random() * SPREAD_MS, notBeforeAtOf(entry))
    if (timer && nextTryAt !== undefined && nextTryAt <= atMs) return
    schedule.wake(entry, atMs)
  }

  /** Tries one failing key if a probe is due, and does so again when the next one is. */
  function probe(source: KeySource) {
    wheel.cancel(source.probeTimer)
    source.probeTimer = undefined
    const { breaker, failing } = source
    if (failing.size === 0) {
      source.probes = undefined
      return
    }
    // Once a second, also where each of a thousand watches asks for a probe and no key could be tried.
    let dueAt = Math.max(breaker.probeAt(), source.probedAt + PROBE_MS)
    if (dueAt <= now()) {
      if (breaker.admits()) {
        source.probedAt = now()
        tryOne(source)
      }
      dueAt = now() + PROBE_MS
    }
    source.probeTimer = wheel.set(dueAt, () => probe(source))
  }

  /** Keys that fail again go to the end, so a walk over them meets each in turn. */
  function tryOne(source: KeySource) {
    const nowMs = now()
    for (let looked = 0; looked < Math.min(LOOKED_AT_MAX, source.failing.size); looked++) {
      source.probes ??= source.failing.values()
      const { done, value: entry } = source.probes.next()
      if (done) source.probes = undefined
      else if (!entry.fetch && notBeforeAtOf(entry) <= nowMs) return want(entry)
    }
  }

  return { noteEnd, probe }
}
