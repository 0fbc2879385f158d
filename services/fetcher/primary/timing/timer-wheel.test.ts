import { TURN_MS } from '@keycast/service'
import { createTimerWheel, TICK_MS } from './timer-wheel.ts'

function setup() {
  let at = 1_000_003
  let ticking = 0
  let turn = () => {}
  const wheel = createTimerWheel({
    now: () => at,
    every: (_, tick) => {
      ticking++
      turn = tick
      return () => ticking--
    },
  })
  return {
    wheel,
    now: () => at,
    ticking: () => ticking,
    pass(ms: number) {
      for (const end = at + ms; at < end; ) {
        at = Math.min(end, at + TICK_MS)
        turn()
      }
    },
    freeze(ms: number) {
      at += ms
      turn()
    },
    /** Something that runs takes its time. */
    spend(ms: number) {
      at += ms
    },
  }
}

test.each([0, 1, 9, 10, 11, 1_234, 10_239, 10_240, 10_241, 60_000, 86_400_000])(
  'a timer %d ms away fires once, never early and at most a tick late',
  ms => {
    const { wheel, pass, freeze, now } = setup()
    const due = now() + ms
    const fired: number[] = []
    wheel.set(due, () => fired.push(now()))

    if (ms > 100_000) freeze(ms - 50_000)
    pass(Math.max(0, due - now() - 1))
    expect(fired).toEqual([])
    pass(2 * TICK_MS)
    pass(25_000)

    expect(fired).toHaveLength(1)
    expect(fired[0]).toBeGreaterThanOrEqual(due)
    expect(fired[0]).toBeLessThanOrEqual(due + 2 * TICK_MS)
  },
)

test('a timer in the past fires at the next tick', () => {
  const { wheel, pass, now } = setup()
  let fired = 0
  wheel.set(now() - 5_000, () => fired++)
  pass(TICK_MS)
  expect(fired).toBe(1)
})

test('a cancelled timer does not fire, also when another one that fires with it cancels it', () => {
  const { wheel, pass, now, ticking } = setup()
  const fired: string[] = []
  const first = wheel.set(now() + 50, () => fired.push('first'))
  wheel.set(now() + 50, () => {
    fired.push('second')
    wheel.cancel(third)
  })
  const third = wheel.set(now() + 50, () => fired.push('third'))
  wheel.cancel(first)
  wheel.cancel(first)
  pass(100)
  expect(fired).toEqual(['second'])
  expect(ticking()).toBe(0)
})

test('a timer that is set while firing waits for a later tick', () => {
  const { wheel, pass, now } = setup()
  let fired = 0
  const again = () => {
    if (++fired < 3) wheel.set(now(), again)
  }
  wheel.set(now(), again)
  pass(TICK_MS)
  expect(fired).toBe(1)
  pass(2 * TICK_MS)
  expect(fired).toBe(3)
})

test('after a standstill longer than a turn of the wheel, what was due fires once and the rest keeps its time', () => {
  const { wheel, pass, freeze, now } = setup()
  const startedAt = now()
  const fired: Record<number, number[]> = {}
  const times = [20, 5_000, 10_300, 20_000, 60_000, 60_030, 65_000]
  for (const ms of times) {
    fired[ms] = []
    wheel.set(startedAt + ms, () => fired[ms].push(now() - startedAt))
  }
  freeze(60_000)
  for (const ms of [20, 5_000, 10_300, 20_000]) expect(fired[ms]).toEqual([60_000])
  pass(10_000)
  for (const ms of [60_030, 65_000]) {
    expect(fired[ms]).toHaveLength(1)
    expect(fired[ms][0] - ms).toBeLessThanOrEqual(2 * TICK_MS)
  }
})

test('the real timer runs only while something waits', () => {
  const { wheel, pass, freeze, now, ticking } = setup()
  expect(ticking()).toBe(0)
  wheel.set(now() + 100, () => {})
  wheel.set(now() + 200, () => {})
  expect(ticking()).toBe(1)
  pass(300)
  expect(ticking()).toBe(0)

  freeze(100_000)
  let firedAt = 0
  const due = now() + 100
  wheel.set(due, () => {
    firedAt = now()
  })
  pass(300)
  expect(firedAt).toBeGreaterThanOrEqual(due)
  expect(firedAt).toBeLessThanOrEqual(due + 2 * TICK_MS)
})

test('after a standstill what is due fires in short pieces, in order and each once', () => {
  const { wheel, now, freeze, pass, spend, ticking } = setup()
  const fired: number[] = []
  for (let i = 0; i < 30; i++) {
    wheel.set(now() + (i % 10) * 1_500, () => {
      fired.push(i % 10)
      spend(1)
    })
  }
  freeze(20_000)
  expect(fired).toHaveLength(TURN_MS)
  // A timer set between two pieces is not lost, nor does it fire before its time.
  let later = 0
  const laterAt = now() + 100
  wheel.set(laterAt, () => {
    later = now()
  })
  pass(TICK_MS)
  expect(fired).toHaveLength(2 * TURN_MS)
  pass(200)
  expect(fired).toHaveLength(30)
  expect(later).toBeGreaterThanOrEqual(laterAt)
  expect(ticking()).toBe(0)
})
