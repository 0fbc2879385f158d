import { createRecentMap } from './recent-map.ts'

test('it holds what was put in, until it is taken out', () => {
  const map = createRecentMap(4)
  map.set('a', 1)
  map.set('a', 2)
  expect(map.get('a')).toBe(2)
  expect(map.size).toBe(1)
  map.delete('a')
  expect(map.get('a')).toBeUndefined()
})

test('it never holds more than it may, and what is used stays', () => {
  const map = createRecentMap(10)
  map.set('kept', 0)
  for (let n = 0; n < 1_000; n++) {
    map.set(n, n)
    expect(map.get('kept')).toBe(0)
    expect(map.size).toBeLessThanOrEqual(10)
  }
  expect(map.get(999)).toBe(999)
  expect(map.get(1)).toBeUndefined()
})
