// The messages of a session as server-sent events (HTML, section 9.2): one `data:` line each. The encodings make frames
// for WebSockets, once for all sessions; of the large ones streams are written the same memory, so that a thousand streams
// that do not read hold it once.
import { TEXT } from './frames.ts'
import type { Piece } from './transport.ts'

/** A comment: no event to the client, and bytes to all on the way. */
export const comment = Buffer.from(':\n\n')

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32

/** Enough of a frame's message for {@link IdAfter}: the longest key, and what stands before and after it. */
const START_BYTES = 512

/** A longer part of a message is not copied, but where it has line ends. */
const COPY_BYTES_MAX = 4 * 1_024

const END = Buffer.from('\n\n')

/** The event's id where a message has moved the stream's position. @param start of the message, or all of it */
export type IdAfter = (start: string) => string | undefined

/** About so many bytes are made at a time: with its id an event may be many times as long as its message. */
const WRITE_BYTES = 64 * 1_024

/**
 * @param pieces as a session is written them: texts, whole frames, and frames in parts that follow each other
 * @returns to be written in this order: some whole events at a time, made when they are asked for
 */
export function* eventsOf(pieces: readonly Piece[], idAfter: IdAfter): Generator<Buffer[], undefined> {
  let parts: Buffer[] = []
  let bytes = 0
  for (const event of eachOf(pieces, idAfter)) {
    for (const part of event) {
      parts.push(part)
      bytes += part.length
    }
    if (bytes < WRITE_BYTES) continue
    yield together(parts)
    parts = []
    bytes = 0
  }
  yield together(parts)
}

function* eachOf(pieces: readonly Piece[], idAfter: IdAfter): Iterable<Buffer[]> {
  const eventOf = (payload: Buffer[], start: string) => {
    const id = idAfter(start)
    return [Buffer.from(id === undefined ? 'data: ' : `id: ${id}\ndata: `), ...payload.map(lineOf), END]
  }
  for (let index = 0; index < pieces.length; index++) {
    const piece = pieces[index]
    if (piece === comment) yield [piece]
    else if (typeof piece === 'string') yield eventOf([Buffer.from(piece)], piece)
    else {
      // Text frames, as frames.ts makes them: whole ones, and ones whose rest is the next piece, or its beginning.
      for (let at = 0; at < pieces[index].length; ) {
        const frames = pieces[index] as Buffer
        const { start, end } = payloadAt(frames, at)
        const payload = [frames.subarray(start, end)]
        const rest = end - frames.length
        if (rest > 0) payload.push(pieces[++index] as Buffer)
        yield eventOf(payload, startOf(payload))
        at = rest > 0 ? rest : end
      }
    }
  }
}

/** As far as a frame's position in a room is written: other messages that move one are texts, and read whole. */
function startOf(payload: Buffer[]) {
  const start = Buffer.concat(payload.map(slice => slice.subarray(0, START_BYTES)))
  return start.toString('utf8', 0, START_BYTES)
}

/** Memory of a stream's own that a piece takes while it is not sent. */
export function copiedBytes(piece: Piece) {
  if (typeof piece === 'string') return Buffer.byteLength(piece)
  // JSON does not begin with this byte: the piece is the rest of a frame. Of many frames in one piece some are copied.
  const isOfOne = piece[0] !== TEXT || payloadAt(piece, 0).end === piece.length
  return isOfOne && piece.length > COPY_BYTES_MAX ? 0 : piece.length
}

/** An event of another type than a message: only the transport itself sends them. */
export const namedEvent = (name: string, data: object) =>
  Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

/** Where the payload of a frame begins and ends; the end may lie in the next piece. */
function payloadAt(frames: Buffer, at: number) {
  if (frames[at] !== TEXT) throw new TypeError(`an event stream carries text alone, no frame ${frames[at]}`)
  const bytes = frames[at + 1]
  if (bytes < 126) return { start: at + 2, end: at + 2 + bytes }
  if (bytes === 126) return { start: at + 4, end: at + 4 + frames.readUInt16BE(at + 2) }
  return { start: at + 10, end: at + 10 + Number(frames.readBigUInt64BE(at + 2)) }
}

/** By their memory, the large texts whose line ends are blanked: one copy for all streams that hold it. */
const blanked = new WeakMap<ArrayBufferLike, { at: number; line: WeakRef<Buffer> }>()

/**
 * A backend's JSON comes as it was written: between its tokens a line may end, and JSON takes a space as well.
 */
function lineOf(text: Buffer): Buffer {
  if (!text.includes(LINE_FEED) && !text.includes(CARRIAGE_RETURN)) return text
  const known = blanked.get(text.buffer)
  const shared = known?.at === text.byteOffset ? known.line.deref() : undefined
  if (shared) return shared
  const line = Buffer.from(text)
  blank(line, LINE_FEED)
  blank(line, CARRIAGE_RETURN)
  if (text.length > COPY_BYTES_MAX) blanked.set(text.buffer, { at: text.byteOffset, line: new WeakRef(line) })
  return line
}

function blank(line: Buffer, byte: number) {
  for (let at = line.indexOf(byte); at >= 0; at = line.indexOf(byte, at + 1)) line[at] = SPACE
}

/** Copies small parts together: each entry of a gathered write costs more. */
function together(parts: Buffer[]): Buffer[] {
  const joined: Buffer[] = []
  let small: Buffer[] = []
  const endSmall = () => {
    if (small.length > 0) joined.push(Buffer.concat(small))
    small = []
  }
  for (const part of parts) {
    if (part.length <= COPY_BYTES_MAX) {
      small.push(part)
      continue
    }
    endSmall()
    joined.push(part)
  }
  endSmall()
  return joined
}
