import { secondOf } from '../test-support.ts'
import { fasterAndFaster, watchLimits } from './capacity.ts'

const slow = { count: 100, meanMs: 900, p50Ms: 800, p90Ms: 1_000, p99Ms: 1_200, p999Ms: 1_300, maxMs: 1_400 }

test('clients are held as long as all is well', () => {
  const watch = watchLimits()
  for (const open of [10, 20, 30]) watch.look(secondOf({ open }))

  expect(watch.limit()).toBeUndefined()
  expect(watch.held()).toBe(30)
})

test.each([
  ['the 99th percentile passed 1000 ms', { latency: slow }],
  ['fewer than 95 % of the requests were answered', { counts: { requested: 100, answered: 90 } }],
])('three seconds in a row in which %s are the limit', (why, state) => {
  const watch = watchLimits()
  watch.look(secondOf({ open: 100 }))
  watch.look(secondOf({ open: 110, ...state }))
  watch.look(secondOf({ open: 120, ...state }))
  expect(watch.limit()).toBeUndefined()

  watch.look(secondOf({ open: 130, at: 4, ...state }))

  expect(watch.limit()).toEqual({ why, at: 4 })
  // Those that came while the system was failing are not held.
  expect(watch.held()).toBe(100)
})

test('a pause that ends is none', () => {
  const watch = watchLimits()
  for (let round = 0; round < 5; round++) {
    watch.look(secondOf({ latency: slow }))
    watch.look(secondOf({ latency: slow }))
    watch.look(secondOf({ open: 100 + round }))
  }

  expect(watch.limit()).toBeUndefined()
  expect(watch.held()).toBe(104)
})

test('a connection that drops is the limit at once, as in the experiment this project began with', () => {
  const watch = watchLimits()
  watch.look(secondOf({ open: 304 }))
  watch.look(secondOf({ open: 303, counts: { requested: 304, answered: 303, dropped: 1 } }))

  expect(watch.limit()?.why).toContain('1 connections dropped')
  expect(watch.held()).toBe(304)
})

test('what happens when everybody is sent home is no limit', () => {
  const watch = watchLimits()
  watch.look(secondOf({ phase: 'end', counts: { requested: 100, answered: 0, dropped: 9 } }))

  expect(watch.limit()).toBeUndefined()
})

test('clients come ever faster, up to a hundred a second', () => {
  expect([...fasterAndFaster(2_000)]).toEqual([1_000, 500, 250, 125, 62.5, 31.25, 15.625, 10])
  expect([...fasterAndFaster(2)]).toEqual([10])
})
