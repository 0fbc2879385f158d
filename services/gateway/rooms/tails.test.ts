import { readFrames } from '../test-support.ts'
import { createRoom } from './room.ts'
import { framesAfter } from './shared-frames.ts'
import { createTails } from './tails.ts'

const namespace = { name: 'room', history: { messages: 10 } } as any

/** @param bytes of each */
const messages = (first: number, last: number, bytes = 10) =>
  Array.from({ length: last - first + 1 }, (_, index) => ({
    seq: first + index,
    at: 5,
    from: '',
    messageId: undefined,
    data: Buffer.from(JSON.stringify('x'.repeat(bytes - 2))),
  }))

function setUp(bytesMax = 2 ** 20) {
  const room = createRoom('room:1', namespace)
  room.epoch = 'E1'
  const tails = createTails({ bytesMax, now: () => 7 })
  /** The seqs a session at the cursor is given next. */
  const next = (cursor: number, of: typeof room = room) => {
    const segment = tails.following(of, cursor)
    return segment && readFrames(framesAfter(segment, cursor)).map(({ seq }) => seq)
  }
  return { room, tails, next }
}

test('what comes before anybody wants it is one segment', () => {
  const { room, tails, next } = setUp()
  tails.append(room, messages(1, 2))
  tails.append(room, messages(3, 3))
  expect(room.segments).toEqual([])
  expect(next(0)).toEqual([1, 2, 3])
  expect(room.segments).toHaveLength(1)
  expect(room.segments[0].receivedAtMs).toBe(7)
  tails.append(room, messages(4, 4))
  expect(next(0)).toEqual([1, 2, 3])
  expect(next(3)).toEqual([4])
  expect(room.segments).toHaveLength(2)
})

test('from any cursor, the messages that follow it come without a hole', () => {
  const { room, tails, next } = setUp()
  let seq = 0
  for (let step = 1; step <= 20; step++) {
    tails.append(room, messages(seq + 1, seq + step))
    tails.seal(room)
    seq += step
  }
  tails.append(room, messages(seq + 1, seq + 5))
  for (let from = 0; from < room.reached; from += 7) {
    const seen = []
    for (let cursor = from; cursor < room.reached; cursor = seen[seen.length - 1]) seen.push(...(next(cursor) ?? []))
    expect(seen).toEqual(Array.from({ length: room.reached - from }, (_, index) => from + 1 + index))
  }
})

test('many bytes become several segments, each encoded as soon as it is large', () => {
  const { room, tails } = setUp()
  tails.append(room, messages(1, 10, 20_000))
  expect(room.segments.length).toBeGreaterThan(1)
  expect(room.freshBytes).toBeLessThan(64 * 1024)
})

test('past the bound the oldest of all rooms go', () => {
  const { room, tails, next } = setUp(100_000)
  const other = createRoom('room:2', namespace)
  tails.append(other, messages(1, 1, 30_000))
  tails.seal(other)
  for (let seq = 1; seq <= 4; seq++) {
    tails.append(room, messages(seq, seq, 30_000))
    tails.seal(room)
  }
  expect(tails.bytes()).toBeLessThanOrEqual(100_000)
  expect(tails.covers(other, 0)).toBe(false)
  expect(tails.covers(other, 1)).toBe(true)
  expect(next(0)).toBeUndefined()
  expect(next(1)).toEqual([2])
  expect(tails.describe(room)).toEqual({ messages: 3, bytes: tails.bytes() })
})

test('a page serves those behind the tail, until it goes as well', () => {
  const { room, tails, next } = setUp(100_000)
  room.reached = 50
  tails.append(room, messages(51, 52))
  expect(next(10)).toBeUndefined()
  tails.addPage(room, messages(11, 15))
  expect(next(10)).toEqual([11, 12, 13, 14, 15])
  expect(next(12)).toEqual([13, 14, 15])
  expect(next(15)).toBeUndefined()
  tails.append(room, messages(53, 53, 99_000))
  tails.seal(room)
  expect(next(10)).toBeUndefined()
  expect(room.pages).toEqual([])
})

test('a large page is several segments', () => {
  const { room, tails } = setUp(2 ** 22)
  tails.addPage(room, messages(1, 10, 30_000))
  expect(room.pages.length).toBeGreaterThan(3)
  expect(room.pages.map(({ first }) => first)[0]).toBe(1)
  expect(room.pages[room.pages.length - 1].last).toBe(10)
})

test('a room that is forgotten holds nothing, and rooms that come and go leave nothing behind', () => {
  const { tails } = setUp()
  for (let round = 0; round < 1_000; round++) {
    const room = createRoom(`room:${round}`, namespace)
    tails.append(room, messages(1, 3))
    tails.seal(room)
    tails.addPage(room, messages(1, 1))
    tails.append(room, messages(4, 4))
    tails.forget(room)
    expect(room).toMatchObject({ segments: [], pages: [], fresh: [], freshBytes: 0 })
  }
  expect(tails.bytes()).toBe(0)
})
