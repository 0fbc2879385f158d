// The rooms that some gateway watches: their links, their positions and their newest messages. Messages that all
// gateways need soon are read from here; only links that are behind cost a read of the log.
import type { Message } from '@keycast/backbone'
import type { Position } from '@keycast/protocol'
import { createFifo } from '@keycast/service'
import { readBytesOf } from './log/log.ts'

/**
 * `head`: the highest seq known in the epoch, 0 until one is. `oldest`: the first message that the log holds. `tail`
 * holds the newest messages from `start` on, without a hole. All are of `epoch`: a log that failed over gives numbers
 * again, and a link of another epoch must not be sent these.
 */
interface Room {
  links: Set<string>
  epoch: string
  head: number
  oldest: number
  tail: Message[]
  start: number
}

/** A message that stands in a room's tail, or did. */
interface Tailed {
  room: Room
  seq: number
  bytes: number
}

/** Bytes for the tails of all rooms: some seconds of a busy journal. */
const TAILS_BYTES_MAX = 32 * 2 ** 20

/** The cost of a message beside its data. */
const MESSAGE_BYTES = 128

interface Options {
  tailsBytesMax?: number
  /** A link is to be sent news of the room. */
  tell: (link: string, room: string) => void
  /** Is told of rooms that a link starts to watch. */
  log: { watch: (room: string) => void; unwatch: (room: string) => void }
}

export type WatchedRooms = ReturnType<typeof createWatchedRooms>

export function createWatchedRooms({ tailsBytesMax = TAILS_BYTES_MAX, tell, log }: Options) {
  const rooms = new Map<string, Room>()
  /** Every message in a tail, oldest first. */
  const order = createFifo<Tailed>()
  let bytes = 0

  function shrink() {
    while (bytes > tailsBytesMax) {
      const { room, seq, bytes: weight } = order.take() as Tailed
      bytes -= weight
      if (room.tail[room.start]?.seq === seq) forgetFirst(room)
    }
  }

  function forgetFirst(room: Room) {
    room.start++
    if (room.start * 2 <= room.tail.length) return
    room.tail = room.tail.slice(room.start)
    room.start = 0
  }

  function forgetTail(room: Room) {
    room.tail = []
    room.start = 0
  }

  function beginEpoch(room: Room, epoch: string) {
    if (room.epoch === epoch) return
    forgetTail(room)
    room.epoch = epoch
    room.head = 0
    room.oldest = 1
  }

  function advance(key: string, room: Room, seq: number, oldest: number) {
    room.head = Math.max(room.head, seq)
    room.oldest = Math.max(room.oldest, oldest)
    for (const link of room.links) tell(link, key)
  }

  /**
   * Notes that the room has come to this position, and holds messages from `oldest` on; the links that watch it are told
   * if it is news.
   *
   * @param head a hint has no `oldest`
   */
  function raise(key: string, { epoch, seq, oldest = 1 }: Position & { oldest?: number }) {
    const room = rooms.get(key)
    if (!room || (room.epoch === epoch && room.head >= seq && room.oldest >= oldest)) return
    beginEpoch(room, epoch)
    advance(key, room, seq, oldest)
  }

  return {
    get: (key: string) => rooms.get(key),

    watch(key: string, link: string) {
      const room = rooms.get(key) ?? { links: new Set(), epoch: '', head: 0, oldest: 1, tail: [], start: 0 }
      if (room.links.size === 0) log.watch(key)
      rooms.set(key, room)
      room.links.add(link)
    },

    unwatch(key: string, link: string) {
      const room = rooms.get(key)
      if (!room) return
      room.links.delete(link)
      if (room.links.size > 0) return
      forgetTail(room)
      rooms.delete(key)
      log.unwatch(key)
    },

    raise,

    /** Drops copies of messages: some of them were deleted. */
    forget(key: string) {
      const room = rooms.get(key)
      if (room) forgetTail(room)
    },

    /** Notes that the log has removed messages that were held for their time, and holds them from `oldest` on. */
    expire(key: string, head: Position & { oldest: number }) {
      const room = rooms.get(key)
      if (room?.epoch === head.epoch) {
        const isPast = (message: Message | undefined) => message !== undefined && message.seq < head.oldest
        while (isPast(room.tail[room.start])) forgetFirst(room)
      }
      raise(key, head)
    },

    /** Notes a new message. */
    keep(key: string, epoch: string, message: Message, oldest: number) {
      const room = rooms.get(key)
      if (!room) return
      beginEpoch(room, epoch)
      if (room.tail.at(-1)?.seq !== message.seq - 1) forgetTail(room)
      // A copy: the data is a slice of a request, which would stay for as long as one of its messages does.
      room.tail.push({ ...message, data: Buffer.from(message.data) })
      const weight = MESSAGE_BYTES + readBytesOf(message)
      order.add({ room, seq: message.seq, bytes: weight })
      bytes += weight
      shrink()
      advance(key, room, message.seq, oldest)
    },

    /**
     * The messages that follow a seq of the room's epoch, some `bytesMax` of them, one at least.
     *
     * @returns `undefined` if they are not in the tail
     */
    following({ tail, start }: Room, after: number, bytesMax: number): Message[] | undefined {
      const first = tail[start]?.seq
      if (first === undefined || after + 1 < first || after >= tail[tail.length - 1].seq) return undefined
      let end = start + after + 1 - first
      const begin = end
      for (let left = bytesMax; end < tail.length && left > 0; end++) left -= MESSAGE_BYTES + readBytesOf(tail[end])
      return tail.slice(begin, end)
    },

    keys: () => [...rooms.keys()],
    stats: () => ({ rooms: rooms.size, tailBytes: bytes }),
  }
}
