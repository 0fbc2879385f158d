// Deletions by operators in a log in LMDB. Of a deleted message only its place is left; a message of its own tells
// readers.
import type { Message } from '@keycast/backbone'
import { bytesOf, type Log, NO_DATA, nothing, rangesOf, type SeqRange } from '../log.ts'
import { isEmpty } from '../room.ts'
import type { Commit, Write } from './commits.ts'
import type { Ids } from './ids.ts'
import type { KeptCharges } from './kept-charges.ts'
import { encode, type Room, type State, type Stored, type Tables } from './layout.ts'
import type { LmdbOutbox } from './outbox.ts'
import type { Rooms } from './rooms.ts'

/** Writes of one call, roughly: a longer one would hold the loop up. */
const WRITES_MAX = 10_000

interface Deps {
  tables: Pick<Tables, 'messages'>
  state: State
  rooms: Rooms
  ids: Pick<Ids, 'hashOf'>
  charges: Pick<KeptCharges, 'take'>
  outbox: Pick<LmdbOutbox, 'put'>
  /** The log's clock. */
  clock: { read: () => number }
  wallNow: () => number
  isOwned: () => Promise<boolean>
  commit: Commit
}

export function createDeletion({
  tables: { messages },
  state,
  rooms,
  ids,
  charges,
  outbox,
  clock,
  wallNow,
  isOwned,
  commit,
}: Deps): Log['delete'] {
  /**
   * @param room changed in place
   * @param writes collects what replaces the messages
   * @returns the seqs that were there
   */
  function deleteSome(room: Room, seqs: number[], writes: Write[]) {
    const { id } = room
    return seqs.filter(seq => {
      const message = seq < room.oldest ? undefined : rooms.stored(room, seq)
      if (!message || message.deleted || message.deletes) return false
      const { at, from, messageId, idNumber } = message
      const idHash = messageId === undefined ? undefined : ids.hashOf(id, from, messageId)
      const left: Stored = { at, from: '', messageId: undefined, data: NO_DATA, deleted: true, idNumber, idHash }
      rooms.weigh(room, bytesOf(left) - bytesOf(message))
      charges.take(id, seq, writes)
      writes.push(() => messages.put([id, seq], encode(left)))
      return true
    })
  }

  /** @returns the number of messages that went, as far as one call may */
  function deleteAll(room: Room, time: number, writes: Write[]) {
    const { oldest, seq, retention } = room
    if (oldest === seq && rooms.stored(room, seq)?.deletes) return 0
    room.retention = nothing(retention)
    const gone = rooms.trim(room, time, writes, WRITES_MAX)
    room.retention = retention
    return gone
  }

  /** What tells readers of a deletion. */
  function addNotice(room: Room, deletes: SeqRange[], writes: Write[]): Message {
    const seq = ++room.seq
    const message = { at: wallNow(), from: '', messageId: undefined, data: NO_DATA, deletes }
    if (room.oldest === seq) room.oldestAt = message.at
    rooms.weigh(room, bytesOf(message))
    state.counts.kept++
    writes.push(() => messages.put([room.id, seq], encode(message)))
    return { seq, ...message }
  }

  return async (name, seqs, isTold) => {
    if (!(await isOwned())) return { error: 'log_full' }
    const time = clock.read()
    const writes: Write[] = []
    const room = rooms.get(name)
    const { epoch } = state
    const gone = room && seqs && deleteSome(room, seqs, writes)
    const count = gone ? gone.length : room ? deleteAll(room, time, writes) : 0
    if (!room || count === 0) return { messages: 0, more: false, notice: undefined }
    const more = !gone && !isEmpty(room)
    const message = addNotice(room, gone ? rangesOf(gone) : [[1, room.oldest - 1]], writes)
    if (isTold) outbox.put(name, { epoch, ...message }, writes)
    rooms.put(name, room, time, writes)
    if (!(await commit(writes))) return { error: 'log_full' }
    return { messages: count, more, notice: { epoch, oldest: room.oldest, message } }
  }
}
