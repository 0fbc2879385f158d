// Publishes into a log in LMDB: a batch is numbered, trimmed and charged in one commit. Gets read the last commit: batches
// do not overlap, so what a batch has changed so far is kept in `touched`.
import { ROOM_ITSELF } from '../charges.ts'
import { bytesOf, ID_BYTES, nextValue, type Outcome, type Publish, ROOM_BYTES } from '../log.ts'
import { refusalOf } from '../room.ts'
import type { Commit, Write } from './commits.ts'
import { bytesKept, digestOf, type Ids, type Known, type Minted } from './ids.ts'
import type { KeptCharges } from './kept-charges.ts'
import { encode, type Room, type State, type Tables } from './layout.ts'
import type { LmdbOutbox } from './outbox.ts'
import type { Rooms } from './rooms.ts'

/** Messages that one batch trims, roughly as many as one call of `expire`. */
const TRIMS_MAX = 10_000

interface Deps {
  tables: Pick<Tables, 'messages'>
  state: State
  rooms: Rooms
  ids: Ids
  charges: KeptCharges
  outbox: Pick<LmdbOutbox, 'put'>
  bytesMax: number
  /** The log's clock, by which messages expire. */
  clock: { read: () => number }
  /** What readers are told. */
  wallNow: () => number
  openMs: () => number
  /** Before anything is written; false if the disk is full. */
  isOwned: () => Promise<boolean>
  commit: Commit
}

export function createAppend({
  tables: { messages },
  state,
  rooms,
  ids,
  charges,
  outbox,
  bytesMax,
  clock,
  wallNow,
  openMs,
  isOwned,
  commit,
}: Deps) {
  const held = { charges, stored: rooms.stored }

  function recall(room: Room, idHash: string): Known | undefined {
    const found = ids.find(room.id, idHash)
    if (!found || 'digest' in found) return found
    const message = rooms.stored(room, found.seq)
    if (!message) return undefined
    const { at, data, deleted } = message
    // Of a deleted one nobody knows the data any more: it is the same one.
    return { seq: found.seq, at, digest: deleted ? undefined : digestOf(data) }
  }

  return async function append(publishes: Publish[]): Promise<Outcome[]> {
    if (!(await isOwned())) return publishes.map(() => ({ error: 'log_full' }))
    /** What its readers are told of a message; it expires by `time`. */
    const at = wallNow()
    const time = clock.read()
    const touched = new Map<string, Room>()
    /** Of them, those that are not there yet. */
    const added = new Set<Room>()
    /** Those that something came into: of the others readers would not hear what is trimmed. */
    const grown = new Set<Room>()
    /** By hash. */
    const known = new Map<string, Known>()
    const minted: Minted[] = []
    let dataBytes = 0
    const writes: Write[] = []

    const outcomes = publishes.map(publish => {
      const room = touched.get(publish.room) ?? rooms.get(publish.room) ?? newRoom(publish)
      touched.set(publish.room, room)
      return publish.messageId === undefined ? keep(room, publish) : keepOnce(room, publish, publish.messageId)
    })
    let trimsLeft = TRIMS_MAX
    for (const [name, room] of touched) {
      if (!grown.has(room)) continue
      trimsLeft -= rooms.trim(room, time, writes, trimsLeft)
      rooms.put(name, room, time, writes)
    }
    for (const [index, { room }] of publishes.entries()) {
      const outcome = outcomes[index]
      if (outcome.error === undefined && !outcome.duplicate) outcome.oldest = touched.get(room)?.oldest
    }

    if (writes.length === 0) return outcomes
    const indexIds = ids.note(minted, at, openMs(), writes)
    if (!(await commit(writes, { data: dataBytes }))) return publishes.map(() => ({ error: 'log_full' }))
    indexIds()
    return outcomes

    function keepOnce(room: Room, publish: Publish, messageId: string): Outcome {
      const { from, data } = publish
      const idHash = ids.hashOf(room.id, from, messageId)
      const digest = digestOf(data)
      const first = known.get(idHash) ?? recall(room, idHash)
      if (first) {
        if (first.digest !== undefined && digest !== first.digest) return { error: 'id_conflict' }
        return { position: { epoch: state.epoch, seq: first.seq }, at: first.at, duplicate: true }
      }
      const outcome = keep(room, publish, state.counts.nextId + minted.length)
      if (outcome.error !== undefined) return outcome
      known.set(idHash, { seq: room.seq, at, digest })
      minted.push({ room: room.id, seq: room.seq, hash: idHash, digest })
      return outcome
    }

    function keep(room: Room, publish: Publish, idNumber?: number): Outcome {
      const { room: name, messageId, from, data, retention, share = 1, payer, value, isTold } = publish
      const rankBefore = room.value?.rank
      const weight = bytesOf(publish)
      const ownBytes = weight + (messageId === undefined ? 0 : ID_BYTES)
      const roomBytes = added.has(room) ? ROOM_BYTES : 0
      // Ids of this batch are not counted yet.
      const left = bytesMax * share - bytesKept(state.counts) - minted.length * ID_BYTES
      const refusal = refusalOf(room, publish, { weight, bytes: ownBytes + roomBytes, left, time }, held)
      if (refusal) return refusal
      if (added.delete(room)) {
        state.counts.rooms++
        charges.add(name, [room.id, ROOM_ITSELF], payer, roomBytes, writes)
      }
      if (value && room.oldest === room.seq) removeOnly(room)
      const seq = ++room.seq
      charges.add(name, [room.id, seq], payer, ownBytes, writes)
      grown.add(room)
      room.retention = retention
      if (room.oldest === seq) room.oldestAt = at
      rooms.weigh(room, weight)
      dataBytes += data.length
      state.counts.kept++
      writes.push(() => messages.put([room.id, seq], encode({ at, from, messageId, idNumber, data })))
      const { epoch } = state
      if (isTold) outbox.put(name, { epoch, seq, at, from, messageId, data }, writes)
      const kept = { position: { epoch, seq }, at, duplicate: false }
      if (!value) return kept
      room.value = nextValue(room.value, value, at)
      return { ...kept, value: { order: room.value.order, rankBefore } }
    }

    /** As `trim` would, without a look at the message: it has all bytes of its room, and no id. */
    function removeOnly(room: Room) {
      const { id, seq, bytes } = room
      writes.push(() => messages.remove([id, seq]))
      rooms.weigh(room, -bytes)
      room.oldest++
    }

    function newRoom({ room: name, retention }: Publish): Room {
      const seq = rooms.floorOf(name)
      const room = { id: state.counts.nextRoom++, seq, oldest: seq + 1, oldestAt: 0, bytes: 0, retention }
      added.add(room)
      return room
    }
  }
}
