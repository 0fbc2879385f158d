// The messageIds that a log in LMDB knows. Those of the last five minutes lie in the order of time, in records that are
// written and removed at the ends of a table, with an index in memory. Later an id lives with its message, in a table
// by its hash. An id of which the message is gone by then is never written there: at 20,000 publishes a second, random
// places in a tree of six million would be 80 MB a second.
import { hash } from 'node:crypto'
import { ID_BYTES, ID_MS, ROOM_BYTES } from '../log.ts'
import type { Write } from './commits.ts'
import { createIdIndex } from './id-index.ts'
import type { Counts, State, Stored, Tables } from './layout.ts'

/** What is known of an id: the place of its message, and a digest of its data; of one that was deleted, none. */
export interface Known {
  seq: number
  at: number
  digest: string | undefined
}

/** An id that a batch brings. */
export interface Minted {
  room: number
  seq: number
  hash: string
  digest: string
}

const HASH_BYTES = 16

/** 16 bytes as as many characters: node:crypto makes a string in a third of the time that it takes for a Buffer. */
const shortHash = (data: string | Buffer) => hash('sha256', data, 'binary').slice(0, HASH_BYTES)

export const digestOf = (data: Buffer) => shortHash(data)

// A record: time since 1970 and time that the log was open, then of each id: room, seq, hash, digest.
const HEAD_BYTES = 16
const NUMBER_BYTES = 6
const ENTRY_BYTES = 2 * NUMBER_BYTES + 2 * HASH_BYTES

/** Ids of one record: larger ones would lie in pages of their own. */
const RECORD_IDS = 44

/** Types know the option only of `putSync`, and a number in its place. */
const append = { append: true } as unknown as number

/** Ids that one call of `expire` looks at, and those that it may move: each is a page of the disk. */
const LOOK_MAX = 50_000
const MOVE_MAX = 2_000

interface Deps {
  tables: Pick<Tables, 'recentIds' | 'heldIds' | 'messages'>
  state: Pick<State, 'counts'>
  /** Keeps clients from choosing ids whose hashes are alike. */
  salt: string
}

export type Ids = ReturnType<typeof createIds>

export function createIds({ tables: { recentIds, heldIds, messages }, state, salt }: Deps) {
  const index = createIdIndex()

  const hashOf = (room: number, from: string, messageId: string) => shortHash(`${salt}\n${room}\n${from}\n${messageId}`)

  function keyOf(room: number, hash: string) {
    const key = Buffer.allocUnsafe(NUMBER_BYTES + HASH_BYTES)
    key.writeUIntBE(room, 0, NUMBER_BYTES)
    key.write(hash, NUMBER_BYTES, 'latin1')
    return key
  }

  /** @param number of an id */
  function recentAt(number: number): { record: Buffer; offset: number } | undefined {
    if (number < state.counts.firstId) return undefined
    for (const { key, value } of recentIds.getRange({ start: number, reverse: true, limit: 1 })) {
      const offset = HEAD_BYTES + (number - key) * ENTRY_BYTES
      return offset < value.length ? { record: value, offset } : undefined
    }
    return undefined
  }

  return {
    hashOf,

    /** Reads what the index must know. */
    load() {
      index.clear()
      for (const { key, value } of recentIds.getRange({})) {
        for (let offset = HEAD_BYTES, number = key; offset < value.length; offset += ENTRY_BYTES, number++) {
          index.add(value.readUInt32LE(offset + 2 * NUMBER_BYTES), number)
        }
      }
    },

    /** @returns only `seq` where the message is held: it says the rest */
    find(room: number, hash: string): Known | { seq: number } | undefined {
      const recent = index.find(printOf(hash), number => {
        const { record, offset } = recentAt(number) ?? {}
        if (!record || offset === undefined) return undefined
        const hashAt = offset + 2 * NUMBER_BYTES
        const digestAt = hashAt + HASH_BYTES
        if (record.readUIntBE(offset, NUMBER_BYTES) !== room || record.toString('latin1', hashAt, digestAt) !== hash) {
          return undefined
        }
        const seq = record.readUIntBE(offset + NUMBER_BYTES, NUMBER_BYTES)
        return { seq, at: record.readDoubleBE(0), digest: record.toString('latin1', digestAt, digestAt + HASH_BYTES) }
      })
      if (recent) return recent
      const held = state.counts.heldIds > 0 ? heldIds.get(keyOf(room, hash)) : undefined
      return held && { seq: held.readUIntBE(0, NUMBER_BYTES) }
    },

    /**
     * Notes the ids of a batch, under numbers from `nextId` on.
     *
     * @param writes collects what is to be written
     * @returns to be called once it is
     */
    note(minted: Minted[], at: number, openMs: number, writes: Write[]): () => void {
      const first = state.counts.nextId
      for (let start = 0; start < minted.length; start += RECORD_IDS) {
        const part = minted.slice(start, start + RECORD_IDS)
        const record = Buffer.allocUnsafe(HEAD_BYTES + part.length * ENTRY_BYTES)
        record.writeDoubleBE(at, 0)
        record.writeDoubleBE(openMs, 8)
        let offset = HEAD_BYTES
        for (const { room, seq, hash, digest } of part) {
          record.writeUIntBE(room, offset, NUMBER_BYTES)
          record.writeUIntBE(seq, offset + NUMBER_BYTES, NUMBER_BYTES)
          record.write(hash, offset + 2 * NUMBER_BYTES, 'latin1')
          record.write(digest, offset + 2 * NUMBER_BYTES + HASH_BYTES, 'latin1')
          offset += ENTRY_BYTES
        }
        // As the last one, LMDB fills its pages: else it would leave them half empty.
        writes.push(() => recentIds.put(first + start, record, append))
      }
      state.counts.nextId += minted.length
      return () => {
        for (const [place, { hash }] of minted.entries()) index.add(printOf(hash), first + place)
      }
    },

    /**
     * Forgets the id of a message that is trimmed. One of the last five minutes stays until they are over.
     *
     * @param writes collects what is to be written
     */
    forget(
      room: number,
      { from, messageId = '', idNumber, idHash }: Pick<Stored, 'from' | 'messageId' | 'idNumber' | 'idHash'>,
      writes: Write[],
    ) {
      if (idNumber === undefined || idNumber >= state.counts.firstId) return
      state.counts.heldIds--
      const key = keyOf(room, idHash ?? hashOf(room, from, messageId))
      writes.push(() => heldIds.remove(key))
    },

    /**
     * Ends the five minutes of the oldest ids: each moves to its message, or is forgotten with it. The batch must not
     * trim messages as well: those that it takes still count as held.
     *
     * @param writes collects what is to be written, some `writesMax`
     * @returns to be called once it is
     */
    expire(openMs: number, writes: Write[], writesMax: number): () => void {
      /** The first message held, by room. */
      const oldest = new Map<number, number>()
      function oldestIn(room: number) {
        const [first] = messages.getKeys({ start: [room, 0], end: [room + 1, 0], limit: 1 })
        const seq = first?.[1] ?? Number.POSITIVE_INFINITY
        oldest.set(room, seq)
        return seq
      }
      let looked = 0
      let moved = 0
      for (const { key: first, value: record } of recentIds.getRange({})) {
        if (openMs - record.readDoubleBE(8) <= ID_MS) break
        if (looked >= LOOK_MAX || moved >= MOVE_MAX || writes.length >= writesMax) break
        for (let offset = HEAD_BYTES; offset < record.length; offset += ENTRY_BYTES) {
          looked++
          const room = record.readUIntBE(offset, NUMBER_BYTES)
          const seq = record.readUIntBE(offset + NUMBER_BYTES, NUMBER_BYTES)
          if (seq < (oldest.get(room) ?? oldestIn(room))) continue
          const hashAt = offset + 2 * NUMBER_BYTES
          const key = keyOf(room, record.toString('latin1', hashAt, hashAt + HASH_BYTES))
          const value = Buffer.from(record.subarray(offset + NUMBER_BYTES, hashAt))
          writes.push(() => heldIds.put(key, value))
          state.counts.heldIds++
          moved++
        }
        writes.push(() => recentIds.remove(first))
        state.counts.firstId = first + idsIn(record)
      }
      return () => index.forgetBefore(state.counts.firstId)
    },
  }
}

/** The first four bytes of a hash, as the index has them. */
const printOf = (hash: string) =>
  (hash.charCodeAt(0) | (hash.charCodeAt(1) << 8) | (hash.charCodeAt(2) << 16) | (hash.charCodeAt(3) << 24)) >>> 0

/** Ids that are known. */
export const idCountOf = ({ nextId, firstId, heldIds }: Counts) => nextId - firstId + heldIds

/** Bytes that count as kept. */
export const bytesKept = (counts: Counts) => counts.bytes + idCountOf(counts) * ID_BYTES + counts.rooms * ROOM_BYTES

export const idsIn = (record: Buffer) => (record.length - HEAD_BYTES) / ENTRY_BYTES
