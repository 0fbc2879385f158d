import { realWorld } from '@keycast/service'
import { randomNumbers } from '../../../test/support/random.js'
import type { Outcome, Publish } from '../log/log.ts'
import { createMemoryLog } from '../log/memory/memory.ts'
import { conflate } from './conflate.ts'

const retention = { messages: 1, ageMs: 1e12, bytes: 1e9 }
const of = (room: string, text: string, value?: Publish['value']): Publish => ({
  room,
  messageId: undefined,
  from: '',
  data: Buffer.from(text),
  retention,
  value,
})

test('of the values of a key the last is written, or the one of the highest rank', () => {
  const { written } = conflate([
    of('=a:1', 'first', { rank: undefined }),
    of('=b:1', 'high', { rank: 5 }),
    of('=a:1', 'last', { rank: undefined }),
    of('=b:1', 'low', { rank: 4 }),
  ])
  expect(written.map(({ data }) => data.toString())).toEqual(['high', 'last'])
})

test('messages of a room are all written, in their order', () => {
  const publishes = [of('room:1', '1'), of('=a:1', 'x', { rank: 1 }), of('room:1', '2'), of('=a:1', 'y', { rank: 1 })]
  expect(conflate(publishes).written.map(({ data }) => data.toString())).toEqual(['1', '2', 'y'])
})

test('one that could not be written was not taken, nor were those before it', () => {
  const { spread } = conflate([of('=a:1', 'x', { rank: 1 }), of('=a:1', 'y', { rank: 2 })])
  expect(spread([{ error: 'log_full' }])).toEqual([{ error: 'log_full' }, { error: 'log_full' }])
})

/** What a backend is told of each, and what is the value in the end. */
async function run(publishes: Publish[][], isConflated: boolean) {
  const log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  const told: unknown[] = []
  for (const batch of publishes) {
    const { written, spread } = isConflated ? conflate(batch) : { written: batch, spread: (all: Outcome[]) => all }
    told.push(...spread(await log.append(written)).map(({ error, ...rest }) => error && [error, rest]))
  }
  const last = async (room: string) =>
    String((await log.read(room, { before: Number.MAX_SAFE_INTEGER, limit: 1, bytesMax: 1 })).messages[0]?.data)
  return { told, last: [await last('=a:1'), await last('=a:2')] }
}

test('whatever came with and without ranks, all ends as if each had been written by itself', async () => {
  const random = randomNumbers(7)
  for (let round = 0; round < 300; round++) {
    const batches = Array.from({ length: 3 }, (_, batch) =>
      Array.from({ length: 1 + Math.floor(random() * 8) }, (_, n) => {
        const rank = random() < 0.3 ? undefined : Math.floor(random() * 6)
        return of(`=a:${1 + Math.floor(random() * 2)}`, `${batch}.${n}`, { rank })
      }),
    )
    const whole = await run(batches, true)
    expect(whole).toEqual(await run(batches, false))
  }
})
