import { randomNumbers } from '../../../test/support/random.js'
import { createRecent } from './recent.ts'

test('it holds what was set, until it is taken out', () => {
  const recent = createRecent<string, number>()
  recent.set('a', 1)
  recent.set('a', 2)
  expect([recent.get('a'), recent.has('a'), recent.size]).toEqual([2, true, 1])
  expect([recent.delete('a'), recent.delete('a'), recent.get('a'), recent.size]).toEqual([true, false, undefined, 0])
  expect([recent.oldest(), recent.takeOldest()]).toEqual([undefined, undefined])
})

test('it never holds more than it may: what was neither set nor used for longest goes', () => {
  const recent = createRecent<string | number, number>(10)
  recent.set('used', 0)
  for (let n = 0; n < 1_000; n++) {
    recent.set(n, n)
    expect(recent.use('used')).toBe(0)
    expect(recent.size).toBeLessThanOrEqual(10)
  }
  expect(Array.from(recent, ({ key }) => key)).toEqual([991, 992, 993, 994, 995, 996, 997, 998, 999, 'used'])
  expect([recent.get(990), recent.get(991)]).toEqual([undefined, 991])
  recent.set(1_000, 0)
  expect(recent.has(991)).toBe(false)
})

test('whatever is set, used, deleted and taken, the order is that of a map whose entries are put in anew', () => {
  const random = randomNumbers(5)
  const recent = createRecent<number, number>()
  const expected = new Map<number, number>()
  const putLast = (key: number, value: number) => {
    expected.delete(key)
    expected.set(key, value)
  }
  for (let step = 0; step < 10_000; step++) {
    const key = Math.floor(random() * 500)
    const dice = random()
    if (dice < 0.5) {
      recent.set(key, step)
      putLast(key, step)
    } else if (dice < 0.7) {
      const value = expected.get(key)
      expect(recent.use(key)).toBe(value)
      if (value !== undefined) putLast(key, value)
    } else if (dice < 0.85) {
      expect(recent.delete(key)).toBe(expected.delete(key))
    } else {
      const [first] = expected
      expect(recent.oldest()?.key).toBe(first?.[0])
      expect(recent.takeOldest()?.value).toBe(first?.[1])
      if (first) expected.delete(first[0])
    }
    expect(recent.size).toBe(expected.size)
  }
  expect(Array.from(recent, ({ key }) => key)).toEqual([...expected.keys()])
})
