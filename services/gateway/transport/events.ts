// The messages of a session as server-sent events (HTML, section 9.2): one `data:` line each. The encodings make frames
// for WebSockets, once for all sessions; here each session's stream gets its copy, so that no hot path knows of streams.
import { TEXT } from './frames.ts'
import type { Piece } from './transport.ts'

/** A comment: no event to the client, and bytes to all on the way. */
export const comment = Buffer.from(':\n\n')

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32

/** Enough of a frame's message for {@link IdAfter}: the longest key, and what stands before and after it. */
const START_BYTES = 512

/** The event's id where a message has moved the stream's position. @param start of the message, or all of it */
export type IdAfter = (start: string) => string | undefined

/** @param pieces as a session is written them: texts, whole frames, and frames in parts that follow each other */
export function eventsOf(pieces: Piece[], idAfter: IdAfter): Buffer {
  const events: Buffer[] = []
  let frames: Buffer[] = []
  const endFrames = () => {
    for (const payload of payloadsOf(frames.length === 1 ? frames[0] : Buffer.concat(frames))) {
      events.push(event(payload, idAfter(payload.toString('utf8', 0, START_BYTES))))
    }
    frames = []
  }
  for (const piece of pieces) {
    if (typeof piece !== 'string' && piece !== comment) {
      frames.push(piece)
      continue
    }
    endFrames()
    events.push(typeof piece === 'string' ? event(Buffer.from(piece), idAfter(piece)) : piece)
  }
  endFrames()
  return events.length === 1 ? events[0] : Buffer.concat(events)
}

/** An event of another type than a message: only the transport itself sends them. */
export const namedEvent = (name: string, data: object) =>
  Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

/** @param frames whole text frames, as frames.ts makes them */
function* payloadsOf(frames: Buffer) {
  for (let at = 0; at < frames.length; ) {
    if (frames[at] !== TEXT) throw new TypeError(`an event stream carries text alone, no frame ${frames[at]}`)
    let bytes = frames[at + 1]
    at += 2
    if (bytes === 126) {
      bytes = frames.readUInt16BE(at)
      at += 2
    } else if (bytes === 127) {
      bytes = Number(frames.readBigUInt64BE(at))
      at += 8
    }
    yield frames.subarray(at, at + bytes)
    at += bytes
  }
}

function event(payload: Buffer, id: string | undefined) {
  const head = id === undefined ? 'data: ' : `id: ${id}\ndata: `
  const target = Buffer.allocUnsafe(head.length + payload.length + 2)
  target.write(head, 'latin1')
  target.set(payload, head.length)
  // A backend's JSON comes as it was written: between its tokens a line may end, and JSON takes a space as well.
  blank(target, LINE_FEED, head.length)
  blank(target, CARRIAGE_RETURN, head.length)
  target.fill(LINE_FEED, head.length + payload.length)
  return target
}

function blank(target: Buffer, byte: number, from: number) {
  const end = target.length - 2
  for (let at = target.indexOf(byte, from); at >= 0 && at < end; at = target.indexOf(byte, at + 1)) target[at] = SPACE
}
