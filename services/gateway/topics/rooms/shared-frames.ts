// Encodes messages that follow each other as one Buffer of frames, once for all sessions that are sent them.
// tails.ts holds them.
import type { Message } from '@keycast/backbone'
import { MESSAGE_TAIL } from '@keycast/protocol'
import { headerBytes, TEXT, writeHeader } from '../../transport/frames.ts'
import type { Segment } from './room.ts'

export type Encoded = Segment & { frames: Buffer }

export function encodeMessages(
  headOf: (message: Message) => string,
  messages: Message[],
): Pick<Encoded, 'frames' | 'ends'> {
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
  return { frames, ends }
}

function payloadBytes(head: string, { data }: Message) {
  return Buffer.byteLength(head) + data.length + MESSAGE_TAIL.length
}

/** The frames of a segment that follow a seq within it, or before its first. */
export function framesAfter({ first, frames, ends }: Pick<Encoded, 'first' | 'frames' | 'ends'>, cursor: number) {
  // Most sessions stand where the segment begins: they share this one Buffer.
  return cursor + 1 === first ? frames : frames.subarray(ends[cursor - first])
}
