import { createAwakeClock } from './beats.ts'

const PERIOD_MS = 1_000

function setup() {
  let at = 500
  let wallAt = 1_700_000_000_000
  let fire = () => {}
  const standstills: number[] = []
  const clock = createAwakeClock({
    periodMs: PERIOD_MS,
    every: (_, tick) => {
      fire = tick
      return () => {
        fire = () => {}
      }
    },
    now: () => at,
    wallNow: () => wallAt,
    onStandstill: ms => standstills.push(ms),
  })
  return {
    clock,
    standstills,
    /** Time without a tick. */
    pass(ms: number) {
      at += ms
      wallAt += ms
    },
    /** The machine sleeps: its monotonic clock does not run. */
    sleep(ms: number) {
      wallAt += ms
    },
    tickAfter(ms: number) {
      at += ms
      wallAt += ms
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

test('a busy moment counts before its late tick as after it: what is to last 10 s from then on does', () => {
  const { clock, pass, tickAfter } = setup()
  clock.start(() => {})
  pass(1_400)
  const read = clock.now()
  tickAfter(0)
  expect([read, clock.now()]).toEqual([1_400, 1_400])
  // Nor does it go back where that turns out to be a standstill.
  pass(1_400)
  expect(clock.now()).toBe(2_800)
  pass(30_000)
  expect(clock.now()).toBe(2_800)
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

test('a standstill is found once, by the one who looks before its late tick, and its length is said', () => {
  const { clock, standstills, pass, tickAfter } = setup()
  clock.start(() => {})
  pass(PERIOD_MS + 500)
  expect(clock.look()).toBe(false)
  pass(60_000)
  expect(clock.look()).toBe(true)
  expect(clock.look()).toBe(false)
  tickAfter(0)
  expect(standstills).toEqual([61_500])
  expect(clock.now()).toBe(PERIOD_MS)
  tickAfter(2 * PERIOD_MS)
  expect(standstills).toEqual([61_500, 2 * PERIOD_MS])
})

test('a machine that slept is a standstill, too, though the monotonic clock stood as well', () => {
  const { clock, standstills, pass, sleep, tickAfter } = setup()
  clock.start(() => {})
  pass(300)
  sleep(60_000)
  tickAfter(100)
  expect(standstills).toEqual([60_400])
  expect([clock.now(), clock.sinceStandstill()]).toEqual([400, 0])
})
