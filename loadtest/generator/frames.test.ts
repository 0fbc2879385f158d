import { once } from 'node:events'
import * as ws from 'ws'
import { createFrameReader, encodeFrame, FrameError, opcodes } from './frames.ts'

const { Receiver, Sender } = ws as any // missing in the types of ws

const setup = (options: Partial<Parameters<typeof createFrameReader>[0]> = {}) => {
  const messages: { head: string; bytes: number; opcode: number; whole: string | undefined }[] = []
  const controls: { opcode: number; payload: string }[] = []
  const reader = createFrameReader({
    headBytesMax: 16,
    onMessage: (head, bytes, opcode, whole) => messages.push({ head, bytes, opcode, whole: whole?.toString() }),
    onControl: (opcode, payload) => controls.push({ opcode, payload: payload.toString() }),
    ...options,
  })
  return { reader, messages, controls }
}

/** A server's frames, as ws writes them. */
const frame = (text: string, { fin = true, opcode = 1, rsv1 = false, mask = false } = {}) =>
  Buffer.concat(Sender.frame(Buffer.from(text), { fin, opcode, rsv1, mask, readOnly: false }))

/** Every length at which the header changes its form. */
const LENGTHS = [0, 1, 125, 126, 127, 65_535, 65_536, 130_000]

test.each(LENGTHS)('a message of %i bytes is read with its beginning and its length', length => {
  const { reader, messages } = setup()
  const text = 'abcdefghij'.repeat(length / 10 + 1).slice(0, length)
  const bytes = frame(text)

  reader.read(bytes, 0, bytes.length)

  expect(messages).toEqual([{ head: text.slice(0, 16), bytes: length, opcode: opcodes.text, whole: undefined }])
})

test('frames cut at every place are read alike', () => {
  const stream = Buffer.concat([
    frame('first message of some length'),
    frame('', { opcode: 9 }),
    frame('x'.repeat(300)),
    frame('in ', { fin: false }),
    frame('hi', { opcode: 10 }),
    frame('pieces', { opcode: 0 }),
    frame('last'),
  ])
  const whole = setup()
  whole.reader.read(stream, 0, stream.length)
  expect(whole.messages.map(({ head, bytes }) => [head, bytes])).toEqual([
    ['first message of', 28],
    ['x'.repeat(16), 300],
    ['in pieces', 9],
    ['last', 4],
  ])
  expect(whole.controls).toEqual([
    { opcode: opcodes.ping, payload: '' },
    { opcode: opcodes.pong, payload: 'hi' },
  ])

  for (const size of [1, 2, 3, 7, 64]) {
    const cut = setup()
    // One buffer for all pieces, as the generator reads: what is kept must have been copied.
    const piece = Buffer.alloc(size)
    for (let at = 0; at < stream.length; at += size) {
      cut.reader.read(piece, 0, stream.copy(piece, 0, at, Math.min(stream.length, at + size)))
    }
    expect([cut.messages, cut.controls]).toEqual([whole.messages, whole.controls])
  }
})

test('only the messages asked for are kept whole', () => {
  const answers = [true, false]
  const { reader, messages } = setup({ wantsWhole: () => answers.shift() ?? false })
  const stream = Buffer.concat([frame('{"kept":1}'.padEnd(40)), frame('not kept')])

  for (let at = 0; at < stream.length; at += 5) reader.read(stream, at, Math.min(stream.length, at + 5))

  expect(messages.map(({ whole }) => whole)).toEqual(['{"kept":1}'.padEnd(40), undefined])
})

test.each([
  ['masked', frame('x', { mask: true })],
  ['compressed though nobody agreed to it', frame('x', { rsv1: true })],
  ['a control frame in pieces', frame('x', { opcode: 9, fin: false })],
])('a server frame that is %s is refused', (_, bytes) => {
  expect(() => setup().reader.read(bytes, 0, bytes.length)).toThrow(FrameError)
})

test.each([0, 1, 125, 126, 65_535])('ws understands a request of %i bytes', async length => {
  const receiver = new Receiver({ isServer: true })
  const text = 'request '.repeat(length / 8 + 1).slice(0, length)

  const understood = once(receiver, 'message')
  receiver.write(encodeFrame(text))

  const [data] = await understood
  expect(data.toString()).toBe(text)
})

test('a request longer than a load test sends is refused', () => {
  expect(() => encodeFrame('x'.repeat(65_536))).toThrow('65536 bytes')
})

test('a text message that came whole is offered where it lies, and goes on to nobody where that was all', () => {
  const offered: string[] = []
  const { reader, messages } = setup({
    headBytesMax: 16,
    onWhole: (from: Buffer, at: number, end: number) => {
      offered.push(from.toString('latin1', at, end))
      return offered.length % 2 === 1
    },
  })
  const split = frame('split over two reads')
  const stream = Buffer.concat([
    ...[frame('taken'), frame('left'), frame('binary', { opcode: 2 }), frame('in ', { fin: false })],
    ...[frame('pieces', { opcode: 0 }), frame(''), split.subarray(0, 9)],
  ])
  reader.read(stream, 0, stream.length)
  reader.read(split.subarray(9), 0, split.length - 9)

  expect(offered).toEqual(['taken', 'left', ''])
  expect(messages.map(({ head }) => head)).toEqual(['left', 'binary', 'in pieces', 'split over two r'])
})
