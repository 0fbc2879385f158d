import { fullness } from './fullness.ts'

test('a pool is nearly full past four fifths', () => {
  const pool = { max: 1_000, setting: 'X_BYTES_MAX' }
  expect(fullness('watched keys', 800, pool)).toEqual([])
  expect(fullness('watched keys', 801, pool)).toEqual(['watched keys take 801 of 1000 bytes (X_BYTES_MAX)'])
})
