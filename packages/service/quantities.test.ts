import { duration, integer, showSize, size } from './quantities.cjs'

test.each([
  ['500ms', 500],
  ['1s', 1_000],
  ['2m', 120_000],
  ['1h', 3_600_000],
  ['0', 0],
  ['0s', 0],
])('%s lasts %i ms', (text, ms) => {
  expect(duration().read(text)).toBe(ms)
})

test.each(['', '1', '1.5s', '-1s', '1 s', 's', '1w', '1S', '1e3ms'])('%j is no duration', text => {
  expect(duration().read(text)).toBeNaN()
})

test('a plain number counts milliseconds only where the name says so', () => {
  expect(duration({ plainMs: true }).read('250')).toBe(250)
})

test('no duration outlasts what a timer can count', () => {
  expect(duration({ plainMs: true }).read('2147483647')).toBe(2_147_483_647)
  expect(duration({ plainMs: true }).read('2147483648')).toBeNaN()
})

test('zero may have a meaning of its own below the range', () => {
  const refresh = duration({ minMs: 50, maxMs: 86_400_000, zero: 'never' })
  expect(['0', '0s', '50ms'].map(refresh.read)).toEqual([0, 0, 50])
  expect(['49ms', '25h'].map(refresh.read)).toEqual([Number.NaN, Number.NaN])
})

test.each([
  ['1048576', 1_048_576],
  ['64KiB', 65_536],
  ['4MiB', 4_194_304],
  ['1GiB', 1_073_741_824],
])('%s is %i bytes', (text, bytes) => {
  expect(size().read(text)).toBe(bytes)
})

test.each(['', '-1', '1.5MiB', '4MB', '4 MiB', '4mib', 'MiB', '0x10'])('%j is no size', text => {
  expect(size().read(text)).toBeNaN()
})

test.each(['', '1.5', '1e3', ' 1', '0x10', '-1'])('%j is no whole number from 0 on', text => {
  expect(integer().read(text)).toBeNaN()
})

test('each rule says in words what it accepts', () => {
  expect(duration({ minMs: 50, maxMs: 86_400_000, zero: 'never' }).expects).toBe(
    'a duration such as 500ms or 2s, from 50ms to 1d, or 0 (never)',
  )
  expect(duration({ minMs: 100, plainMs: true }).expects).toBe(
    'milliseconds, or a duration such as 500ms or 2s, at least 100ms',
  )
  expect(size({ minBytes: 1_024 }).expects).toBe('bytes, or a size such as 64KiB or 4MiB, at least 1KiB')
  expect(integer({ min: 1, max: 16, unit: 'gateways' }).expects).toBe('a whole number of gateways, from 1 to 16')
})

test('a size is shown in the largest unit that leaves a whole number', () => {
  expect([0, 1_000, 65_536, 4_194_304, 1_073_741_825].map(showSize)).toEqual([
    '0',
    '1000',
    '64KiB',
    '4MiB',
    '1073741825',
  ])
})

test('a bound beyond what a timer counts is told too', () => {
  expect(duration({ minMs: 1_000, maxMs: 366 * 86_400_000 }).expects).toBe(
    'a duration such as 500ms or 2s, from 1s to 366d',
  )
})
