// A clock that a test moves on, and a backend that says what the test has it say.
import type { World } from '../world.ts'
import type { Outcome } from './post.ts'

export function createTestWorld() {
  let at = 1_700_000_000_000
  const timers = new Set<{ dueAt: number; everyMs: number; run: () => void }>()
  const add = (ms: number, everyMs: number, run: () => void) => {
    const timer = { dueAt: at + ms, everyMs, run }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const settle = async () => {
    for (let turns = 0; turns < 20; turns++) await new Promise(resolve => setImmediate(resolve))
  }
  const world: World = {
    now: () => at,
    hostNow: () => at,
    wallNow: () => at,
    random: () => 1,
    randomBytes: size => Buffer.alloc(size, 1),
    every: (ms, tick) => add(ms, ms, tick),
    after: (ms, run) => add(ms, 0, run),
    turn: run => void setImmediate(run),
  }
  return {
    world,
    settle,
    /** Everything that is due comes about, in its order. */
    async pass(ms: number) {
      const until = at + ms
      await settle()
      for (;;) {
        const [due] = [...timers].filter(({ dueAt }) => dueAt <= until).sort((a, b) => a.dueAt - b.dueAt)
        if (!due) break
        at = due.dueAt
        if (due.everyMs > 0) due.dueAt += due.everyMs
        else timers.delete(due)
        due.run()
        await settle()
      }
      at = until
    },
    /** Nothing comes about meanwhile. */
    leap: (ms: number) => {
      for (const timer of timers) timer.dueAt += ms
      at += ms
    },
  }
}

export const taken: Outcome = { kind: 'taken' }
export const refused: Outcome = { kind: 'refused', why: 'http://backend answered 400' }
export const failed: Outcome = { kind: 'failed', why: 'http://backend answered 500' }
