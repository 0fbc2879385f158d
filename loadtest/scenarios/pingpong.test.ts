import { dueOf } from './pingpong.ts'

test.each([
  [{}, undefined],
  [{ every: 6_000 }, { intervalMs: 6_000, pings: 1 }],
  [{ rate: 10 }, { intervalMs: 100, pings: 1 }],
  [{ rate: 1_000 }, { intervalMs: 1, pings: 1 }],
  [{ rate: 1_700 }, { intervalMs: 10, pings: 17 }],
  [{ rate: 2_000 }, { intervalMs: 1, pings: 2 }],
  [{ rate: 1_010 }, { intervalMs: 100, pings: 101 }],
])('pings of %j are due as %j', (options, due) => {
  expect(dueOf(options)).toEqual(due)
})
