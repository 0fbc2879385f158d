import { createCounts } from '../../counts.ts'
import { noKind, readFrames } from '../../test-support.ts'
import { createDueMessages } from './due-messages.ts'
import { createRoom, MESSAGES } from './room.ts'
import { createTails } from './tails.ts'

function setUp(count: number, bytes = 10) {
  const room = createRoom('room:1', {} as any, noKind)
  room.epoch = 'E1'
  const tails = createTails({ bytesMax: 2 ** 24, now: () => 0 })
  for (let seq = 1; seq <= count; seq++) {
    const data = Buffer.from(JSON.stringify('x'.repeat(bytes - 2)))
    tails.append(room, [{ seq, at: 5, from: '', messageId: undefined, data }])
  }
  const behind: unknown[] = []
  const counts = createCounts()
  const watching = { begin: () => undefined }
  const add = createDueMessages({
    gate: { check: () => undefined, grants: () => true },
    tails,
    watching,
    onBehind: subscription => void behind.push(subscription),
    counts,
  })
  const subscription: any = {
    session: { answersHeld: 0 },
    topic: room,
    cursor: 0,
    due: MESSAGES,
    placing: undefined,
    gap: undefined,
    answers: undefined,
  }
  /** The texts that are written, as their frames have them. */
  const write = (bytesMax: number = 2 ** 20) => {
    const pieces: any[] = []
    const added = add(subscription, pieces, bytesMax, 7)
    expect(added).toBe(pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0))
    return pieces.flatMap(piece => (typeof piece === 'string' ? [JSON.parse(piece)] : readFrames(piece)))
  }
  return { room, tails, behind, counts, subscription, write }
}

test('all after the cursor is added, and the cursor moves with it', () => {
  const { write, subscription, counts } = setUp(3)
  subscription.cursor = 1
  expect(write().map(({ seq }) => seq)).toEqual([2, 3])
  expect(subscription).toMatchObject({ cursor: 3, due: 0 })
  expect(counts.sent.message).toBe(2)
})

test('past the batch the rest stays due', () => {
  const { write, subscription } = setUp(30, 20_000)
  const first = write(100_000)
  expect(subscription.due).not.toBe(0)
  const seen = [...first, ...write(2 ** 20)]
  expect(seen.map(({ seq }) => seq)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1))
  expect(subscription.due).toBe(0)
})

test('word of a gap goes before the messages, and answers behind the message they wait for', () => {
  const { write, subscription, counts, room } = setUp(3)
  subscription.gap = 'trimmed'
  subscription.cursor = 1
  subscription.answers = [
    { seq: 1, answer: { type: 'error', code: 'log_full', message: '' } },
    { seq: 3, answer: { type: 'published', seq: 3 } },
    { seq: 4, answer: { type: 'published', seq: 4 } },
  ]
  expect(write()).toMatchObject([
    { type: 'gap', epoch: 'E1', seq: 1, oldest: room.oldest, reason: 'trimmed' },
    { type: 'message', seq: 2 },
    { type: 'message', seq: 3 },
    { type: 'error', code: 'log_full' },
    { type: 'published', seq: 3 },
  ])
  expect(subscription).toMatchObject({ gap: undefined, due: 0, answers: [{ seq: 4 }] })
  expect(counts.sent).toMatchObject({ gap: 1, published: 1, error: 1 })
  expect(counts.errors.log_full).toBe(1)
})

test('behind the tail nothing is due until the journal was asked', () => {
  const { write, subscription, behind, tails, room } = setUp(3)
  tails.forget(room)
  expect(write()).toEqual([])
  expect(behind).toEqual([subscription])
  expect(subscription).toMatchObject({ cursor: 0, due: 0 })
})

test('a stream begins with where it stands, and no message before that', () => {
  const { write, subscription, room } = setUp(3)
  subscription.cursor = 1
  subscription.placing = { start: { id: 7, after: { epoch: 'E1', seq: 1 } }, head: 3, isRecovered: true }
  expect(write()).toMatchObject([
    {
      type: 'subscribed',
      id: 7,
      keys: [{ key: 'room:1', epoch: 'E1', seq: 3, oldest: room.oldest, recovered: true, count: 2 }],
    },
    { type: 'message', seq: 2 },
    { type: 'message', seq: 3 },
  ])
  expect(subscription).toMatchObject({ placing: undefined, due: 0 })
})
