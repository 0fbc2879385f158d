// The rooms of the fake gateway: kept in memory, in order, as long as the fake lives.

import { messageOf } from './testing-messages.js'

/**
 * @typedef {import('./keycast.js').KeycastErrorCode} KeycastErrorCode
 * @typedef {import('./keycast.js').Member} Member
 * @typedef {{ seq: number, at: number, from?: string, messageId?: string, data: unknown }} Kept
 */

const EPOCH = 'fake'
const HISTORY_DEFAULT = 50
const HISTORY_MAX = 500

/** @param {(message: object) => void} say */
export function createFakeRooms(say) {
  /** @type {Map<string, { messages: Kept[], members: Member[], rev: number, refusal: string | undefined }>} */
  const rooms = new Map()
  /** Those that are subscribed to, and whether with presence. @type {Map<string, boolean>} */
  const watched = new Map()

  /** @param {string} key */
  function roomOf(key) {
    const room = rooms.get(key) ?? { messages: [], members: [], rev: 0, refusal: undefined }
    rooms.set(key, room)
    return room
  }

  /** @param {string} key @param {Kept} message */
  const tell = (key, message) => watched.has(key) && say({ type: 'message', key, ...message })

  /** @param {string} key */
  function tellMembers(key) {
    const { members } = roomOf(key)
    roomOf(key).rev += 1
    if (watched.get(key)) say({ type: 'members', key, rev: roomOf(key).rev, count: members.length, members })
  }

  /** @param {string} key @param {unknown} data @param {{ from?: string, messageId?: string }} [of] */
  function keep(key, data, { from, messageId } = {}) {
    const { messages } = roomOf(key)
    const message = { seq: messages.length + 1, at: Date.now(), from, messageId, data }
    messages.push(message)
    tell(key, message)
    return message
  }

  /** @param {any} entry of a subscribe */
  function begin(entry) {
    const { key, after, last, presence = false } = typeof entry === 'string' ? { key: entry } : entry
    const { length } = roomOf(key).messages
    watched.set(key, presence)
    const isKnown = after?.epoch === EPOCH && after.seq <= length
    const count = isKnown ? length - after.seq : Math.min(after ? 0 : (last ?? 0), length)
    return { key, epoch: EPOCH, seq: length, oldest: 1, recovered: isKnown, count }
  }

  return {
    watched,
    keep,
    roomOf,
    tellMembers,

    /** @param {number} id @param {any[]} entries */
    subscribe(id, entries) {
      for (const entry of entries) {
        const begun = begin(entry)
        const { key, count, seq } = begun
        say({ type: 'subscribed', id, keys: [begun] })
        for (const message of roomOf(key).messages.slice(seq - count)) tell(key, message)
        if (watched.get(key)) tellMembers(key)
      }
    },

    /** @param {any} message @returns {boolean} whether it is about a room */
    answer({ type, id, key, messageId, data, before, after, limit = HISTORY_DEFAULT, name, claim }) {
      if (!['publish', 'history', 'join', 'leave'].includes(type)) return false
      const room = roomOf(key)
      const { messages, refusal } = room
      const refuse = (/** @type {string} */ code) =>
        say({ type: 'error', id, key, code, message: messageOf(code), subscribed: watched.has(key) })
      if (type === 'publish') {
        if (refusal) refuse(refusal)
        else {
          const there = messages.find(message => messageId !== undefined && message.messageId === messageId)
          const { seq, at } = there ?? keep(key, data, { messageId })
          say({ type: 'published', id, key, epoch: EPOCH, seq, at, duplicate: there && true })
        }
      } else if (type === 'history') {
        const found = messages.filter(({ seq }) => seq > (after ?? 0) && seq < (before ?? Infinity))
        const most = Math.min(limit, HISTORY_MAX)
        const part = after === undefined ? found.slice(-most) : found.slice(0, most)
        const more = part.length < found.length
        say({ type, id, key, epoch: EPOCH, oldest: 1, newest: messages.length, messages: part, more })
      } else if (type === 'join') {
        if (room.members.some(member => member.name === name && member.id !== 'me')) refuse('name_taken')
        else {
          room.members = [...room.members.filter(member => member.id !== 'me'), { id: 'me', name, tabs: 1 }]
          say({ type: 'joined', id, key, name, claim })
          tellMembers(key)
        }
      } else {
        room.members = room.members.filter(member => member.id !== 'me')
        say({ type: 'ok', id })
        tellMembers(key)
      }
      return true
    },
  }
}
