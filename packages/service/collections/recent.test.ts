import { randomNumbers } from '../../../test/support/random.js'
import { createRecent, createUniqueQueue, type UniqueQueue } from './recent.ts'

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

function takeAll<T>(queue: UniqueQueue<T>) {
  const taken = []
  while (queue.size > 0) taken.push(queue.take())
  return taken
}

test('items are taken in the order they came, each once', () => {
  const queue = createUniqueQueue(['a', 'b'])
  for (const item of ['b', 'c', 'a', 'd']) queue.add(item)
  expect(queue.size).toBe(4)
  expect(queue.first()).toBe('a')
  expect(takeAll(queue)).toEqual(['a', 'b', 'c', 'd'])
  expect(queue.take()).toBeUndefined()
  expect(queue.first()).toBeUndefined()
})

test('what was deleted is passed over, also where it was the first or the last', () => {
  const queue = createUniqueQueue(['a', 'b', 'c', 'd'])
  for (const item of ['a', 'c', 'd']) expect(queue.delete(item)).toBe(true)
  expect(queue.delete('a')).toBe(false)
  expect(queue.has('b')).toBe(true)
  expect(queue.first()).toBe('b')
  expect(takeAll(queue)).toEqual(['b'])
  queue.add('e')
  expect(takeAll(queue)).toEqual(['e'])
})

test('what is deleted and added again stands at the end', () => {
  const queue = createUniqueQueue(['a', 'b', 'c'])
  queue.delete('a')
  queue.add('a')
  queue.add('b')
  expect(takeAll(queue)).toEqual(['b', 'c', 'a'])
})

test('whatever is added, deleted and taken, the queue holds what a set would', () => {
  const random = randomNumbers(3)
  const queue = createUniqueQueue([] as number[])
  const expected = new Set<number>()
  for (let step = 0; step < 20_000; step++) {
    const item = Math.floor(random() * 2_000)
    const dice = random()
    // At first it grows, later it shrinks.
    if (dice < (step < 10_000 ? 0.6 : 0.3)) {
      queue.add(item)
      expected.add(item)
    } else if (dice < 0.8) {
      if (queue.delete(item) !== expected.delete(item)) throw new Error(`step ${step}: ${item} was there or was not`)
    } else if (expected.size > 0) {
      const [first] = expected
      expected.delete(first)
      if (queue.take() !== first) throw new Error(`step ${step}: ${first} was not the first`)
    }
    if (queue.size !== expected.size) throw new Error(`step ${step}: ${queue.size} items instead of ${expected.size}`)
  }
  expect(takeAll(queue)).toEqual([...expected])
})

/** Counts how often a Map or a Set is asked for one of its items, or walked over. */
function stepsOf(run: () => void) {
  let steps = 0
  const restore = [Map.prototype, Set.prototype].flatMap(prototype =>
    ['get', 'has', 'delete', 'keys', 'values', 'entries', Symbol.iterator].map(name => {
      const original = Reflect.get(prototype, name)
      Reflect.set(prototype, name, function (this: any, ...values: any[]) {
        steps++
        return original?.apply(this, values)
      })
      return () => (original ? Reflect.set(prototype, name, original) : Reflect.deleteProperty(prototype, name))
    }),
  )
  run()
  for (const undo of restore) undo()
  return steps
}

test('taking one costs as much after 400,000 others as after 50,000', () => {
  const stepsEach = [50_000, 400_000].map(count => {
    const queue = createUniqueQueue(Array.from({ length: count }, (_, i) => i))
    return (
      stepsOf(() => {
        while (queue.take() !== undefined);
      }) / count
    )
  })
  expect(stepsEach).toEqual([1, 1])
})
