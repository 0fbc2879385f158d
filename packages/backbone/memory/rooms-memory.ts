// The backbone of rooms without a journal, for unit tests of gateways: one process, no sockets, nothing kept. Everything is
// answered in a later microtask, as if it had been a moment under way.
import { randomBytes } from 'node:crypto'
import type { Problem } from '@keycast/protocol'
import type { Payer } from '@keycast/service'
import { newMessageId, type RoomsBackbone, type RoomsEvents } from '../gateway/rooms/rooms-backbone.ts'
import { gapFrom, HISTORY_MESSAGES_MAX, type Message } from '../wire/rooms-codec.ts'
import { createMemoryPresence } from './presence-memory.ts'
import { createMemoryPushed } from './pushed-memory.ts'

const RETRY_MS = 1_000

/** @param options `at`: the time of a message. `isNamed`: or members are counted */
export function createMemoryRooms({
  at = () => 1_700_000_000_000,
  isNamed = true,
}: {
  at?: () => number
  isNamed?: boolean
} = {}) {
  let epoch = 'E1'
  let isAway = false
  const presence = createMemoryPresence({ isAway: () => isAway, isNamed })
  const pushed = createMemoryPushed({ isAway: () => isAway })
  const rooms = new Map<string, { messages: Message[]; oldest: number }>()
  interface Gateway {
    events: RoomsEvents
    positions: Map<string, { epoch: string; seq: number } | undefined>
  }
  const gateways = new Set<Gateway>()
  /** Who paid for each publish of a gateway. */
  const payers: (Payer | undefined)[] = []

  function roomOf(name: string) {
    const room = rooms.get(name) ?? { messages: [], oldest: 1 }
    rooms.set(name, room)
    return room
  }

  const headOf = (name: string) => ({ epoch, seq: roomOf(name).messages.length, oldest: roomOf(name).oldest })

  const away: Problem = {
    code: 'journal_unavailable',
    retryAfterMs: RETRY_MS,
  }

  function append({
    room: name,
    messageId = newMessageId(randomBytes),
    from,
    data,
  }: Parameters<RoomsBackbone['publish']>[0]) {
    const { messages } = roomOf(name)
    const known = messages.find(each => each.messageId === messageId && each.from === from)
    if (known && !known.data.equals(data)) {
      return { code: 'id_conflict' as const }
    }
    if (known) return { epoch, seq: known.seq, at: known.at, duplicate: true }
    const message = { seq: messages.length + 1, at: at(), from, messageId, data }
    messages.push(message)
    for (const gateway of gateways) send(gateway, name)
    return { epoch, seq: message.seq, at: message.at, duplicate: false }
  }

  /** @returns how many there were */
  function deleteMessages(which: Parameters<RoomsBackbone['deleteMessages']>[0]) {
    let deleted = 0
    for (const name of 'user' in which ? rooms.keys() : [which.room]) {
      const { messages } = roomOf(name)
      const isMeant = ({ seq, from }: Message) =>
        'user' in which ? from === which.user : (which.seqs?.includes(seq) ?? true)
      const gone = messages.filter(message => !message.deleted && !message.deletes && isMeant(message))
      if (gone.length === 0) continue
      deleted += gone.length
      for (const { seq, at } of gone) {
        messages[seq - 1] = { seq, at, from: '', messageId: undefined, data: Buffer.from('null'), deleted: true }
      }
      const deletes = gone.map(({ seq }): [number, number] => [seq, seq])
      const seq = messages.length + 1
      messages.push({ seq, at: at(), from: '', messageId: undefined, data: Buffer.from('null'), deletes })
      for (const gateway of gateways) send(gateway, name)
    }
    return deleted
  }

  /** Sends on from the gateway's position. */
  function send({ events, positions }: Gateway, name: string) {
    const position = positions.get(name)
    const head = headOf(name)
    if (isAway || !position || position.epoch !== epoch || position.seq === head.seq) return
    if (position.seq + 1 < head.oldest) {
      position.seq = head.seq
      return events.onGap(name, { ...head, reason: 'trimmed' })
    }
    const messages = roomOf(name).messages.slice(position.seq)
    position.seq = head.seq
    events.onMessages(name, { epoch, oldest: head.oldest, messages })
  }

  function begin(gateway: Gateway, name: string) {
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

  /** @returns as one gateway has it */
  function backbone(events: RoomsEvents): RoomsBackbone {
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
      publish(publish, _, done) {
        if (isAway) return done(away)
        payers.push(publish.payer)
        const outcome = append(publish)
        queueMicrotask(() => done(outcome))
      },
      async deleteMessages(which) {
        if (isAway) return away
        return { messages: deleteMessages(which) }
      },
      async history(room, { epoch: of = epoch, after, before, limit }) {
        if (isAway) return away
        if (of !== epoch) return { code: 'other_epoch' }
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
      values: pushed(events),
    }
  }

  return {
    backbone,
    append,
    payers,
    endGhosts: presence.endGhosts,
    refuseAll: presence.refuseAll,
    /** Forgets all but the newest messages, and tells those who watch. */
    trim(name: string, left: number) {
      const room = roomOf(name)
      room.oldest = Math.max(room.oldest, room.messages.length - left + 1)
      for (const { events, positions } of gateways) {
        const position = positions.get(name)
        if (!isAway && position?.epoch === epoch) events.onHead(name, { ...headOf(name), after: position.seq })
      }
    },
    /** The journal is away, or back: then every watch begins anew from its position. */
    setAway(value: boolean) {
      isAway = value
      for (const gateway of gateways) {
        gateway.events.onRouted?.()
        for (const room of [...gateway.positions.keys()]) begin(gateway, room)
      }
    },
    /** The log was restored from a backup: another history, of which every watcher is told. */
    startEpoch(name: string) {
      epoch = name
      rooms.clear()
      for (const gateway of gateways) for (const room of [...gateway.positions.keys()]) begin(gateway, room)
    },
  }
}
