import { keys, lessThan, shareLate } from './keys.ts'
import { clientsOf, type Options } from './scenario.ts'

/** Those that a test is about. */
const optionsOf = (options: Partial<Options>) => options as Options

test('timers that were late are those of the phase alone', () => {
  const lags = lessThan({ all: 1_100, inTime: 1_080 }, { all: 1_000, inTime: 990 })

  expect(lags).toEqual({ all: 100, inTime: 90 })
  expect(shareLate(lags)).toBeCloseTo(0.1)
  expect(shareLate({ all: 0, inTime: 0 })).toBeUndefined()
})

test('each gateway gets clients enough for all keys', () => {
  expect(clientsOf(keys, optionsOf({ keys: 1_000_000, perSession: 10_000 }))).toBe(400)
  expect(clientsOf(keys, optionsOf({ keys: 25_000, perSession: 10_000, gateways: 2 }))).toBe(6)
})

test('only a system of its own loses a node', () => {
  expect(keys.problem?.(optionsOf({ start: undefined }))).toMatch(/--start/)
  expect(keys.problem?.(optionsOf({ start: 'keycast', tls: true }))).toMatch(/--tls/)
  expect(keys.problem?.(optionsOf({ start: 'keycast', bytes: 200 }))).toBeUndefined()
})

test('a value has room for its key', () => {
  expect(keys.problem?.(optionsOf({ start: 'keycast', bytes: 50 }))).toMatch(/--bytes/)
})
