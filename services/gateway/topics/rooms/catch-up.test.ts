import { createCounts } from '../../counts.ts'
import { createCatchUp } from './catch-up.ts'

function setUp() {
  const reads: ((page: any) => void)[] = []
  const owed: unknown[] = []
  const counts = createCounts()
  const behind = createCatchUp({
    tails: { seal() {} },
    pages: { after: () => new Promise(resolve => reads.push(resolve)) },
    outbox: { owe: (subscription: unknown) => void owed.push(subscription) },
    counts,
  })
  const room = { epoch: 'E1', reached: 100 }
  const subscription: any = { session: {}, topic: room, cursor: 10, index: 0, isBehind: false, gap: undefined }
  const read = async (page: object) => {
    const done = behind.readOn(subscription)
    expect(subscription.isBehind).toBe(true)
    reads[reads.length - 1]({ epoch: 'E1', oldest: 1, newest: 100, ...page })
    await done
    expect(subscription.isBehind).toBe(false)
  }
  return { behind, reads, owed, counts, room, subscription, read }
}

test('what was read is due from where the session stands', async () => {
  const { read, owed, subscription } = setUp()
  await read({ oldest: 11 })
  expect(owed).toEqual([subscription])
  expect(subscription).toMatchObject({ cursor: 10, gap: undefined })
})

test('past the history the session is told, and goes on from the head', async () => {
  const { read, owed, subscription, counts } = setUp()
  await read({ oldest: 12 })
  expect(owed).toEqual([subscription])
  expect(subscription).toMatchObject({ cursor: 100, gap: 'trimmed' })
  expect(counts.gaps.trimmed).toBe(1)
})

test('while it reads it does not read again', async () => {
  const { behind, reads, subscription } = setUp()
  void behind.readOn(subscription)
  await behind.readOn(subscription)
  expect(reads).toHaveLength(1)
})

test('a journal that is away is no gap: it is asked again', async () => {
  const { behind, read, owed, subscription } = setUp()
  await read({ code: 'journal_unavailable' })
  expect(owed).toEqual([])
  behind.retry()
  expect(owed).toEqual([subscription])
  behind.retry()
  expect(owed).toHaveLength(1)
})

test.each([
  ['ended', { index: -1 }],
  ['began its stream anew', { placing: {} }],
])('one whose page could not be read, and that %s since, is not written to by the retry', async (_, change) => {
  const { behind, read, owed, subscription } = setUp()
  await read({ code: 'journal_unavailable' })
  Object.assign(subscription, change)
  behind.retry()
  expect(owed).toEqual([])
})

test.each([
  ['ended', { index: -1 }],
  ['began its stream anew', { placing: {} }],
])('a session that %s meanwhile is not written to', async (_, change) => {
  const { behind, reads, owed, subscription } = setUp()
  const done = behind.readOn(subscription)
  Object.assign(subscription, change)
  reads[0]({ epoch: 'E1', oldest: 50, newest: 100 })
  await done
  expect(owed).toEqual([])
  expect(subscription.gap).toBeUndefined()
})

test('one that was told of a gap meanwhile is not told of another', async () => {
  const { behind, reads, owed, subscription, room } = setUp()
  const done = behind.readOn(subscription)
  room.epoch = 'E2'
  subscription.cursor = 0
  reads[0]({ epoch: 'E1', oldest: 50, newest: 100 })
  await done
  expect(owed).toEqual([subscription])
  expect(subscription).toMatchObject({ cursor: 0, gap: undefined })
})
