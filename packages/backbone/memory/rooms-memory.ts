// The backbone of rooms without a journal, for unit tests of gateways: one process, no sockets, nothing kept. Everything is
// answered in a later microtask, as if it had been a moment under way.
import { errorCodes } from '@keycast/protocol'
import { newMessageId } from '../gateway/rooms/rooms-backbone.ts'
import { gapFrom, HISTORY_MESSAGES_MAX } from '../wire/rooms-codec.ts'
import { createMemoryPresence } from './presence-memory.ts'

/**
 * @typedef {import('../gateway/rooms/rooms-backbone.ts').RoomsBackbone} RoomsBackbone
 * @typedef {import('../gateway/rooms/rooms-backbone.ts').RoomsEvents} RoomsEvents
 * @typedef {import('../wire/rooms-codec.ts').Message} Message
 */

const RETRY_MS = 1_000

/** @param {{ at?: () => number, isNamed?: boolean }} [options] `at`: the time of a message. `isNamed`: or members are counted */
export function createMemoryRooms({ at = () => 1_700_000_000_000, isNamed = true } = {}) {
  let epoch = 'E1'
  let isAway = false
  const presence = createMemoryPresence({ isAway: () => isAway, isNamed })
  /** @type {Map<string, { messages: Message[], oldest: number }>} */
  const rooms = new Map()
  /** @typedef {{ events: RoomsEvents, positions: Map<string, { epoch: string, seq: number } | undefined> }} Gateway */
  /** @type {Set<Gateway>} */
  const gateways = new Set()

  /** @param {string} name */
  function roomOf(name) {
    const room = rooms.get(name) ?? { messages: [], oldest: 1 }
    rooms.set(name, room)
    return room
  }

  /** @param {string} name */
  const headOf = name => ({ epoch, seq: roomOf(name).messages.length, oldest: roomOf(name).oldest })

  /** @type {import('../wire/rooms-codec.ts').NotPublished} */
  const away = { error: 'journal_unavailable', message: errorCodes.journal_unavailable, retryAfterMs: RETRY_MS }

  /** @param {Parameters<RoomsBackbone['publish']>[0]} publish */
  function append({ room: name, messageId = newMessageId(), from, data }) {
    const { messages } = roomOf(name)
    const known = messages.find(each => each.messageId === messageId && each.from === from)
    if (known && !known.data.equals(data)) {
      return { error: /** @type {const} */ ('id_conflict'), message: errorCodes.id_conflict }
    }
    if (known) return { epoch, seq: known.seq, at: known.at, duplicate: true }
    const message = { seq: messages.length + 1, at: at(), from, messageId, data }
    messages.push(message)
    for (const gateway of gateways) send(gateway, name)
    return { epoch, seq: message.seq, at: message.at, duplicate: false }
  }

  /** Sends on from the gateway's position. @param {Gateway} gateway @param {string} name */
  function send({ events, positions }, name) {
    const position = positions.get(name)
    const head = headOf(name)
    if (isAway || !position || position.epoch !== epoch || position.seq === head.seq) return
    if (position.seq + 1 < head.oldest) {
      position.seq = head.seq
      return events.onGap(name, { ...head, reason: 'trimmed' })
    }
    const messages = roomOf(name).messages.slice(position.seq)
    position.seq = head.seq
    events.onMessages(name, { epoch, messages })
  }

  /** @param {Gateway} gateway @param {string} name */
  function begin(gateway, name) {
    const { events, positions } = gateway
    if (isAway || !positions.has(name)) return
    const head = headOf(name)
    const asked = positions.get(name)
    const reason = asked && gapFrom(asked, head)
    const position = { epoch, seq: asked && !reason ? asked.seq : head.seq }
    positions.set(name, position)
    if (reason) return events.onGap(name, { ...head, reason })
    events.onHead(name, { ...head, after: position.seq })
    send(gateway, name)
  }

  /** @param {RoomsEvents} events @returns {RoomsBackbone} as one gateway has it */
  function backbone(events) {
    const gateway = { events, positions: new Map() }
    const members = presence.backbone(events)
    return {
      ...members,
      async start() {
        gateways.add(gateway)
      },
      async stop() {
        gateways.delete(gateway)
        members.stop()
      },
      watch(room, position) {
        if (gateway.positions.has(room)) return
        gateway.positions.set(room, position && { ...position })
        queueMicrotask(() => begin(gateway, room))
      },
      unwatch: room => void gateway.positions.delete(room),
      publish: async publish => (isAway ? away : append(publish)),
      async history(room, { epoch: of = epoch, after, before, limit }) {
        if (isAway) return away
        if (of !== epoch) return { error: 'other_epoch', message: errorCodes.other_epoch }
        const { seq: newest, oldest } = headOf(room)
        const held = roomOf(room).messages.slice(oldest - 1)
        const most = Math.min(limit, HISTORY_MESSAGES_MAX)
        const asked = held.filter(({ seq }) => (after === undefined ? seq < before : seq > after))
        const messages = after === undefined ? asked.slice(-most) : asked.slice(0, most)
        const truncated = after !== undefined && after + 1 < oldest
        return { epoch, oldest, newest, messages, more: messages.length < asked.length, truncated }
      },
      isAvailable: () => !isAway,
      ownerOf: () => ({ node: 'memory', alive: !isAway }),
      nodesAlive: () => Number(!isAway),
      nodesHeld: () => 0,
      logs: () => ({ inUse: 'memory', others: [] }),
      healed: () => 0,
    }
  }

  return {
    backbone,
    append,
    endGhosts: presence.endGhosts,
    refuseAll: presence.refuseAll,
    /** Forgets all but the newest messages. @param {string} name @param {number} left */
    trim(name, left) {
      const room = roomOf(name)
      room.oldest = Math.max(room.oldest, room.messages.length - left + 1)
    },
    /** The journal is away, or back: then every watch begins anew from its position. @param {boolean} value */
    setAway(value) {
      isAway = value
      for (const gateway of gateways) {
        gateway.events.onRouted?.()
        for (const room of [...gateway.positions.keys()]) begin(gateway, room)
      }
    },
    /** The log was restored from a backup: another history, of which every watcher is told. @param {string} name */
    startEpoch(name) {
      epoch = name
      rooms.clear()
      for (const gateway of gateways) for (const room of [...gateway.positions.keys()]) begin(gateway, room)
    },
  }
}
