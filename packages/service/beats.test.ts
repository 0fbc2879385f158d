import { everyMeasured } from './beats.ts'

test('a tick says how long its process stood still, and nothing of a busy moment', () => {
  let at = 0
  let fire = () => {}
  const ticks: number[] = []
  everyMeasured({
    periodMs: 1_000,
    every: (_, tick) => {
      fire = tick
      return () => {}
    },
    now: () => at,
    tick: standstillMs => ticks.push(standstillMs),
  })

  for (const passed of [1_000, 1_400, 1_600, 30_000, 1_000]) {
    at += passed
    fire()
  }

  expect(ticks).toEqual([0, 0, 600, 29_000, 0])
})
