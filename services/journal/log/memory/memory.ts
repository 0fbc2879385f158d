// A log that keeps nothing over a restart: for trying, for tests, and for rooms whose history is worth no disk.
import { createHash } from 'node:crypto'
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
  type Message,
  NO_DATA,
  nextValue,
  nothing,
  type Outcome,
  type Publish,
  RELIEVED_BY_MAX,
  type Retention,
  ROOM_BYTES,
  rangesOf,
  readBytesOf,
  type SeqRange,
  type Valued,
} from '../log.ts'
import { createMemoryOutbox } from './outbox.ts'

/**
 * `start`: the index of the oldest message that is kept. Trimmed ones stay before it until they are half of the list,
 * so that trimming one message does not move all others. `emptyAt`: since when it is empty.
 */
interface Room {
  seq: number
  emptyAt: number
  messages: Message[]
  start: number
  bytes: number
  retention: Retention
  value?: Valued
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

  function keep(
    { room: name, messageId, from, data, retention, share = 1, payer, value, isTold }: Publish,
    at: number,
  ): Outcome {
    const rankBefore = rooms.get(name)?.value?.rank
    if (value?.rank !== undefined && rankBefore !== undefined && value.rank < rankBefore) {
      return { error: 'older', rank: rankBefore }
    }
    const id = idOf(name, { from, messageId })
    const digest = id === undefined ? '' : createHash('sha256').update(data).digest('base64url')
    const known = id === undefined ? undefined : ids.get(id)
    if (known) {
      if (known.digest !== digest) return { error: 'id_conflict' }
      return { position: { epoch, seq: known.seq }, at: known.at, duplicate: true }
    }
    const roomBytes = rooms.has(name) ? 0 : ROOM_BYTES
    const weight = bytesOf({ data, from, messageId })
    const ownBytes = weight + (id === undefined ? 0 : ID_BYTES)
    const left = bytesMax * share - bytesNow()
    const over = ownBytes + roomBytes - left
    if (over > 0 && !isRelieved(name, retention, weight, at, over)) return { error: 'log_full' }
    const refusal = charges.refusalOf(payer, ownBytes + roomBytes, left)
    if (refusal && !isRelieved(name, retention, weight, at, weight)) return { error: refusal }
    const room = roomOf(name, retention)
    // A copy: the data is a slice of a request, which would stay for as long as one of its messages does.
    const message = { seq: room.seq + 1, at, from, messageId, data: detached(data) }
    room.seq++
    charges.add(name, message.seq, payer, ownBytes)
    if (roomBytes > 0) charges.add(name, ROOM_ITSELF, payer, roomBytes)
    room.messages.push(message)
    add(room, bytesOf(message))
    if (isTold) outbox.put(name, { epoch, ...message })
    if (id !== undefined) ids.set(id, { seq: message.seq, at, digest, elapsedAt: now() })
    trim(name, room, at)
    const kept = { position: { epoch, seq: message.seq }, at, oldest: oldestOf(room), duplicate: false }
    if (!value) return kept
    room.value = nextValue(room.value, value, at)
    return { ...kept, value: { order: room.value.order, rankBefore } }
  }

  /** What tells readers of a deletion. */
  function tell(room: Room, deletes: SeqRange[]): Message {
    room.seq++
    const message = { seq: room.seq, at: wallNow(), from: '', messageId: undefined, data: NO_DATA, deletes }
    room.messages.push(message)
    add(room, bytesOf(message))
    return message
  }

  /** @returns the seqs that were there */
  function deleteSome(name: string, room: Room, seqs: number[]) {
    return seqs.filter(seq => {
      const index = room.start + seq - oldestOf(room)
      const message = index < room.start ? undefined : room.messages[index]
      if (!message || message.deleted || message.deletes) return false
      const { at } = message
      forgetId(idOf(name, message))
      room.messages[index] = { seq, at, from: '', messageId: undefined, data: NO_DATA, deleted: true }
      add(room, bytesOf(room.messages[index]) - bytesOf(message))
      charges.take(name, seq)
      return true
    })
  }

  /** @returns the number of messages that went */
  function deleteAll(name: string, room: Room) {
    const held = room.messages.slice(room.start)
    if (held.every(({ deletes }) => deletes)) return 0
    const { retention } = room
    room.retention = nothing(retention)
    trim(name, room, wallNow())
    room.retention = retention
    return held.length
  }

  /** Whether so many bytes of the room go when a message of this weight comes. */
  function isRelieved(name: string, retention: Retention, weight: number, at: number, over: number) {
    const { messages, start, bytes: held } = roomNow(name)
    let gone = 0
    const end = Math.min(messages.length, start + RELIEVED_BY_MAX)
    for (let next = start; next < end && gone < over; next++) {
      const isTooMuch = messages.length - next + 1 > retention.messages || held - gone + weight > retention.bytes
      if (!isTooMuch && at - messages[next].at <= retention.ageMs) return false
      gone += bytesOf(messages[next])
    }
    return gone >= over
  }

  const roomNow = (name: string) => rooms.get(name) ?? { messages: [], start: 0, bytes: 0 }

  function roomOf(name: string, retention: Retention) {
    const room = rooms.get(name) ?? { seq: headOf(name).seq, emptyAt: 0, messages: [], start: 0, bytes: 0, retention }
    room.retention = retention
    rooms.set(name, room)
    return room
  }

  function add(room: Room, more: number) {
    room.bytes += more
    bytes += more
  }

  /** @returns whether anything went */
  function trim(name: string, room: Room, at: number): boolean {
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
      charges.take(name, oldest.seq)
      room.start++
    }
    const went = room.start > startBefore
    if (went) room.emptyAt = at
    if (room.start * 2 > messages.length) {
      room.messages = messages.slice(room.start)
      room.start = 0
    }
    return went
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
    return { epoch, seq: room.seq, oldest: oldestOf(room), bytes: room.bytes, value: room.value }
  }

  const bytesNow = () => bytes + ids.size * ID_BYTES + rooms.size * ROOM_BYTES

  const isEmpty = ({ messages, start }: Room) => start === messages.length

  const oldestOf = (room: Room) => room.seq - (room.messages.length - room.start) + 1

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
      const message = tell(room, gone ? rangesOf(gone) : [[1, room.seq]])
      if (isTold) outbox.put(name, { epoch, ...message })
      return { messages: count, more: false, notice: { epoch, oldest: oldestOf(room), message } }
    },

    rooms: async () => ({ rooms: [...rooms.keys()], cursor: undefined }),
    head: async name => headOf(name),

    async read(name, range) {
      const head = headOf(name)
      const room = rooms.get(name)
      if (!room || (range.epoch !== undefined && range.epoch !== head.epoch)) return { head, messages: [] }
      const held = room.messages
      const at = (seq: number) => held[room.start + seq - head.oldest]
      const messages: Message[] = []
      let left = range.bytesMax
      const isForward = 'after' in range
      let seq = isForward ? Math.max(range.after + 1, head.oldest) : Math.min(range.before - 1, head.seq)
      while (seq >= head.oldest && seq <= head.seq && messages.length < range.limit) {
        const message = at(seq)
        left -= readBytesOf(message)
        if (left < 0 && messages.length > 0) break
        messages.push(message)
        seq += isForward ? 1 : -1
      }
      return { head, messages: isForward ? messages : messages.reverse() }
    },

    async expire(retentionOf) {
      const at = wallNow()
      const trimmed = []
      for (const [name, room] of rooms) {
        room.retention = retentionOf?.(name) ?? room.retention
        if (trim(name, room, at)) trimmed.push({ room: name, head: headOf(name) })
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
