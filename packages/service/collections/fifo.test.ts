import { createFifo } from './fifo.ts'

test('items are taken in the order in which they came', () => {
  const queue = createFifo<number>()
  expect([queue.size, queue.first(), queue.take()]).toEqual([0, undefined, undefined])
  for (const item of [1, 2, 3]) queue.add(item)
  expect([queue.size, queue.first(), queue.take()]).toEqual([3, 1, 1])
  queue.add(4)
  expect([queue.take(), queue.take(), queue.take(), queue.take(), queue.size]).toEqual([2, 3, 4, undefined, 0])
})

test('a queue that is never empty keeps nothing that was taken', () => {
  const queue = createFifo<number>()
  let taken = 0
  for (let item = 0; item < 10_000; item++) {
    queue.add(item)
    if (item % 3 === 0) continue
    expect(queue.take()).toBe(taken++)
    expect(queue.size).toBe(item + 1 - taken)
  }
  while (queue.size > 0) expect(queue.take()).toBe(taken++)
  expect(taken).toBe(10_000)
})
