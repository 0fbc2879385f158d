// Encodes messages that follow each other as one Buffer of frames, once for all sessions that are sent them.
// tails.ts holds them.
import type { Message } from '@keycast/backbone'
import { MESSAGE_TAIL } from '@keycast/protocol'
import { headerBytes, TEXT, writeHeader } from '../transport/frames.ts'
import type { Segment } from './room.ts'

/** The cost of a segment beside its frames: two objects of V8, the memory's own fixed part, a place in two lists. */
const SEGMENT_BYTES = 256

/** @param messages one at least */
export function encodeSegment(
  headOf: (message: Message) => string,
  messages: Message[],
  receivedAtMs: number,
): Segment {
  const heads: string[] = []
  const ends: number[] = []
  let bytes = 0
  for (const message of messages) {
    const head = headOf(message)
    const payload = payloadBytes(head, message)
    bytes += headerBytes(payload) + payload
    heads.push(head)
    ends.push(bytes)
  }
  // Not from Node's pool: a slice that is kept would keep the pool's 8 KB.
  const frames = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (let index = 0; index < messages.length; index++) {
    const { data } = messages[index]
    at = writeHeader(frames, at, TEXT, payloadBytes(heads[index], messages[index]))
    at += frames.write(heads[index], at)
    frames.set(data, at)
    at += data.length
    at += frames.write(MESSAGE_TAIL, at)
  }
  return { first: messages[0].seq, last: messages[messages.length - 1].seq, frames, ends, receivedAtMs }
}

function payloadBytes(head: string, { data }: Message) {
  return Buffer.byteLength(head) + data.length + MESSAGE_TAIL.length
}

/** The frames of a segment that follow a seq within it, or before its first. */
export function framesAfter({ first, frames, ends }: Segment, cursor: number) {
  // Most sessions stand where the segment begins: they share this one Buffer.
  return cursor + 1 === first ? frames : frames.subarray(ends[cursor - first])
}

/** The memory of a segment. */
export function segmentBytes({ frames, ends }: Segment) {
  return frames.length + ends.length * 8 + SEGMENT_BYTES
}
