import { createLogClock } from './clock.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

function setup({ lastMs, waitMs = HOUR_MS }: { lastMs?: number; waitMs?: number } = {}) {
  const at = { wall: 1_700_000_000_000, elapsed: 0 }
  const said: string[] = []
  const report = {
    warn: (_: object, text: string) => said.push(`warn: ${text}`),
    info: (_: object, text: string) => said.push(`info: ${text}`),
  }
  const clock = createLogClock({ wallNow: () => at.wall, now: () => at.elapsed, lastMs, waitMs, report })
  const pass = (ms: number) => {
    at.wall += ms
    at.elapsed += ms
    return clock.read()
  }
  return { at, said, clock, pass }
}

test('a clock that runs on, or is corrected by some seconds, is followed', () => {
  const { at, said, clock, pass } = setup()
  expect(pass(DAY_MS)).toBe(at.wall)
  at.wall += 59_000
  expect(clock.read()).toBe(at.wall)
  expect(pass(1_000)).toBe(at.wall)
  expect(said).toEqual([])
})

test('a clock that goes back is followed at once', () => {
  const { at, said, clock, pass } = setup()
  at.wall -= DAY_MS
  expect(clock.read()).toBe(at.wall)
  expect(pass(1_000)).toBe(at.wall)
  expect(said).toEqual([])
})

test('a jump forward counts once the clock has stood so for the wait, and is said once', () => {
  const { at, said, clock, pass } = setup()
  at.wall += DAY_MS
  expect(clock.read()).toBe(at.wall - DAY_MS)
  expect(clock.aheadMs()).toBe(DAY_MS)
  expect(pass(HOUR_MS - 1)).toBe(at.wall - DAY_MS)
  expect(said).toEqual([expect.stringMatching(/^warn: the clock went forward/)])
  expect(pass(1)).toBe(at.wall)
  expect(clock.aheadMs()).toBe(0)
  expect(said.slice(1)).toEqual([expect.stringMatching(/^info: messages expire by the clock again/)])
})

test('a clock that was ahead for less than the wait has moved nothing, and each jump waits anew', () => {
  const { at, said, clock, pass } = setup()
  for (let jump = 0; jump < 3; jump++) {
    at.wall += DAY_MS
    pass(HOUR_MS - 1)
    at.wall -= DAY_MS
    expect(clock.read()).toBe(at.wall)
    expect(clock.aheadMs()).toBe(0)
  }
  expect(said.filter(text => text.startsWith('warn'))).toHaveLength(3)
})

test('a log that was not in use, or was used under another clock, waits from its last time on', () => {
  const { at, pass } = setup({ lastMs: 1_700_000_000_000 - DAY_MS })
  expect(pass(1_000)).toBe(at.wall - DAY_MS)
  expect(pass(HOUR_MS)).toBe(at.wall)
})

test('without a wait the clock is followed in silence', () => {
  const { at, said, clock } = setup({ waitMs: 0 })
  at.wall += DAY_MS
  expect(clock.read()).toBe(at.wall)
  expect(said).toEqual([])
})
