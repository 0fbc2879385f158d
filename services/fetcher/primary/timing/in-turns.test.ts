import { TURN_MS } from '@keycast/service'
import { createInTurns } from './in-turns.ts'

/** @param options steps to do, and how long each takes */
function setup({ steps, ms }: { steps: number; ms: number }) {
  let at = 0
  let done = 0
  const ticks: (() => void)[] = []
  const wheel = {
    set(tick: number, run: () => void) {
      ticks.push(run)
      return { tick, run }
    },
  }
  createInTurns({ wheel, now: () => at })(() => {
    at += ms
    return ++done < steps
  })
  return { ticks, done: () => done }
}

test('short work is done at once', () => {
  const { ticks, done } = setup({ steps: 1_000, ms: 0.001 })
  expect([done(), ticks]).toEqual([1_000, []])
})

test('long work leaves room for others after each piece, and ends', () => {
  const { ticks, done } = setup({ steps: 3 * TURN_MS, ms: 1 })
  for (const [at, pieces] of [1, 2].entries()) {
    expect([done(), ticks.length]).toEqual([pieces * TURN_MS, pieces])
    ticks[at]()
  }
  expect([done(), ticks.length]).toEqual([3 * TURN_MS, 2])
})
