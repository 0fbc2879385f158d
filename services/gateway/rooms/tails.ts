// The newest messages of each room, for sessions that are at its head or a little behind. All rooms share one bound: the
// oldest segments go first, and sessions that still want them have the journal asked.
import type { Message } from '@keycast/backbone'
import { NONE, type Room, type Segment } from './room.ts'
import { encodeSegment, segmentBytes } from './shared-frames.ts'

export type Tails = ReturnType<typeof createTails>

/** Messages are encoded at the latest when so many bytes of them have come: a segment is written whole. */
const FRESH_BYTES_MAX = 64 * 1024

/** The cost of a message beside its data, before it is encoded. */
const MESSAGE_BYTES = 128

/** Places in the order of segments that may stand for dropped ones before it is made anew. */
const SPARE_PLACES = 64

interface Deps {
  /** Of all rooms together. */
  bytesMax: number
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createTails({ bytesMax, now }: Deps) {
  /** Every segment, in the order made, from `oldest` on; those dropped meanwhile stay until they come up. */
  let order: { room: Room; segment: Segment }[] = []
  let oldest = 0
  const held = new Set<Segment>()
  let bytes = 0

  function hold(room: Room, segment: Segment) {
    order.push({ room, segment })
    held.add(segment)
    bytes += segmentBytes(segment)
    // Spares this segment: a session waits for it.
    while (bytes > bytesMax && oldest < order.length - 1) dropOldest()
    // Runs even if nothing is dropped for its size: rooms come and go.
    if (order.length <= 2 * held.size + SPARE_PLACES) return
    order = order.slice(oldest).filter(each => held.has(each.segment))
    oldest = 0
  }

  function dropOldest() {
    const { room, segment } = order[oldest++]
    if (!held.has(segment)) return
    release(segment)
    if (room.segments[0] === segment) room.segments.shift()
    else room.pages = room.pages.filter(each => each !== segment)
  }

  function release(segment: Segment) {
    held.delete(segment)
    bytes -= segmentBytes(segment)
    segment.frames = Buffer.alloc(0) // `order` may list it for long
  }

  /** Takes the messages that follow the last one. */
  function append(room: Room, messages: Message[]) {
    if (room.fresh.length === 0) {
      room.fresh = []
      room.freshAtMs = now()
    }
    for (const message of messages) {
      room.fresh.push(message)
      room.freshBytes += message.data.length + MESSAGE_BYTES
      if (room.freshBytes >= FRESH_BYTES_MAX) seal(room)
    }
    room.reached = messages[messages.length - 1].seq
  }

  /** Encodes the messages that came. Done only when a session wants them, so that one segment has all of a turn. */
  function seal(room: Room) {
    if (room.fresh.length === 0) return
    const segment = encodeSegment(room.headOf, room.fresh, room.freshAtMs)
    room.fresh = []
    room.freshBytes = 0
    room.segments.push(segment)
    hold(room, segment)
  }

  /**
   * The segment with the message after the cursor.
   *
   * @param cursor below where the room has come
   * @returns `undefined` if the tail no longer has it
   */
  function following(room: Room, cursor: number): Segment | undefined {
    const { segments, fresh } = room
    if (fresh.length > 0 && fresh[0].seq <= cursor + 1) {
      seal(room)
      return segments[segments.length - 1]
    }
    const newest = segments[segments.length - 1]
    if (newest === undefined || cursor + 1 < segments[0].first) {
      return room.pages.find(({ first, last }) => first <= cursor + 1 && cursor < last)
    }
    return newest.first <= cursor + 1 ? newest : segments[indexOf(segments, cursor + 1)]
  }

  function covers(room: Room, cursor: number) {
    return cursor === room.reached || following(room, cursor) !== undefined
  }

  /** Keeps messages read from the journal for those that are behind the tail. */
  function addPage(room: Room, messages: Message[]) {
    let from = 0
    let pageBytes = 0
    for (let index = 0; index < messages.length; index++) {
      pageBytes += messages[index].data.length + MESSAGE_BYTES
      if (pageBytes < FRESH_BYTES_MAX && index < messages.length - 1) continue
      const segment = encodeSegment(room.headOf, messages.slice(from, index + 1), now())
      room.pages = [...room.pages, segment]
      hold(room, segment)
      from = index + 1
      pageBytes = 0
    }
  }

  /** Drops a room's tail: nobody may be sent its messages any more. */
  function forget(room: Room) {
    for (const segment of [...room.segments, ...room.pages]) if (held.has(segment)) release(segment)
    room.segments = []
    room.pages = NONE
    room.fresh = NONE
    room.freshBytes = 0
  }

  /** A room's tail, for an operator. */
  function describe(room: Room) {
    seal(room)
    const { segments, pages } = room
    return {
      messages: segments.reduce((count, { ends }) => count + ends.length, 0),
      bytes: [...segments, ...pages].reduce((sum, segment) => sum + segmentBytes(segment), 0),
    }
  }

  return { append, seal, following, covers, addPage, forget, describe, bytes: () => bytes }
}

/** The segment that holds a seq, among segments without a hole. */
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
