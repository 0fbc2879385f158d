import { ago, counted, lasted, rated, sized } from './quantities.js'

test('sizes are in the unit that fits', () => {
  expect([0, 999, 130_000, 4_194_304].map(sized)).toEqual(['0 B', '999 B', '130 KB', '4.2 MB'])
})

test('durations have one unit', () => {
  expect([0, 900, 59_400, 60_000, 7_200_000, 86_400_000].map(lasted)).toEqual([
    '0 s',
    '1 s',
    '59 s',
    '1 min',
    '2 h',
    '1 day',
  ])
  expect([0, 999, 3_000].map(ago)).toEqual(['just now', 'just now', '3 s ago'])
})

test('counts agree with their noun', () => {
  expect([counted(1, 'change'), counted(1_200, 'change'), counted(2, 'more', 'more')]).toEqual([
    '1 change',
    '1,200 changes',
    '2 more',
  ])
})

test('a rate shows a decimal only where it matters', () => {
  expect([0, 0.25, 3.21, 12.7].map(rated)).toEqual(['0', '0.3', '3.2', '13'])
})
