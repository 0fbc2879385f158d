import { noKind } from '../../test-support.ts'
import { createCatchUpReads } from './catch-up-reads.ts'
import { createRoom } from './room.ts'

function setUp() {
  const room = createRoom('room:1', { history: { messages: 10 } } as any, noKind)
  room.epoch = 'E1'
  room.reached = 900
  room.subscriptions = [{} as any]
  const asked: { range: any; payer: unknown; answer: (result: any) => void }[] = []
  const added: number[][] = []
  const counts = { pageReads: 0, pageReadsCoalesced: 0 }
  const pages = createCatchUpReads({
    backbone: {
      history: (key, range, { payer }) => {
        expect(key).toBe('room:1')
        return new Promise(answer => asked.push({ range, payer, answer }))
      },
    },
    tails: { addPage: (_, messages) => void added.push(messages.map(({ seq }) => seq)) },
    counts,
  })
  return { room, asked, added, counts, pages }
}

const found = (...seqs: number[]) => ({
  epoch: 'E1',
  oldest: 3,
  newest: 900,
  messages: seqs.map(seq => ({ seq })),
})

test('those about as far behind share one read, and those further behind have their own', async () => {
  const { room, asked, added, counts, pages } = setUp()
  const reads = [
    pages.after(room, 100, undefined),
    pages.after(room, 100, undefined),
    pages.after(room, 350, undefined),
    pages.after(room, 351, undefined),
  ]
  const earlier = pages.after(room, 99, undefined)
  expect(asked.map(({ range }) => range.after)).toEqual([100, 351, 99])
  expect(asked[0].range).toEqual({ epoch: 'E1', after: 100, limit: 500 })
  expect(counts).toEqual({ pageReads: 3, pageReadsCoalesced: 2 })
  for (const { answer } of asked) answer(found(101, 102))
  for (const page of await Promise.all([...reads, earlier]))
    expect(page).toEqual({ epoch: 'E1', oldest: 3, newest: 900, first: 101 })
  expect(added).toEqual([
    [101, 102],
    [101, 102],
    [101, 102],
  ])
  expect(room.oldest).toBe(3)
  // It is over: the next one reads anew.
  pages.after(room, 100, undefined)
  expect(asked).toHaveLength(4)
})

test('a read of a history that has ended is shared with nobody who is behind in the next one', async () => {
  const { room, asked, pages } = setUp()
  const before = pages.after(room, 100, undefined)
  room.epoch = 'E2'
  const behind = pages.after(room, 100, undefined)
  expect(asked.map(({ range }) => range.epoch)).toEqual(['E1', 'E2'])
  asked[0].answer({ code: 'other_epoch' })
  expect(await before).toEqual({ code: 'other_epoch' })
  void pages.after(room, 120, undefined)
  expect(asked).toHaveLength(2)
  asked[1].answer({ ...found(101), epoch: 'E2' })
  expect(await behind).toMatchObject({ epoch: 'E2', first: 101 })
  pages.after(room, 100, undefined)
  expect(asked).toHaveLength(3)
})

test('who was sent more elsewhere than came here has the journal asked: a read under way may be of before that', () => {
  const { room, asked, pages } = setUp()
  pages.after(room, 800, undefined)
  pages.after(room, 900, undefined)
  pages.after(room, 901, undefined)
  pages.after(room, 902, undefined)
  expect(asked.map(({ range }) => range.after)).toEqual([800, 901, 902])
})

test('each part is read in the turn of the first who is behind there, and not before those of others', () => {
  const { room, asked, pages } = setUp()
  pages.after(room, 1, 'a1.u1')
  pages.after(room, 2, 'a2')
  pages.after(room, 500, 'a2')
  void pages.before(room, 900, 2, 'a3')
  expect(asked.map(({ payer }) => payer)).toEqual(['a1.u1', 'a2', 'a3'])
})

test('what failed is said, and the next one reads anew', async () => {
  const { room, asked, added, pages } = setUp()
  const read = pages.after(room, 1, undefined)
  const error = { code: 'journal_unavailable', message: 'm', retryAfterMs: 1_000 }
  asked[0].answer(error)
  expect(await read).toBe(error)
  expect(added).toEqual([])
  pages.after(room, 1, undefined)
  expect(asked).toHaveLength(2)
})

test('what nobody wants any more, or is of another history by now, is not kept', async () => {
  const { room, asked, added, pages } = setUp()
  const read = pages.after(room, 1, undefined)
  room.epoch = 'E2'
  asked[0].answer(found(2))
  expect(await read).toMatchObject({ epoch: 'E1' })
  const another = pages.after(room, 1, undefined)
  room.subscriptions = []
  asked[1].answer({ ...found(2), epoch: 'E2' })
  await another
  expect(added).toEqual([])
})

test('the last messages up to a seq', async () => {
  const { room, asked, added, pages } = setUp()
  const read = pages.before(room, 900, 2, undefined)
  expect(asked[0].range).toEqual({ epoch: 'E1', before: 901, limit: 2 })
  asked[0].answer(found(899, 900))
  expect(await read).toEqual({ epoch: 'E1', oldest: 3, newest: 900, first: 899 })
  expect(added).toEqual([[899, 900]])
  const none = pages.before(room, 900, 2, undefined)
  asked[1].answer(found())
  expect(await none).toMatchObject({ first: undefined })
})
