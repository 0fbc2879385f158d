import { randomNumbers } from '../../../test/support/random.js'
import { createUniqueQueue, type UniqueQueue } from './unique-queue.ts'

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
