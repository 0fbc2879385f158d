import { readDuration, readSize, showSize } from './quantities.js'

test.each([
  ['500ms', 500],
  ['1s', 1_000],
  ['2m', 120_000],
  ['1h', 3_600_000],
  ['0', 0],
  ['0s', 0],
])('%s lasts %i ms', (text, ms) => {
  expect(readDuration(text, { bareMs: false })).toBe(ms)
})

test.each(['', '1', '1.5s', '-1s', '1 s', 's', '1w', '1S', '1e3ms'])('%j is no duration', text => {
  expect(readDuration(text, { bareMs: false })).toBeNaN()
})

test('a bare number is milliseconds only where the name says so', () => {
  expect(readDuration('250', { bareMs: true })).toBe(250)
})

test.each([
  ['1048576', 1_048_576],
  ['64KiB', 65_536],
  ['4MiB', 4_194_304],
  ['1GiB', 1_073_741_824],
])('%s is %i bytes', (text, bytes) => {
  expect(readSize(text)).toBe(bytes)
})

test.each(['', '-1', '1.5MiB', '4MB', '4 MiB', '4mib', 'MiB', '0x10'])('%j is no size', text => {
  expect(readSize(text)).toBeNaN()
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
