import * as ws from 'ws'
import { binaryFrameStart, headerBytes, pingFrame, pongFrame, textFrame, textFrameStart } from './frames.ts'

/** Not in the published types, and not used outside tests. */
const { Sender } = ws as any

/** As ws frames a message. */
const byWs = (payload: Buffer, opcode = 1) =>
  Buffer.concat(Sender.frame(payload, { fin: true, opcode, mask: false, readOnly: true, rsv1: false }))

test.each([0, 1, 125, 126, 127, 65_535, 65_536, 200_000])('a frame of %i bytes is the one ws would send', bytes => {
  const text = 'x'.repeat(bytes)
  expect(textFrame(text).frame.equals(byWs(Buffer.from(text)))).toBe(true)
  expect(headerBytes(bytes)).toBe(byWs(Buffer.from(text)).length - bytes)
})

test.each([0, 100, 65_535, 200_000])('a binary frame of %i bytes and a head is the one ws would send', bytes => {
  const rest = Buffer.alloc(bytes, 0xff)
  const frame = Buffer.concat([binaryFrameStart('head', bytes), rest])
  expect(frame.equals(byWs(Buffer.concat([Buffer.from('head'), rest]), 2))).toBe(true)
})

test('head, body and tail make one message, and the offset is that of the body', () => {
  const body = Buffer.from('"ü"')
  const { frame, bodyOffset } = textFrame('{"é":', body, '}')
  expect(frame.equals(byWs(Buffer.from('{"é":"ü"}')))).toBe(true)
  expect(frame.subarray(bodyOffset).toString()).toBe('"ü"}')
})

test('a start and its rest make one message', () => {
  const rest = Buffer.from('x'.repeat(70_000))
  expect(Buffer.concat([textFrameStart('{"ü":', rest.length), rest]).equals(byWs(Buffer.from(`{"ü":${rest}`)))).toBe(
    true,
  )
})

test('pings and pongs are the ones ws would send', () => {
  expect(pingFrame).toEqual(byWs(Buffer.alloc(0), 9))
  expect(pongFrame(Buffer.from('abc'))).toEqual(byWs(Buffer.from('abc'), 10))
  expect(() => pongFrame(Buffer.alloc(126))).toThrow(RangeError)
})

test('frames kept for many sessions own their memory, for a slice of a pool would keep all of it', () => {
  expect(textFrame('{}').frame.buffer.byteLength).toBe(4)
})
