// A log that keeps nothing over a restart: for trying, for tests, and for rooms whose history is worth no disk.
import { createHash, randomBytes } from 'node:crypto'
import { bytesOf, ID_MS, IDS_MAX } from './log.js'

/**
 * @typedef {import('./log.js').Log} Log
 * @typedef {import('./log.js').Message} Message
 * @typedef {import('./log.js').Publish} Publish
 * @typedef {import('./log.js').Range} Range
 *
 * `start`: the index of the oldest message that is kept. What was trimmed stays before it until it is half of the list,
 * so that trimming one message does not move all others.
 * @typedef {{ seq: number, messages: Message[], start: number, bytes: number, retention: import('./log.js').Retention }} Room
 *
 * @typedef {{ seq: number, at: number, digest: string }} KnownId
 */

/**
 * @param {{ now?: () => number, bytesMax: number, idsMax?: number }} options `now`: milliseconds since 1970
 * @returns {Log}
 */
export function createMemoryLog({ now = Date.now, bytesMax, idsMax = IDS_MAX }) {
  const epoch = randomBytes(9).toString('base64url')
  /** @type {Map<string, Room>} */
  const rooms = new Map()
  /** Oldest first. @type {Map<string, KnownId>} */
  const ids = new Map()
  let bytes = 0

  /** @param {Publish} publish @param {number} at @returns {import('./log.js').Outcome} */
  function keep({ room: name, messageId, from, data, retention }, at) {
    const id = messageId === undefined ? undefined : `${name}\n${from}\n${messageId}`
    const digest = id === undefined ? '' : createHash('sha256').update(data).digest('base64url')
    const known = id === undefined ? undefined : ids.get(id)
    if (known) {
      if (known.digest !== digest) return { error: 'id_conflict' }
      return { position: { epoch, seq: known.seq }, at: known.at, duplicate: true }
    }
    const room = roomOf(name, retention)
    const message = { seq: room.seq + 1, at, from, messageId, data }
    room.seq++
    room.messages.push(message)
    add(room, bytesOf(message))
    if (id !== undefined) ids.set(id, { seq: message.seq, at, digest })
    trim(room, at)
    return { position: { epoch, seq: message.seq }, at, duplicate: false }
  }

  /** @param {string} name @param {import('./log.js').Retention} retention */
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

  /** @param {Room} room @param {number} at @returns {boolean} whether anything went */
  function trim(room, at) {
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
      room.start++
    }
    const went = room.start > startBefore
    if (room.start * 2 > messages.length) {
      room.messages = messages.slice(room.start)
      room.start = 0
    }
    return went
  }

  /** @param {string} name @returns {import('./log.js').Head} */
  function headOf(name) {
    const room = rooms.get(name)
    if (!room) return { epoch, seq: 0, oldest: 1, bytes: 0 }
    return { epoch, seq: room.seq, oldest: oldestOf(room), bytes: room.bytes }
  }

  /** @param {Room} room */
  const oldestOf = room => room.seq - (room.messages.length - room.start) + 1

  return {
    id: () => epoch,

    async append(publishes) {
      const wanted = publishes.reduce((sum, publish) => sum + bytesOf(publish), 0)
      if (bytes + wanted > bytesMax) return publishes.map(() => ({ error: 'log_full' }))
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
        if (trim(room, at)) touched++
      }
      for (const [id, known] of ids) {
        const held = rooms.get(id.slice(0, id.indexOf('\n')))
        const isHeld = held !== undefined && known.seq >= oldestOf(held)
        if (ids.size > idsMax) ids.delete(id)
        else if (at - known.at <= ID_MS) break
        else if (!isHeld) ids.delete(id)
      }
      return touched
    },

    stats: () => ({ bytes, bytesMax, rooms: rooms.size }),
    close: async () => {},
  }
}
