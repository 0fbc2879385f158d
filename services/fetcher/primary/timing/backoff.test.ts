import { BACKOFF_MS_MAX, type Backoff, createBackoff } from './backoff.ts'

function steps(first: () => Backoff, count: number) {
  const durations = []
  for (let step = first(); durations.length < count; step = step.next()) durations.push(step.duration)
  return durations
}

test('each step is twice the last, up to five seconds', () => {
  const first = createBackoff({ initialMs: 250, random: () => 1 })
  expect(steps(first, 8)).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000])
})

test('half of each step is random', () => {
  const first = createBackoff({ initialMs: 250, random: () => 0 })
  expect(steps(first, 7)).toEqual([125, 250, 500, 1_000, 2_000, 2_500, 2_500])
  const drawn = [0.5, 0.25]
  expect(steps(createBackoff({ initialMs: 1_000, random: () => drawn.shift() ?? 0 }), 2)).toEqual([750, 1_250])
})

test('a step may be longer where that is said', () => {
  let step = createBackoff({ initialMs: 4_000, random: () => 1 })()
  for (let n = 0; n < 5; n++) step = step.next(60_000)
  expect([step.duration, step.next().duration]).toEqual([60_000, BACKOFF_MS_MAX])
})

test('however long it goes on, no step is longer than the longest', () => {
  const first = createBackoff({ initialMs: 250, random: () => 1 })
  expect(Math.max(...steps(first, 2_000))).toBe(BACKOFF_MS_MAX)
})
