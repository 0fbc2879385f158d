// How a log lies in LMDB: its file, its tables, and a message in them. The log writes them; keycast journal reads them.
import type { Message } from '@keycast/backbone'
import { type Database, type GetOptions, open } from 'lmdb'
import type { Charge } from '../charges.ts'
import type { Room as HeldRoom } from '../room.ts'

/**
 * `id` stands for the room's name in the keys of its messages. `oldestAt`: of the first message held; of an empty room, since
 * when it is. `dueAt`: its place in `due`; a log of a release before this has none.
 */
export interface Room extends HeldRoom {
  id: number
  oldestAt: number
  dueAt?: number
}

/**
 * Over all rooms: their number, bytes of messages held, the number of messages ever kept, the next numbers to be given,
 * the first id of the last five minutes, and the ids that live with their messages. `floor`: no number of a room that
 * was forgotten is above it. `openMs`: so long was the log open at its last commit; `timeMs`: by which messages expired then.
 * `outboxBytes`: of what backends are still to be told.
 */
export interface Counts {
  rooms: number
  floor: number
  bytes: number
  kept: number
  nextRoom: number
  nextId: number
  firstId: number
  heldIds: number
  openMs: number
  timeMs: number | undefined
  outboxBytes: number
}

/** As of the last commit; `counts` also of the batch under way. */
export interface State {
  counts: Counts
  epoch: string
}

/** `epoch`, with the file and the boot that it is of; `salt`: of hashes. */
export interface Meta {
  epoch: string
  inode: number
  boot: string
  isClosed: boolean
  counts: Counts
  salt: string
  notes: string
}

interface MetaTable {
  get: <Name extends keyof Meta>(name: Name, options?: GetOptions) => Meta[Name] | undefined
  put: <Name extends keyof Meta>(name: Name, value: Meta[Name]) => Promise<unknown>
  remove: (name: keyof Meta) => Promise<unknown>
}

export type Tables = ReturnType<typeof openTables>

/** @param folder of this process, or one to look into (see `lookInto`) */
export function openTables(folder: string, { readOnly = false }: { readOnly?: boolean } = {}) {
  const env = open({
    path: folder,
    noSubdir: false,
    maxDbs: 9,
    encoding: 'json',
    eventTurnBatching: false,
    // With it a commit is seen before the disk has it, and after a failed flush as well.
    overlappingSync: false,
    readOnly,
  })
  const rooms: Database<Room, string> = env.openDB('rooms', { encoding: 'json' })
  /** By the time to look at a room, and its id, its name: when its first message may be past its age, or it be forgotten. */
  const due: Database<string, [number, number]> = env.openDB('due', { encoding: 'json' })
  /** By room id and seq. */
  const messages: Database<Buffer, [number, number]> = env.openDB('messages', { encoding: 'binary' })
  /** By room id and seq; with the room's name. A release before this leaves some for messages that it removed. */
  const charges: Database<Charge & { room: string }, [number, number]> = env.openDB('charges', { encoding: 'json' })
  /** Records of ids.ts, by the number of their first id. */
  const recentIds: Database<Buffer, number> = env.openDB('recent-ids', { encoding: 'binary' })
  /** By room id and hash, the seq. */
  const heldIds: Database<Buffer, Buffer> = env.openDB('held-ids', { encoding: 'binary', keyEncoding: 'binary' })
  /** By room and seq, messages that a backend is still to be told; at 0 what it never will be. */
  const outbox: Database<Buffer, [string, number]> = env.openDB('outbox', { encoding: 'binary' })
  const meta = env.openDB('meta', { encoding: 'json' }) as unknown as MetaTable
  /** Its one version names the process that may write. */
  const owner: Database<{ pid: number }, string> = env.openDB('owner', { encoding: 'json', useVersions: true })
  return { env, rooms, due, messages, charges, recentIds, heldIds, outbox, meta, owner }
}

/** `idNumber` of its messageId. `idHash`: of a deleted one, which has nothing else left of that. `epoch`: in the outbox. */
export type Stored = Omit<Message, 'seq'> & { idNumber?: number; idHash?: string; epoch?: string }

/** @returns a line of JSON, then the data as it came */
export function encode({ data, ...head }: Stored): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), data])
}

export function decode(stored: Buffer): Omit<Message, 'seq'> {
  const { idNumber, idHash, ...message } = decodeWithId(stored)
  return message
}

export function decodeWithId(stored: Buffer): Stored {
  const end = stored.indexOf(0x0a)
  const { messageId, ...head } = JSON.parse(stored.toString('utf8', 0, end))
  return { ...head, messageId, data: stored.subarray(end + 1) }
}
