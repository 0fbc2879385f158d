import { setImmediate } from 'node:timers/promises'
import { realWorld } from '@keycast/service'
import { batchPerTurn } from './batch-per-turn.ts'
import { MESSAGES_MAX } from './messages.ts'

test('what is added within a turn goes out together, and in order; what comes later, later', async () => {
  const sent: number[][] = []
  const batch = batchPerTurn(realWorld.turn, (items: number[]) => sent.push(items))
  batch.add(1, undefined)
  await Promise.resolve()
  batch.add(2, undefined)
  expect(sent).toEqual([])
  await setImmediate()
  expect(sent).toEqual([[1, 2]])
  batch.add(3, undefined)
  await setImmediate()
  expect(sent).toEqual([[1, 2], [3]])
})

test('more than one message may hold goes out as several', async () => {
  const sent: number[][] = []
  const batch = batchPerTurn(realWorld.turn, (items: number[]) => sent.push(items))
  const items = Array.from({ length: 2 * MESSAGES_MAX + 1 }, (_, index) => index)
  for (const item of items) batch.add(item, undefined)
  await setImmediate()
  expect(sent.map(({ length }) => length)).toEqual([MESSAGES_MAX, MESSAGES_MAX, 1])
  expect(sent.flat()).toEqual(items)
})

test('items for several receivers are gathered for each, and each message is as full as it may be', async () => {
  const sent: [string, number][] = []
  const batch = batchPerTurn(realWorld.turn, (items: number[], to: string) => sent.push([to, items.length]))
  for (let item = 0; item < 4 * MESSAGES_MAX; item++) batch.add(item, `worker ${item % 4}`)
  await setImmediate()
  expect(sent).toEqual([0, 1, 2, 3].map(worker => [`worker ${worker}`, MESSAGES_MAX]))
})
