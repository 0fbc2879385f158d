// A log that keeps nothing over a restart: for trying, for tests, and for rooms whose history is worth no disk.
import { createHash, randomBytes } from 'node:crypto'
import { bytesOf, ID_BYTES, ID_MS } from './log.ts'

/**
 * @typedef {import('./log.ts').Log} Log
 * @typedef {import('./log.ts').Message} Message
 * @typedef {import('./log.ts').Publish} Publish
 * @typedef {import('./log.ts').Range} Range
 *
 * `start`: the index of the oldest message that is kept. What was trimmed stays before it until it is half of the list,
 * so that trimming one message does not move all others.
 * @typedef {{ seq: number, messages: Message[], start: number, bytes: number, retention: import('./log.ts').Retention }} Room
 *
 * @typedef {{ seq: number, at: number, digest: string, elapsedAt: number }} KnownId
 */

/**
 * @param {object} options
 * @param {() => number} [options.now] milliseconds since 1970
 * @param {() => number} [options.elapsed] monotonic, in milliseconds: the age of ids, which no change of the clock ends
 * @param {number} options.bytesMax
 * @returns {Log}
 */
export function createMemoryLog({ now = Date.now, elapsed = () => performance.now(), bytesMax }) {
  const epoch = randomBytes(9).toString('base64url')
  /** @type {Map<string, Room>} */
  const rooms = new Map()
  /** An id lives with its message, and for five minutes at least. @type {Map<string, KnownId>} */
  const ids = new Map()
  /** Of messages that went before that, the first to go first. @type {Map<string, KnownId>} */
  const outliving = new Map()
  let bytes = 0

  /** @param {Publish} publish @param {number} at @returns {import('./log.ts').Outcome} */
  function keep({ room: name, messageId, from, data, retention }, at) {
    const id = idOf(name, { from, messageId })
    const digest = id === undefined ? '' : createHash('sha256').update(data).digest('base64url')
    const known = id === undefined ? undefined : ids.get(id)
    if (known) {
      if (known.digest !== digest) return { error: 'id_conflict' }
      return { position: { epoch, seq: known.seq }, at: known.at, duplicate: true }
    }
    const wanted = bytesOf({ data, from, messageId }) + (id === undefined ? 0 : ID_BYTES)
    if (bytesNow() + wanted > bytesMax) return { error: 'log_full' }
    const room = roomOf(name, retention)
    const message = { seq: room.seq + 1, at, from, messageId, data }
    room.seq++
    room.messages.push(message)
    add(room, bytesOf(message))
    if (id !== undefined) ids.set(id, { seq: message.seq, at, digest, elapsedAt: elapsed() })
    trim(name, room, at)
    return { position: { epoch, seq: message.seq }, at, duplicate: false }
  }

  /** @param {string} name @param {import('./log.ts').Retention} retention */
  function roomOf(name, retention) {
    const room = rooms.get(name) ?? { seq: 0, messages: [], start: 0, bytes: 0, retention }
    room.retention = retention
    rooms.set(name, room)
    return room
  }

  /** @param {Room} room @param {number} more */
  function add(room, more) {
    room.bytes += more
    bytes += more
  }

  /** @param {string} name @param {Room} room @param {number} at @returns {boolean} whether anything went */
  function trim(name, room, at) {
    const { messages, retention } = room
    const startBefore = room.start
    while (room.start < messages.length) {
      const oldest = messages[room.start]
      const left = messages.length - room.start
      // The newest stays whatever it weighs: it was acknowledged.
      const isTooMuch = left > 1 && (left > retention.messages || room.bytes > retention.bytes)
      const isPast = isTooMuch || at - oldest.at > retention.ageMs
      if (!isPast) break
      add(room, -bytesOf(oldest))
      forgetId(idOf(name, oldest))
      room.start++
    }
    const went = room.start > startBefore
    if (room.start * 2 > messages.length) {
      room.messages = messages.slice(room.start)
      room.start = 0
    }
    return went
  }

  /** The message is gone. @param {string | undefined} id */
  function forgetId(id) {
    const known = id === undefined ? undefined : ids.get(id)
    if (id === undefined || !known) return
    if (elapsed() - known.elapsedAt > ID_MS) ids.delete(id)
    else outliving.set(id, known)
  }

  /** @param {string} name @returns {import('./log.ts').Head} */
  function headOf(name) {
    const room = rooms.get(name)
    if (!room) return { epoch, seq: 0, oldest: 1, bytes: 0 }
    return { epoch, seq: room.seq, oldest: oldestOf(room), bytes: room.bytes }
  }

  const bytesNow = () => bytes + ids.size * ID_BYTES

  /** @param {Room} room */
  const oldestOf = room => room.seq - (room.messages.length - room.start) + 1

  return {
    id: () => epoch,

    async append(publishes) {
      const at = now()
      return publishes.map(publish => keep(publish, at))
    },

    head: async name => headOf(name),

    async read(name, range) {
      const head = headOf(name)
      const room = rooms.get(name)
      if (!room || (range.epoch !== undefined && range.epoch !== head.epoch)) return { head, messages: [] }
      const held = room.messages
      const at = (/** @type {number} */ seq) => held[room.start + seq - head.oldest]
      /** @type {Message[]} */
      const messages = []
      let left = range.bytesMax
      const isForward = 'after' in range
      let seq = isForward ? Math.max(range.after + 1, head.oldest) : Math.min(range.before - 1, head.seq)
      while (seq >= head.oldest && seq <= head.seq && messages.length < range.limit) {
        const message = at(seq)
        left -= message.data.length
        if (left < 0 && messages.length > 0) break
        messages.push(message)
        seq += isForward ? 1 : -1
      }
      return { head, messages: isForward ? messages : messages.reverse() }
    },

    async expire(retentionOf) {
      const at = now()
      let touched = 0
      for (const [name, room] of rooms) {
        room.retention = retentionOf?.(name) ?? room.retention
        if (trim(name, room, at)) touched++
      }
      for (const [id, { elapsedAt }] of outliving) {
        if (elapsed() - elapsedAt <= ID_MS) break
        outliving.delete(id)
        ids.delete(id)
      }
      return touched
    },

    stats: () => ({ bytes: bytesNow(), bytesMax, rooms: rooms.size }),
    close: async () => {},
  }
}

/** @param {string} room @param {Pick<Message, 'from' | 'messageId'>} message */
const idOf = (room, { from, messageId }) => (messageId === undefined ? undefined : `${room}\n${from}\n${messageId}`)
