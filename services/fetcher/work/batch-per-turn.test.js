import { setImmediate } from 'node:timers/promises'
import { batchPerTurn } from './batch-per-turn.js'
import { MESSAGES_MAX } from './messages.js'

test('what is added within a turn goes out together, and in order; what comes later, later', async () => {
  /** @type {number[][]} */
  const sent = []
  const batch = batchPerTurn((/** @type {number[]} */ items) => sent.push(items))
  batch.add(1)
  await Promise.resolve()
  batch.add(2)
  expect(sent).toEqual([])
  await setImmediate()
  expect(sent).toEqual([[1, 2]])
  batch.add(3)
  await setImmediate()
  expect(sent).toEqual([[1, 2], [3]])
})

test('more than one message may hold goes out as several', async () => {
  /** @type {number[][]} */
  const sent = []
  const batch = batchPerTurn((/** @type {number[]} */ items) => sent.push(items))
  const items = Array.from({ length: 2 * MESSAGES_MAX + 1 }, (_, index) => index)
  for (const item of items) batch.add(item)
  await setImmediate()
  expect(sent.map(({ length }) => length)).toEqual([MESSAGES_MAX, MESSAGES_MAX, 1])
  expect(sent.flat()).toEqual(items)
})
