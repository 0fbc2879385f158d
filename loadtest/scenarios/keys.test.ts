import { keys, lessThan, shareLate } from './keys.ts'

test('timers that were late are those of the phase alone', () => {
  const lags = lessThan({ all: 1_100, inTime: 1_080 }, { all: 1_000, inTime: 990 })

  expect(lags).toEqual({ all: 100, inTime: 90 })
  expect(shareLate(lags)).toBeCloseTo(0.1)
  expect(shareLate({ all: 0, inTime: 0 })).toBeUndefined()
})

test('each gateway gets clients enough for all keys', () => {
  expect(keys.clients({ keys: 1_000_000, perSession: 10_000 })).toBe(400)
  expect(keys.clients({ keys: 25_000, perSession: 10_000, gateways: 2 })).toBe(6)
})

test('only a system of its own loses a node', () => {
  expect(keys.problem?.({ start: undefined })).toMatch(/--start/)
  expect(keys.problem?.({ start: 'keycast', tls: true })).toMatch(/--tls/)
  expect(keys.problem?.({ start: 'keycast', bytes: 200 })).toBeUndefined()
})

test('a value has room for its key', () => {
  expect(keys.problem?.({ start: 'keycast', bytes: 50 })).toMatch(/--bytes/)
})
