import { everyPunctually } from './punctual.js'

test('a tick knows whether its process kept up', () => {
  let at = 0
  let fire = () => {}
  /** @type {boolean[]} */
  const ticks = []
  everyPunctually({
    periodMs: 1_000,
    every: (_, tick) => {
      fire = tick
      return () => {}
    },
    now: () => at,
    tick: late => ticks.push(late),
  })

  for (const passed of [1_000, 1_400, 1_600, 30_000, 1_000]) {
    at += passed
    fire()
  }

  expect(ticks).toEqual([false, false, true, true, false])
})
