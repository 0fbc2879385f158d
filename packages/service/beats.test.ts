import { createAwakeClock } from './beats.ts'

const PERIOD_MS = 1_000

function setup() {
  let at = 500
  let fire = () => {}
  const clock = createAwakeClock({
    periodMs: PERIOD_MS,
    every: (_, tick) => {
      fire = tick
      return () => {
        fire = () => {}
      }
    },
    now: () => at,
  })
  return {
    clock,
    /** Time without a tick. */
    pass(ms: number) {
      at += ms
    },
    tickAfter(ms: number) {
      at += ms
      fire()
    },
  }
}

test('a clock runs with the time while its process does, and counts a standstill as one period', () => {
  const { clock, pass, tickAfter } = setup()
  clock.start(() => {})
  pass(400)
  expect(clock.now()).toBe(400)
  tickAfter(600)
  expect(clock.now()).toBe(1_000)
  tickAfter(30_000)
  expect(clock.now()).toBe(2_000)
  // Again and again: it goes on, by what its process ran.
  for (let stalls = 0; stalls < 5; stalls++) tickAfter(1_700)
  expect(clock.now()).toBe(7_000)
  // Merely busy.
  tickAfter(1_400)
  expect(clock.now()).toBe(8_400)
})

test('after a standstill what is read before the late tick has no later time than what is read after it', () => {
  const { clock, pass, tickAfter } = setup()
  clock.start(() => {})
  pass(60_000)
  const read = clock.now()
  tickAfter(0)
  expect([read, clock.now()]).toEqual([PERIOD_MS, PERIOD_MS])
})

test('it says how long ago a standstill was, and takes a busy moment for none', () => {
  const { clock, pass, tickAfter } = setup()
  clock.start(() => {})
  tickAfter(PERIOD_MS + 400)
  expect(clock.sinceStandstill()).toBe(Number.POSITIVE_INFINITY)
  tickAfter(PERIOD_MS + 600)
  pass(100)
  expect(clock.sinceStandstill()).toBe(100)
})

test('a clock that was stopped keeps its time until it is started again', () => {
  const { clock, pass, tickAfter } = setup()
  expect(clock.now()).toBe(0)
  clock.start(() => {})
  tickAfter(PERIOD_MS)
  pass(300)
  clock.stop()
  pass(60_000)
  expect(clock.now()).toBe(1_300)
  clock.start(() => {})
  pass(200)
  expect(clock.now()).toBe(1_500)
})
