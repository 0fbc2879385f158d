// How a log lies in LMDB: its file, its tables, and a message in them. The log writes them; scripts/journal.js reads them.
import { join } from 'node:path'
import { open } from 'lmdb'
import { giveToOwner, LMDB_LOCK_FILE } from './folder.ts'

/**
 * `id` stands for the room's name in the keys of its messages. `oldest`, `oldestAt`: of the first message held.
 * @typedef {{ id: number, seq: number, oldest: number, oldestAt: number, bytes: number,
 *   retention: import('./log.ts').Retention }} Room
 *
 * Over all rooms: bytes of messages held, the number of messages ever kept, the next numbers to be given, the first id of the last five minutes, and the ids
 * that live with their messages. `openMs`: so long was the log open at its last commit.
 * @typedef {{ bytes: number, kept: number, nextRoom: number, nextId: number, firstId: number, heldIds: number, openMs: number }} Counts
 *
 * @typedef {ReturnType<typeof openTables>} Tables
 */

/**
 * @param {string} folder
 * @param {{ readOnly?: boolean }} [options]
 */
export function openTables(folder, { readOnly = false } = {}) {
  const env = open({
    path: folder,
    noSubdir: false,
    maxDbs: 8,
    encoding: 'json',
    eventTurnBatching: false,
    // With it a commit is seen before the disk has it, and after a failed flush as well.
    overlappingSync: false,
    readOnly,
  })
  // LMDB created it while no journal ran. If root owned it, a journal of another user could not start.
  if (readOnly) giveToOwner(join(folder, LMDB_LOCK_FILE))
  /** @type {import('lmdb').Database<Room, string>} */
  const rooms = env.openDB('rooms', { encoding: 'json' })
  /** By room id and seq. @type {import('lmdb').Database<Buffer, [number, number]>} */
  const messages = env.openDB('messages', { encoding: 'binary' })
  /** Records of lmdb-ids.ts, by the number of their first id. @type {import('lmdb').Database<Buffer, number>} */
  const recentIds = env.openDB('recent-ids', { encoding: 'binary' })
  /** By room id and hash, the seq. @type {import('lmdb').Database<Buffer, Buffer>} */
  const heldIds = env.openDB('held-ids', { encoding: 'binary', keyEncoding: 'binary' })
  /** `epoch` and the file and boot that it is of, `counts`, `salt` of hashes, and `notes`. @type {import('lmdb').Database<any, string>} */
  const meta = env.openDB('meta', { encoding: 'json' })
  /** Its one version names the process that may write. @type {import('lmdb').Database<{ pid: number }, string>} */
  const owner = env.openDB('owner', { encoding: 'json', useVersions: true })
  return { env, rooms, messages, recentIds, heldIds, meta, owner }
}

/**
 * @param {Omit<import('./log.ts').Message, 'seq'>} message
 * @param {number} [idNumber] of its messageId
 * @returns {Buffer} a line of JSON, then the data as it came
 */
export function encode({ at, from, messageId, data }, idNumber) {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ at, from, messageId, idNumber })}\n`), data])
}

/** @param {Buffer} stored @returns {Omit<import('./log.ts').Message, 'seq'>} */
export function decode(stored) {
  const { idNumber, ...message } = decodeWithId(stored)
  return message
}

/** @param {Buffer} stored @returns {Omit<import('./log.ts').Message, 'seq'> & { idNumber: number | undefined }} */
export function decodeWithId(stored) {
  const end = stored.indexOf(0x0a)
  const { at, from, messageId, idNumber } = JSON.parse(stored.toString('utf8', 0, end))
  return { at, from, messageId, idNumber, data: stored.subarray(end + 1) }
}
