// Many deadlines, one real timer: a hashed timing wheel (Varghese and Lauck, 1987). Setting and cancelling cost the
// same however many timers there are.
import { type Every, TURN_MS } from '@keycast/service'

/** `of`: handed to `run`, so that a million timers need no million functions. */
export interface Timer {
  tick: number
  run: (of: unknown) => void
  of?: unknown
}

export type TimerWheel = ReturnType<typeof createTimerWheel>

/** A timer fires up to this long after its time. The shortest refresh is 50 ms. */
export const TICK_MS = 10

/** One turn of the wheel takes ten seconds: only timers that are further away are looked at before their time. */
const SLOTS = 1_024

interface Options {
  now: () => number
  every: Every
}

export function createTimerWheel({ now, every }: Options) {
  const slots: Set<Timer>[] = Array.from({ length: SLOTS }, () => new Set())
  let size = 0
  let reached = tickOf(now())
  let stopTicking: (() => void) | undefined

  function tickOf(atMs: number) {
    return Math.ceil(atMs / TICK_MS)
  }

  /** @param atMs never fires earlier; where that is past, at the next tick */
  function set<Of = undefined>(atMs: number, run: (of: Of) => void, of?: Of): Timer {
    if (!stopTicking) {
      // Nothing waited, so nothing has turned the wheel.
      reached = Math.floor(now() / TICK_MS)
      stopTicking = every(TICK_MS, turn)
    }
    const timer = { tick: Math.max(tickOf(atMs), reached + 1), run: run as Timer['run'], of }
    slots[timer.tick % SLOTS].add(timer)
    size++
    return timer
  }

  /** @param timer that may have fired or been cancelled */
  function cancel(timer: Timer | undefined) {
    if (timer && slots[timer.tick % SLOTS].delete(timer)) size--
  }

  /**
   * Fires all timers that are due, once, also after a standstill; the rest of a long list follows in the next turns.
   */
  function turn() {
    const endsAt = now() + TURN_MS
    const until = Math.floor(now() / TICK_MS)
    const from = Math.max(reached + 1, until - SLOTS + 1)
    // Set first: timers set while others fire go to a later tick.
    reached = until
    for (let tick = from; tick <= until; tick++) {
      if (fire(tick, until, endsAt)) continue
      reached = tick - 1
      break
    }
    if (size === 0) stop()
  }

  /** @param until the tick that is due last @returns whether all were */
  function fire(tick: number, until: number, endsAt: number): boolean {
    for (const timer of slots[tick % SLOTS]) {
      if (timer.tick > until) continue
      cancel(timer)
      timer.run(timer.of)
      if (now() >= endsAt) return false
    }
    return true
  }

  /** Everything up to then has fired. */
  function reachedMs() {
    return stopTicking ? reached * TICK_MS : now()
  }

  function stop() {
    stopTicking?.()
    stopTicking = undefined
  }

  return {
    set,
    cancel,
    reachedMs,
    /** Forgets every timer. */
    stop() {
      for (const slot of slots) slot.clear()
      size = 0
      stop()
    },
  }
}
