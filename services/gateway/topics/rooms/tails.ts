// The newest messages of each room, for sessions that are at its head or a little behind. All rooms share one bound: the
// oldest segments go first, and sessions that still want them have the journal asked. Messages that the history
// of a room no longer has go as well.
import type { Message } from '@keycast/backbone'
import { createRecent } from '@keycast/service'
import { NONE, type Room, type Segment } from './room.ts'
import { type Encoded, encodeMessages } from './shared-frames.ts'

export type Tails = ReturnType<typeof createTails>

/** Messages are encoded at the latest when so many bytes of them have come: a segment is written whole. */
const FRESH_BYTES_MAX = 64 * 1024

/** The cost of a message beside its data, before it is encoded. */
const MESSAGE_BYTES = 256

/** The cost of a segment beside its messages: two objects of V8, the memory's own fixed part, a place in two lists. */
const SEGMENT_BYTES = 256

/** Messages are held for so long though the history has no place for them: those who follow were not sent them yet. */
const PASSING_MS = 1_000

interface Deps {
  /** Of all rooms together. */
  bytesMax: number
  now: () => number
}

export function createTails({ bytesMax, now }: Deps) {
  /** In the order made. */
  const held = createRecent<Segment, Room>()
  let bytes = 0

  function hold(room: Room, messages: Message[]): Segment {
    const [{ seq }] = messages
    const segment = {
      first: seq,
      last: seq + messages.length - 1,
      messages,
      frames: undefined,
      ends: [],
      bytes: 0,
      receivedAtMs: now(),
    }
    held.set(segment, room)
    grow(segment, SEGMENT_BYTES + messages.reduce((sum, message) => sum + bytesOf(message), 0))
    return segment
  }

  function grow(segment: Segment, more: number) {
    segment.bytes += more
    bytes += more
    // Spares the newest segment: a session waits for it.
    while (bytes > bytesMax && held.size > 1) {
      const oldest = held.oldest() as { key: Segment; value: Room }
      drop(oldest.value, oldest.key)
    }
  }

  function drop(room: Room, segment: Segment) {
    release(segment)
    if (room.segments[0] === segment) room.segments.shift()
    else room.pages = room.pages.filter(each => each !== segment)
  }

  function release(segment: Segment) {
    held.delete(segment)
    bytes -= segment.bytes
  }

  /** The segment that messages are added to: one that nobody was sent yet. */
  function openOf({ segments }: Room) {
    const newest = segments[segments.length - 1]
    return newest?.frames === undefined ? newest : undefined
  }

  /** Takes the messages that follow the last one. */
  function append(room: Room, messages: Message[]) {
    for (const message of messages) {
      const open = openOf(room)
      if (open) {
        open.messages.push(message)
        open.last = message.seq
        grow(open, bytesOf(message))
      } else {
        room.segments.push(hold(room, [message]))
      }
      if ((openOf(room)?.bytes ?? 0) >= FRESH_BYTES_MAX) seal(room)
    }
    room.reached = messages[messages.length - 1].seq
  }

  /** Encodes the messages that came. Done only when a session wants them, so that one segment has all of a turn. */
  function seal(room: Room) {
    const open = openOf(room)
    if (open) encode(room, open)
  }

  function encode(room: Room, segment: Segment): Encoded {
    if (segment.frames === undefined) {
      const { frames, ends } = encodeMessages(room.headOf, segment.messages)
      segment.frames = frames
      segment.ends = ends
      segment.messages = NONE
      const encodedBytes = SEGMENT_BYTES + frames.length + ends.length * 8
      bytes += encodedBytes - segment.bytes
      segment.bytes = encodedBytes
    }
    return segment as Encoded
  }

  /**
   * The segment with the message after the cursor.
   *
   * @param cursor below where the room has come
   * @returns `undefined` if the tail no longer has it
   */
  function following(room: Room, cursor: number): Encoded | undefined {
    const { segments, pages, floor } = room
    if (cursor + 1 < floor) return undefined
    const newest = segments[segments.length - 1]
    let found: Segment | undefined
    if (newest === undefined || cursor + 1 < segments[0].first) {
      found = pages.find(({ first, last }) => first <= cursor + 1 && cursor < last)
    } else {
      found = newest.first <= cursor + 1 ? newest : segments[indexOf(segments, cursor + 1)]
    }
    return found && encode(room, found)
  }

  /** Whether a stream may begin after the cursor, and needs nothing of the journal. */
  function covers(room: Room, cursor: number) {
    // A room that is trimmed faster than it comes here has not even what follows the last message that came.
    return cursor + 1 >= room.oldest && (cursor === room.reached || following(room, cursor) !== undefined)
  }

  /** Keeps messages read from the journal for those that are behind the tail. */
  function addPage(room: Room, messages: Message[]) {
    let from = 0
    let pageBytes = 0
    for (let index = 0; index < messages.length; index++) {
      pageBytes += bytesOf(messages[index])
      if (pageBytes < FRESH_BYTES_MAX && index < messages.length - 1) continue
      const page = hold(room, messages.slice(from, index + 1))
      room.pages = [...room.pages, page]
      encode(room, page)
      from = index + 1
      pageBytes = 0
    }
  }

  /** Drops a room's tail: nobody may be sent its messages any more. */
  function forget(room: Room) {
    for (const segment of [...room.segments, ...room.pages]) if (held.has(segment)) release(segment)
    room.segments = []
    room.pages = NONE
    room.lastRead = undefined
  }

  /**
   * Drops what the room's history has no more, as the journal has said; and what is too old, in case the journal is away.
   * To be called about once a second. Looks no further than the first segment that stays: there may be 100,000.
   */
  function sweep(room: Room) {
    while (room.segments.length > 0 && isPast(room, room.segments[0])) drop(room, room.segments[0])
    for (const page of room.pages) if (isPast(room, page)) drop(room, page)
  }

  function isPast(room: Room, { last, receivedAtMs }: Segment) {
    const heldMs = now() - receivedAtMs
    if (heldMs < PASSING_MS) return false
    room.floor = Math.max(room.floor, Math.min(room.oldest, last + 1))
    return last < room.floor || heldMs > room.namespace.history.ageMs
  }

  /** A room's tail, for an operator. */
  function describe({ segments, pages }: Room) {
    return {
      messages: segments.reduce((count, { first, last }) => count + last - first + 1, 0),
      bytes: [...segments, ...pages].reduce((sum, segment) => sum + segment.bytes, 0),
    }
  }

  return { append, seal, following, covers, addPage, forget, sweep, describe, bytes: () => bytes }
}

const bytesOf = ({ data }: Message) => data.length + MESSAGE_BYTES

/** The index of the segment that holds a seq, among segments without a hole. */
function indexOf(segments: Segment[], seq: number) {
  let low = 0
  let high = segments.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (segments[middle].last < seq) low = middle + 1
    else high = middle
  }
  return low
}
