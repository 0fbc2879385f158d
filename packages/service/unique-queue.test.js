import { randomNumbers } from '../../test/support/random.js'
import { createUniqueQueue } from './unique-queue.js'

/** @template T @param {import('./unique-queue.js').UniqueQueue<T>} queue */
function takeAll(queue) {
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

test('whatever is added, deleted and taken, the queue holds what a set would', () => {
  const random = randomNumbers(3)
  const queue = createUniqueQueue(/** @type {number[]} */ ([]))
  /** @type {Set<number>} */
  const expected = new Set()
  for (let step = 0; step < 20_000; step++) {
    const item = Math.floor(random() * 2_000)
    const dice = random()
    // At first it grows, later it shrinks.
    if (dice < (step < 10_000 ? 0.6 : 0.3)) {
      queue.add(item)
      expected.add(item)
    } else if (dice < 0.8) expect(queue.delete(item)).toBe(expected.delete(item))
    else if (expected.size > 0) expect(expected.delete(/** @type {number} */ (queue.take()))).toBe(true)
    expect(queue.size).toBe(expected.size)
  }
  expect(new Set(takeAll(queue))).toEqual(expected)
})

/** Steps of a queue: each looks once whether an item is a member. @param {() => void} run */
function stepsOf(run) {
  let steps = 0
  const { has } = Set.prototype
  Set.prototype.has = function (item) {
    steps++
    return has.call(this, item)
  }
  run()
  Set.prototype.has = has
  return steps
}

test('taking one costs as much after 400,000 others as after 50,000', () => {
  const stepsEach = [50_000, 400_000].map(count => {
    const queue = createUniqueQueue(Array.from({ length: count }, (_, i) => i))
    return stepsOf(() => takeAll(queue)) / count
  })
  expect(stepsEach).toEqual([1, 1])
})

test('what is added and deleted for ever leaves nothing to walk over', () => {
  const queue = createUniqueQueue(['first'])
  for (let i = 0; i < 100_000; i++) {
    queue.add(`${i}`)
    queue.delete(`${i}`)
  }
  queue.add('last')
  expect(stepsOf(() => takeAll(queue))).toBeLessThan(3_000)
})
