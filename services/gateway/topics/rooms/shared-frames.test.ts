import { createMessageHeads } from '@keycast/protocol'
import { readFrames } from '../../test-support.ts'
import { encodeMessages, framesAfter } from './shared-frames.ts'

const headOf = createMessageHeads('room:1')

const message = (seq: number, data: string) => ({
  seq,
  at: 5,
  from: 'ä',
  messageId: undefined,
  data: Buffer.from(data),
})

test('messages of any length become frames one after the other', () => {
  const texts = ['1', 'x'.repeat(200), 'y'.repeat(70_000), '"ä"'].map(text => JSON.stringify(text))
  const encoded = encodeMessages(
    headOf,
    texts.map((text, index) => message(index + 4, text)),
  )
  const frames = readFrames(encoded.frames)
  expect(frames.map(({ seq }) => seq)).toEqual([4, 5, 6, 7])
  expect(frames.map(({ data }) => JSON.stringify(data))).toEqual(texts)
})

test('sessions that stand where it begins are given one Buffer, others what follows their cursor', () => {
  const encoded = encodeMessages(
    headOf,
    [1, 2, 3].map(seq => message(seq, '0')),
  )
  const segment = { first: 1, ...encoded }
  expect(framesAfter(segment, 0)).toBe(segment.frames)
  expect(readFrames(framesAfter(segment, 1)).map(({ seq }) => seq)).toEqual([2, 3])
  expect(readFrames(framesAfter(segment, 2)).map(({ seq }) => seq)).toEqual([3])
})
