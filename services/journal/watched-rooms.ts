// The rooms that some gateway watches: their links, their positions and their newest messages. Messages that all
// gateways need soon are read from here; only links that are behind cost a read of the log.

/**
 * @typedef {import('@keycast/backbone').Message} Message
 *
 * `head`: the highest seq known in the epoch, 0 until one is. `tail` holds the newest messages from `start` on, without a
 * hole. Both are of `epoch`: a log that failed over gives numbers again, and a link of another epoch must not be sent these.
 * @typedef {{ links: Set<string>, epoch: string, head: number, tail: Message[], start: number }} Room
 */

/** Bytes for the tails of all rooms: some seconds of a busy journal. */
export const TAILS_BYTES_MAX = 32 * 2 ** 20

/** The cost of a message beside its data. */
const MESSAGE_BYTES = 128

/**
 * @param {object} [options]
 * @param {number} [options.tailsBytesMax]
 * @param {Pick<import('./log/log.ts').News, 'watch' | 'unwatch'>} [options.news] is told of rooms that a link starts to
 *   watch
 */
export function createWatchedRooms({ tailsBytesMax = TAILS_BYTES_MAX, news } = {}) {
  /** @type {Map<string, Room>} */
  const rooms = new Map()
  /** Every message in a tail, oldest first, from `nextOut` on. @type {{ room: Room, seq: number, bytes: number }[]} */
  let order = []
  let nextOut = 0
  let bytes = 0

  function shrink() {
    while (bytes > tailsBytesMax) {
      const { room, seq, bytes: weight } = order[nextOut++]
      bytes -= weight
      if (room.tail[room.start]?.seq === seq) forgetFirst(room)
    }
    if (nextOut * 2 <= order.length) return
    order = order.slice(nextOut)
    nextOut = 0
  }

  /** @param {Room} room */
  function forgetFirst(room) {
    room.start++
    if (room.start * 2 <= room.tail.length) return
    room.tail = room.tail.slice(room.start)
    room.start = 0
  }

  /** @param {Room} room */
  function forgetTail(room) {
    room.tail = []
    room.start = 0
  }

  /** @param {Room} room @param {string} epoch */
  function beginEpoch(room, epoch) {
    if (room.epoch === epoch) return
    forgetTail(room)
    room.epoch = epoch
    room.head = 0
  }

  return {
    /** @param {string} key */
    get: key => rooms.get(key),

    /** @param {string} key @param {string} link */
    watch(key, link) {
      const room = rooms.get(key) ?? { links: new Set(), epoch: '', head: 0, tail: [], start: 0 }
      if (room.links.size === 0) news?.watch(key)
      rooms.set(key, room)
      room.links.add(link)
    },

    /** @param {string} key @param {string} link */
    unwatch(key, link) {
      const room = rooms.get(key)
      if (!room) return
      room.links.delete(link)
      if (room.links.size > 0) return
      forgetTail(room)
      rooms.delete(key)
      news?.unwatch(key)
    },

    /**
     * Notes that the room has come to this position.
     *
     * @param {string} key @param {import('@keycast/backbone').Position} position
     * @returns {Iterable<string>} the links that watch the room, if the position is new
     */
    raise(key, { epoch, seq }) {
      const room = rooms.get(key)
      if (!room || (room.epoch === epoch && room.head >= seq)) return []
      beginEpoch(room, epoch)
      room.head = seq
      return room.links
    },

    /**
     * Notes a new message.
     *
     * @param {string} key @param {string} epoch @param {Message} message
     * @returns {Iterable<string>} the links that watch the room
     */
    keep(key, epoch, message) {
      const room = rooms.get(key)
      if (!room) return []
      beginEpoch(room, epoch)
      if (room.tail.at(-1)?.seq !== message.seq - 1) forgetTail(room)
      room.head = Math.max(room.head, message.seq)
      // A copy: the data is a slice of a request, which would stay for as long as one of its messages does.
      room.tail.push({ ...message, data: Buffer.from(message.data) })
      const weight = MESSAGE_BYTES + message.data.length
      order.push({ room, seq: message.seq, bytes: weight })
      bytes += weight
      shrink()
      return room.links
    },

    /**
     * The messages that follow a seq of the room's epoch, some `bytesMax` of them, one at least.
     *
     * @param {Room} room @param {number} after @param {number} bytesMax
     * @returns {Message[] | undefined} `undefined` if they are not in the tail
     */
    following({ tail, start }, after, bytesMax) {
      const first = tail[start]?.seq
      if (first === undefined || after + 1 < first || after >= tail[tail.length - 1].seq) return undefined
      let end = start + after + 1 - first
      const begin = end
      for (let left = bytesMax; end < tail.length && left > 0; end++) left -= MESSAGE_BYTES + tail[end].data.length
      return tail.slice(begin, end)
    },

    keys: () => [...rooms.keys()],
    stats: () => ({ rooms: rooms.size, tailBytes: bytes }),
  }
}
