// A log that keeps nothing over a restart: for trying, for tests, and for rooms whose history is worth no disk.
import { createHash } from 'node:crypto'
import type { Message } from '@keycast/backbone'
import { detached, type World } from '@keycast/service'
import { createCharges, ROOM_ITSELF } from '../charges.ts'
import {
  bytesOf,
  EMPTY_MS,
  floorAbove,
  type Head,
  ID_BYTES,
  ID_MS,
  type Log,
  NO_DATA,
  nextValue,
  nothing,
  type Outcome,
  type Publish,
  type Retention,
  ROOM_BYTES,
  rangesOf,
  type SeqRange,
} from '../log.ts'
import { type Room as HeldRoom, hasTooMuch, isEmpty, readHeld, refusalOf } from '../room.ts'
import { createMemoryOutbox } from './outbox.ts'

/** `messages`: by seq. `emptyAt`: since when it is empty. */
interface Room extends HeldRoom {
  emptyAt: number
  messages: Map<number, Message>
}

interface KnownId {
  seq: number
  at: number
  digest: string
  elapsedAt: number
}

interface Options extends World {
  bytesMax: number
}

export function createMemoryLog({ now, wallNow, random, randomBytes, bytesMax }: Options): Log {
  const epoch = randomBytes(9).toString('base64url')
  const rooms = new Map<string, Room>()
  /** An id lives with its message, and for five minutes at least. */
  const ids = new Map<string, KnownId>()
  /** Of messages that went before that, the first to go first. */
  const outliving = new Map<string, KnownId>()
  /** Of watched rooms that are not there, the seq that those who watch were told. */
  const floors = new Map<string, number>()
  const charges = createCharges<string>({ bytesMax, random })
  const outbox = createMemoryOutbox(wallNow)
  let floor = 0
  let bytes = 0

  function keep(publish: Publish, at: number): Outcome {
    const { room: name, messageId, from, data, retention, share = 1, payer, value, isTold } = publish
    const id = idOf(name, publish)
    const digest = id === undefined ? '' : createHash('sha256').update(data).digest('base64url')
    const known = id === undefined ? undefined : ids.get(id)
    if (known) {
      if (known.digest !== digest) return { error: 'id_conflict' }
      return { position: { epoch, seq: known.seq }, at: known.at, duplicate: true }
    }
    const room = rooms.get(name) ?? newRoom(name, retention)
    const rankBefore = room.value?.rank
    const roomBytes = rooms.has(name) ? 0 : ROOM_BYTES
    const weight = bytesOf(publish)
    const ownBytes = weight + (id === undefined ? 0 : ID_BYTES)
    const left = bytesMax * share - bytesNow()
    const costs = { weight, bytes: ownBytes + roomBytes, left, time: at }
    const refusal = refusalOf(room, publish, costs, { charges, stored })
    if (refusal) return refusal
    rooms.set(name, room)
    room.retention = retention
    // A copy: the data is a slice of a request, which would stay for as long as one of its messages does.
    const message = addTo(room, { at, from, messageId, data: detached(data) })
    charges.add(name, message.seq, payer, ownBytes)
    if (roomBytes > 0) charges.add(name, ROOM_ITSELF, payer, roomBytes)
    if (isTold) outbox.put(name, { epoch, ...message })
    if (id !== undefined) ids.set(id, { seq: message.seq, at, digest, elapsedAt: now() })
    trim(name, room, at)
    const kept = { position: { epoch, seq: message.seq }, at, oldest: room.oldest, duplicate: false }
    if (!value) return kept
    room.value = nextValue(room.value, value, at)
    return { ...kept, value: { order: room.value.order, rankBefore } }
  }

  function addTo(room: Room, given: Omit<Message, 'seq'>): Message {
    const message = { seq: ++room.seq, ...given }
    room.messages.set(message.seq, message)
    weigh(room, bytesOf(message))
    return message
  }

  /** @returns the seqs that were there */
  function deleteSome(name: string, room: Room, seqs: number[]) {
    return seqs.filter(seq => {
      const message = room.messages.get(seq)
      if (!message || message.deleted || message.deletes) return false
      const left: Message = { seq, at: message.at, from: '', messageId: undefined, data: NO_DATA, deleted: true }
      forgetId(idOf(name, message))
      room.messages.set(seq, left)
      weigh(room, bytesOf(left) - bytesOf(message))
      charges.take(name, seq)
      return true
    })
  }

  /** @returns the number of messages that went */
  function deleteAll(name: string, room: Room) {
    const { oldest, seq, retention } = room
    if (oldest === seq && room.messages.get(seq)?.deletes) return 0
    room.retention = nothing(retention)
    const gone = trim(name, room, wallNow())
    room.retention = retention
    return gone
  }

  function newRoom(name: string, retention: Retention): Room {
    const { seq, oldest, bytes } = headOf(name)
    return { seq, oldest, bytes, retention, emptyAt: 0, messages: new Map() }
  }

  function weigh(room: Room, more: number) {
    room.bytes += more
    bytes += more
  }

  /** @returns the number of messages that went */
  function trim(name: string, room: Room, at: number): number {
    const { messages, oldest: oldestBefore, retention } = room
    for (let first = messages.get(room.oldest); first; first = messages.get(room.oldest)) {
      if (!hasTooMuch(room) && at - first.at <= retention.ageMs) break
      weigh(room, -bytesOf(first))
      forgetId(idOf(name, first))
      charges.take(name, first.seq)
      messages.delete(room.oldest++)
    }
    const gone = room.oldest - oldestBefore
    if (gone > 0) room.emptyAt = at
    return gone
  }

  /** The message is gone. */
  function forgetId(id: string | undefined) {
    const known = id === undefined ? undefined : ids.get(id)
    if (id === undefined || !known) return
    if (now() - known.elapsedAt > ID_MS) ids.delete(id)
    else outliving.set(id, known)
  }

  function headOf(name: string): Head {
    const room = rooms.get(name)
    if (!room) {
      const seq = floors.get(name) ?? floor
      return { epoch, seq, oldest: seq + 1, bytes: 0 }
    }
    return { epoch, seq: room.seq, oldest: room.oldest, bytes: room.bytes, value: room.value }
  }

  const bytesNow = () => bytes + ids.size * ID_BYTES + rooms.size * ROOM_BYTES

  const stored = ({ messages }: Room, seq: number) => messages.get(seq)

  function* scan({ messages }: Room, from: number, to: number) {
    const step = from > to ? -1 : 1
    for (let seq = from; seq !== to + step; seq += step) yield messages.get(seq) as Message
  }

  return {
    id: () => epoch,

    async append(publishes) {
      const at = wallNow()
      return publishes.map(publish => keep(publish, at))
    },

    async delete(name, seqs, isTold) {
      const room = rooms.get(name)
      if (!room) return { messages: 0, more: false, notice: undefined }
      const gone = seqs && deleteSome(name, room, seqs)
      const count = gone ? gone.length : deleteAll(name, room)
      if (count === 0) return { messages: 0, more: false, notice: undefined }
      const deletes: SeqRange[] = gone ? rangesOf(gone) : [[1, room.seq]]
      const message = addTo(room, { at: wallNow(), from: '', messageId: undefined, data: NO_DATA, deletes })
      if (isTold) outbox.put(name, { epoch, ...message })
      return { messages: count, more: false, notice: { epoch, oldest: room.oldest, message } }
    },

    async *rooms() {
      yield* [...rooms.keys()]
    },
    head: async name => headOf(name),

    async read(name, range) {
      const head = headOf(name)
      const room = rooms.get(name)
      if (!room || (range.epoch !== undefined && range.epoch !== epoch)) return { head, messages: [] }
      return { head, messages: readHeld(room, range, (from, to) => scan(room, from, to)) }
    },

    async expire(retentionOf) {
      const at = wallNow()
      const trimmed = []
      for (const [name, room] of rooms) {
        room.retention = retentionOf?.(name) ?? room.retention
        if (trim(name, room, at) > 0) trimmed.push({ room: name, head: headOf(name) })
        if (!isEmpty(room)) continue
        if (floors.has(name)) room.emptyAt = at
        if (at - room.emptyAt <= EMPTY_MS) continue
        rooms.delete(name)
        charges.take(name, ROOM_ITSELF)
        floor = floorAbove(floor, room.seq)
      }
      for (const [id, { elapsedAt }] of outliving) {
        if (now() - elapsedAt <= ID_MS) break
        outliving.delete(id)
        ids.delete(id)
      }
      return { trimmed, more: false }
    },

    watch(name) {
      if (!floors.has(name)) floors.set(name, floor)
    },
    unwatch: name => void floors.delete(name),
    outbox,

    stats: () => ({ bytes: bytesNow(), bytesMax, rooms: rooms.size, charged: charges.stats() }),
    close: async () => {},
  }
}

const idOf = (room: string, { from, messageId }: Pick<Message, 'from' | 'messageId'>) =>
  messageId === undefined ? undefined : `${room}\n${from}\n${messageId}`
