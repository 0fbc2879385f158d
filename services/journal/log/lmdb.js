// A log on this host's disk, in LMDB: one journal process, acknowledged once flushed. Gets read the last commit: batches
// do not overlap, so what a batch has changed so far is kept in `touched`.
import { hash, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { checkDataFile, DATA_FILE, lockFolder } from './folder.js'
import { createCommits } from './lmdb-commits.js'
import { decode, encode, openTables } from './lmdb-layout.js'
import { bytesOf, ID_MS, IDS_MAX, LogRefused } from './log.js'

/**
 * @typedef {import('./log.js').Log} Log
 * @typedef {import('./log.js').Message} Message
 * @typedef {import('./log.js').Outcome} Outcome
 * @typedef {import('./log.js').Publish} Publish
 * @typedef {import('./lmdb-layout.js').KnownId} KnownId
 * @typedef {import('./lmdb-layout.js').Room} Room
 */

/** Rooms and ids that one call of `expire` checks: a longer call would hold the loop up. */
const EXPIRE_AT_ONCE = 1_000

/** Messages that one call of `expire` removes, for the same reason. */
const EXPIRE_MESSAGES_MAX = 10_000

/**
 * @param {{ folder: string, bytesMax: number, now?: () => number, idsMax?: number }} options `now`: milliseconds since 1970
 * @returns {Promise<Log>}
 * @throws {LogRefused}
 */
export async function openLmdbLog({ folder, bytesMax, now = Date.now, idsMax = IDS_MAX }) {
  const lock = await lockFolder(folder)
  /** @type {import('./lmdb-layout.js').Tables} */
  let tables
  try {
    checkDataFile(folder, DATA_FILE)
    tables = openTables(folder)
  } catch (error) {
    await lock.release()
    if (error instanceof LogRefused) throw error
    throw new LogRefused(`${folder}/${DATA_FILE} cannot be opened: ${/** @type {Error} */ (error).message}`)
  }
  const { env, rooms, messages, ids, idsByAge, meta } = tables
  const commits = createCommits({ folder, tables })

  // A file that was restored from a backup lacks the messages acknowledged since. Their numbers will go to other
  // messages, so the file must not pass for the same history. A copy has another inode; a file moved within its file
  // system keeps its own.
  const { ino } = statSync(join(folder, DATA_FILE))
  const isKnownFile = meta.get('inode') === ino
  /** @type {string} */
  const epoch = (isKnownFile && meta.get('epoch')) || randomBytes(9).toString('base64url')
  let { bytes, nextRoom, nextId, idCount } = countsOf(meta)
  /** The position at which the next call of `expire` continues. */
  let expireFrom = ''

  /**
   * Before anything is written: a log on a full disk can be opened and read, and is claimed once there is room.
   *
   * @returns {Promise<boolean>} false if the disk is full
   */
  async function isOwned() {
    if (commits.isClaimed()) return true
    if (!(await commits.claim())) return false
    ;({ bytes, nextRoom, nextId, idCount } = countsOf(meta))
    return true
  }

  /** As `commits.commit`. @param {(() => Promise<unknown>)[]} writes @param {number} [data] bytes among them */
  function commit(writes, data) {
    const counts = { bytes, nextRoom, nextId, idCount }
    const state = [() => meta.put('epoch', epoch), () => meta.put('inode', ino), () => meta.put('counts', counts)]
    return commits.commit([...writes, ...state], data)
  }

  /** @param {string} name @returns {Room | undefined} */
  const roomOf = name => rooms.get(name)

  /** @param {Publish[]} publishes @returns {Promise<Outcome[]>} */
  async function append(publishes) {
    if (!(await isOwned())) return publishes.map(() => ({ error: 'log_full' }))
    const before = { bytes, nextRoom, nextId, idCount }
    const wanted = publishes.reduce((sum, publish) => sum + bytesOf(publish), 0)
    if (bytes + wanted > bytesMax) return publishes.map(() => ({ error: 'log_full' }))

    const at = now()
    /** @type {Map<string, Room>} */
    const touched = new Map()
    /** @type {Map<string, KnownId>} */
    const minted = new Map()
    /** @type {(() => Promise<unknown>)[]} */
    const writes = []

    const outcomes = publishes.map(publish => {
      const room = touched.get(publish.room) ?? roomOf(publish.room) ?? newRoom(publish.retention)
      touched.set(publish.room, room)
      return keep(room, publish)
    })
    for (const [name, room] of touched) {
      trim(room, at, writes)
      writes.push(() => rooms.put(name, room))
    }
    // Removes as many ids as came, and one more: ids do not pile up, however many messages there are a second.
    forgetIds(publishes.length + 1, at, writes)

    /** @param {Room} room @param {Publish} publish @returns {Outcome} */
    function keep(room, { room: name, messageId, from, data, retention }) {
      const digest = messageId === undefined ? '' : hash('sha256', data, 'base64url')
      if (messageId !== undefined) {
        const known = minted.get(`${name}\n${from}\n${messageId}`) ?? ids.get([room.id, from, messageId])
        if (known && known.digest !== digest) return { error: 'id_conflict' }
        if (known) return { position: { epoch, seq: known.seq }, at: known.at, duplicate: true }
      }
      const seq = ++room.seq
      room.retention = retention
      if (room.oldest === seq) room.oldestAt = at
      const weight = bytesOf({ data, from, messageId })
      room.bytes += weight
      bytes += weight
      writes.push(() => messages.put([room.id, seq], encode({ at, from, messageId, data })))
      if (messageId !== undefined) {
        const known = { seq, at, digest }
        minted.set(`${name}\n${from}\n${messageId}`, known)
        const number = nextId++
        idCount++
        writes.push(() => ids.put([room.id, from, messageId], known))
        writes.push(() => idsByAge.put([at, number], [room.id, from, messageId]))
      }
      return { position: { epoch, seq }, at, duplicate: false }
    }

    let kept = false
    try {
      kept = await commit(writes, wanted)
    } finally {
      if (!kept) ({ bytes, nextRoom, nextId, idCount } = before)
    }
    return kept ? outcomes : publishes.map(() => ({ error: 'log_full' }))
  }

  /** @param {import('./log.js').Retention} retention @returns {Room} */
  function newRoom(retention) {
    return { id: nextRoom++, seq: 0, oldest: 1, oldestAt: 0, bytes: 0, retention }
  }

  /**
   * @param {Room} room changed in place
   * @param {number} at
   * @param {(() => Promise<unknown>)[]} writes collects the removals
   * @param {number} [countMax]
   */
  function trim(room, at, writes, countMax = Number.POSITIVE_INFINITY) {
    const { id, retention } = room
    const oldestBefore = room.oldest
    /** The first message held, if it was read. */
    let first
    while (room.oldest <= room.seq && room.oldest - oldestBefore < countMax) {
      const held = room.seq - room.oldest + 1
      // The newest message stays, however large: it was acknowledged.
      const isTooMuch = held > 1 && (held > retention.messages || room.bytes > retention.bytes)
      if (!isTooMuch && at - room.oldestAt <= retention.ageMs) break
      const seq = room.oldest
      first ??= stored(id, seq)
      // Kept and outdated in one batch: its write is among those to come, and so is its removal.
      if (!first) break
      const weight = bytesOf(first)
      room.bytes -= weight
      bytes -= weight
      room.oldest++
      first = stored(id, room.oldest)
      // A message that is not stored yet is of this batch. With the time of the message before it, it would go too
      // early.
      room.oldestAt = first ? first.at : at
      writes.push(() => messages.remove([id, seq]))
    }
    return room.oldest > oldestBefore
  }

  /** @param {number} id of a room @param {number} seq */
  function stored(id, seq) {
    const found = messages.get([id, seq])
    return found && decode(found)
  }

  /**
   * Forgets the oldest ids: those over the bound, and those whose time is over and whose message is gone.
   *
   * @param {number} limit of ids looked at
   * @param {number} at
   * @param {(() => Promise<unknown>)[]} writes collects the removals
   */
  function forgetIds(limit, at, writes) {
    for (const { key, value: id } of idsByAge.getRange({ limit })) {
      if (idCount <= idsMax && at - key[0] <= ID_MS) break
      const known = ids.get(id)
      const isHeld = known !== undefined && messages.doesExist([id[0], known.seq])
      writes.push(() => idsByAge.remove(key))
      if (isHeld && idCount <= idsMax) {
        // Checked again when it may be gone.
        const number = nextId++
        writes.push(() => idsByAge.put([at, number], id))
      } else {
        idCount--
        writes.push(() => ids.remove(id))
      }
    }
  }

  /** @param {Room | undefined} room @returns {import('./log.js').Head} */
  function headOf(room) {
    if (!room) return { epoch, seq: 0, oldest: 1, bytes: 0 }
    return { epoch, seq: room.seq, oldest: room.oldest, bytes: room.bytes }
  }

  // Without the second write a position in an empty room would not outlive a restart.
  if ((await isOwned()) && !isKnownFile) await commit([])

  return {
    id: () => epoch,
    append,
    head: async name => headOf(roomOf(name)),

    async read(name, range) {
      const room = roomOf(name)
      const head = headOf(room)
      /** @type {Message[]} */
      const found = []
      if (!room || (range.epoch !== undefined && range.epoch !== epoch)) return { head, messages: found }
      const isForward = 'after' in range
      const first = Math.max(isForward ? range.after + 1 : 0, room.oldest)
      const last = isForward ? head.seq : Math.min(range.before - 1, head.seq)
      if (first > last) return { head, messages: found }
      let left = range.bytesMax
      const scanned = isForward
        ? messages.getRange({ start: [room.id, first], end: [room.id, last + 1], limit: range.limit })
        : messages.getRange({ start: [room.id, last], end: [room.id, first - 1], limit: range.limit, reverse: true })
      for (const { key, value } of scanned) {
        const message = { seq: key[1], ...decode(value) }
        left -= message.data.length
        if (left < 0 && found.length > 0) break
        found.push(message)
      }
      return { head, messages: isForward ? found : found.reverse() }
    },

    async expire(retentionOf) {
      if (!(await isOwned())) return 0
      const before = { bytes, nextRoom, nextId, idCount }
      const at = now()
      /** @type {(() => Promise<unknown>)[]} */
      const writes = []
      let touched = 0
      let looked = 0
      let lastName = ''
      for (const { key, value: room } of rooms.getRange({ start: expireFrom, limit: EXPIRE_AT_ONCE })) {
        if (writes.length >= EXPIRE_MESSAGES_MAX) break
        looked++
        lastName = key
        room.retention = retentionOf?.(key) ?? room.retention
        if (!trim(room, at, writes, EXPIRE_MESSAGES_MAX)) continue
        touched++
        writes.push(() => rooms.put(key, room))
      }
      // The next key after that name; or the same room once more, which may have more to lose.
      if (writes.length >= EXPIRE_MESSAGES_MAX) expireFrom = lastName
      else expireFrom = looked < EXPIRE_AT_ONCE ? '' : `${lastName}\u0000`
      forgetIds(EXPIRE_AT_ONCE, at, writes)
      commits.checkOwner()
      if (writes.length === 0) return touched
      let kept = false
      try {
        kept = await commit(writes)
      } finally {
        if (!kept) ({ bytes, nextRoom, nextId, idCount } = before)
      }
      return kept ? touched : 0
    },

    notes: {
      read: async () => ({ text: meta.get('notes') ?? '', at: now() }),
      async replace(before, after) {
        if ((meta.get('notes') ?? '') !== before) return false
        if (!(await isOwned())) return true
        await commit([() => meta.put('notes', after)]) // on a full disk it is said again after a restart
        return true
      },
    },

    stats: () => ({ bytes, bytesMax, rooms: nextRoom - 1 }),

    async close() {
      await env.close()
      await lock.release()
    },
  }
}

/** @param {import('./lmdb-layout.js').Tables['meta']} meta @returns {import('./lmdb-layout.js').Counts} */
const countsOf = meta => meta.get('counts') ?? { bytes: 0, nextRoom: 1, nextId: 1, idCount: 0 }
