import { noKind, readFrames } from '../../test-support.ts'
import { createRoom } from './room.ts'
import { framesAfter } from './shared-frames.ts'
import { createTails } from './tails.ts'

const namespace = { name: 'room', history: { messages: 10, ageMs: 30_000 } } as any

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
  const room = createRoom('room:1', namespace, noKind)
  room.epoch = 'E1'
  const clock = { ms: 7 }
  const tails = createTails({ bytesMax, now: () => clock.ms })
  /** The seqs a session at the cursor is given next. */
  const next = (cursor: number, of: typeof room = room) => {
    const segment = tails.following(of, cursor)
    return segment && readFrames(framesAfter(segment, cursor)).map(({ seq }) => seq)
  }
  return { room, tails, next, clock }
}

test('what comes before anybody wants it is one segment', () => {
  const { room, tails, next } = setUp()
  tails.append(room, messages(1, 2))
  tails.append(room, messages(3, 3))
  expect(room.segments).toMatchObject([{ first: 1, last: 3, frames: undefined }])
  expect(next(0)).toEqual([1, 2, 3])
  expect(room.segments).toMatchObject([{ first: 1, last: 3, messages: [] }])
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
  expect(room.segments.map(({ frames }) => frames !== undefined)).toEqual([true, true, false])
  expect(room.segments.at(-1)?.bytes).toBeLessThan(64 * 1024)
})

test('past the bound the oldest of all rooms go', () => {
  const { room, tails, next } = setUp(100_000)
  const other = createRoom('room:2', namespace, noKind)
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
  tails.seal(room)
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
    const room = createRoom(`room:${round}`, namespace, noKind)
    tails.append(room, messages(1, 3))
    tails.seal(room)
    tails.addPage(room, messages(1, 1))
    tails.append(room, messages(4, 4))
    tails.forget(room)
    expect(room).toMatchObject({ segments: [], pages: [] })
  }
  expect(tails.bytes()).toBe(0)
})

test('what nobody was sent yet counts as well: past the bound the oldest of it goes, and the journal has to be asked', () => {
  const { room, tails, next } = setUp(100_000)
  const rooms = Array.from({ length: 500 }, (_, n) => createRoom(`room:${n}`, namespace, noKind))
  for (const each of rooms) tails.append(each, messages(1, 3, 100))
  expect(tails.bytes()).toBeGreaterThan(90_000)
  expect(tails.bytes()).toBeLessThanOrEqual(100_000)
  expect(next(0, rooms[0])).toBeUndefined()
  expect(next(0, rooms[499])).toEqual([1, 2, 3])
  tails.append(rooms[0], messages(4, 4))
  expect(next(0, rooms[0])).toBeUndefined()
  expect(next(3, rooms[0])).toEqual([4])
  tails.append(room, messages(1, 1, 100_000))
  tails.append(room, messages(2, 2))
  expect(next(1)).toEqual([2])
})

test('no stream begins before what the history holds', () => {
  const { room, tails } = setUp()
  tails.append(room, messages(1, 100))
  room.oldest = 91
  expect([5, 89, 90, 99, 100].map(cursor => tails.covers(room, cursor))).toEqual([false, false, true, true, true])
  room.oldest = 101
  expect(tails.covers(room, 100)).toBe(true)
  room.oldest = 102
  expect(tails.covers(room, 100)).toBe(false)
})

test('what just came is handed out to those who follow, however short the history; a moment later it is not', () => {
  const { room, tails, next, clock } = setUp()
  tails.append(room, messages(1, 20))
  tails.seal(room)
  tails.append(room, messages(21, 30))
  room.oldest = 26
  tails.sweep(room)
  expect(next(0)?.length).toBe(20)
  expect(next(20)?.length).toBe(10)
  clock.ms += 1_000
  tails.sweep(room)
  expect(next(0)).toBeUndefined()
  expect(next(24)).toBeUndefined()
  expect(next(25)).toEqual([26, 27, 28, 29, 30])
  expect(room.segments).toMatchObject([{ first: 21 }])
  tails.append(room, messages(31, 31))
  room.oldest = 31
  clock.ms += 1_000
  tails.sweep(room)
  expect(room.segments).toMatchObject([{ first: 31 }])
  expect(next(30)).toEqual([31])
})

test('what is past its age goes without a word of the journal, pages as well', () => {
  const { room, tails, clock } = setUp()
  room.reached = 50
  tails.append(room, messages(51, 52))
  tails.seal(room)
  tails.addPage(room, messages(11, 15))
  clock.ms += 20_000
  tails.append(room, messages(53, 53))
  tails.seal(room)
  tails.sweep(room)
  expect([10, 50, 52].map(cursor => tails.covers(room, cursor))).toEqual([true, true, true])
  clock.ms += 10_001
  tails.append(room, messages(54, 54))
  tails.sweep(room)
  expect([10, 50, 52].map(cursor => tails.covers(room, cursor))).toEqual([false, false, true])
  tails.seal(room)
  clock.ms += 30_001
  tails.sweep(room)
  expect(tails.bytes()).toBe(0)
  expect(tails.covers(room, 54)).toBe(true)
})
