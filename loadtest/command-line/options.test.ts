import { durationText, readDuration, readInteger, readSize } from './options.ts'

test.each([
  ['500ms', 500],
  ['2s', 2_000],
  ['1.5s', 1_500],
  ['10m', 600_000],
])('%s is a duration', (text, ms) => {
  expect(readDuration(text)).toBe(ms)
})

test.each([
  [500, '500ms'],
  [2_000, '2s'],
  [90_000, '90s'],
  [900_000, '15m'],
  [0, '0s'],
])('%d ms is written as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
  expect(readDuration(text)).toBe(ms)
})

test.each(['2', 's', '-1s', '1 s', '1d', ''])('%j is no duration', text => {
  expect(() => readDuration(text)).toThrow('Give a duration')
})

test.each([
  ['130000', 130_000],
  ['64KiB', 65_536],
  ['4MiB', 4_194_304],
])('%s is a size', (text, bytes) => {
  expect(readSize(text)).toBe(bytes)
})

test.each(['0', '1.5', '64kb', '-1'])('%j is no size', text => {
  expect(() => readSize(text)).toThrow('Give a size')
})

test.each(['0', '11', '3.5', 'many', ''])('%j is not from 1 to 10', text => {
  expect(() => readInteger(1, 10)(text)).toThrow('from 1 to 10')
})
