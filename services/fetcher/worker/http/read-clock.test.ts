import { createReadClock } from './read-clock.ts'

function setup() {
  let at = 1_000
  let tick: (() => void) | undefined
  const turns: (() => void)[] = []
  const clock = createReadClock({
    hostNow: () => at,
    every(_, run) {
      tick = run
      return () => {
        tick = undefined
      }
    },
    turn: run => void turns.push(run),
  })
  return {
    ...clock,
    isTicking: () => tick !== undefined,
    pass: (ms: number) => {
      at += ms
    },
    timers: () => tick?.(),
    /** Between timers and turns sockets are read. */
    turns() {
      for (const run of turns.splice(0)) run()
    },
  }
}

test('what came before a tick was read by the turn after it', () => {
  const { use, pass, timers, turns, readAt } = setup()
  use()
  pass(20)
  timers()
  turns()
  expect(readAt()).toBe(1_020)
})

test('of what came while the process stood still nobody knows when: it had not come before', () => {
  const { use, pass, timers, turns, readAt } = setup()
  use()
  timers()
  turns()
  pass(4_000)
  timers()
  expect(readAt()).toBe(1_000)
  pass(4_000)
  expect(readAt()).toBe(1_000)
  turns()
  expect(readAt()).toBe(5_000)
})

test('it goes while somebody uses it', () => {
  const { use, release, isTicking } = setup()
  expect(isTicking()).toBe(false)
  use()
  use()
  release()
  expect(isTicking()).toBe(true)
  release()
  expect(isTicking()).toBe(false)
  use()
  expect(isTicking()).toBe(true)
})
