import { createFairQueue, type FairQueue } from './fair-queue.ts'

const takeAll = (queue: FairQueue<string>) => Array.from({ length: queue.size }, () => queue.take())

test('lanes take turns, and within a lane the first that was added comes first', () => {
  const queue = createFairQueue<string>()
  for (const item of ['a1', 'a2', 'a3', 'a4']) queue.add(item, 'a')
  expect(queue.take()).toBe('a1')
  for (const item of ['b1', 'b2']) queue.add(item, 'b')
  queue.add('c1', undefined)
  expect(takeAll(queue)).toEqual(['a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  expect(queue.take()).toBeUndefined()
})

test('an item in two lanes is taken once, where it comes up first', () => {
  const queue = createFairQueue<string>()
  for (const item of ['a1', 'a2', 'both', 'both']) queue.add(item, 'a')
  queue.add('both', 'b')
  queue.add('b1', 'b')
  expect(queue.size).toBe(4)
  expect(takeAll(queue)).toEqual(['a1', 'both', 'a2', 'b1'])
})

test('an item that was deleted is in no lane, and one whose lane is empty costs no turn', () => {
  const queue = createFairQueue<string>()
  queue.add('gone', 'a')
  for (const item of ['gone', 'b1', 'b2']) queue.add(item, 'b')
  expect([queue.delete('gone'), queue.delete('gone'), queue.has('gone'), queue.has('b1')]).toEqual([
    true,
    false,
    false,
    true,
  ])
  queue.add('a1', 'a')
  expect(takeAll(queue)).toEqual(['b1', 'a1', 'b2'])
})
