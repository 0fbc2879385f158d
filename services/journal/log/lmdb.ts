// A log on this host's disk, in LMDB: one journal process, acknowledged once flushed. Gets read the last commit: batches
// do not overlap, so what a batch has changed so far is kept in `touched`.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Payer, World } from '@keycast/service'
import { createCharges, ROOM_ITSELF } from './charges.ts'
import { checkDataFile, DATA_FILE, lockFolder } from './folder.ts'
import { createLogClock } from './lmdb-clock.ts'
import { createCommits } from './lmdb-commits.ts'
import { createIds, digestOf, idCountOf, type Known, type Minted } from './lmdb-ids.ts'
import {
  type Counts,
  decode,
  decodeWithId,
  encode,
  type Meta,
  openTables,
  type Room,
  type Stored,
  type Tables,
} from './lmdb-layout.ts'
import { createLmdbOutbox } from './lmdb-outbox.ts'
import {
  bytesOf,
  EMPTY_MS,
  floorAbove,
  type Head,
  ID_BYTES,
  type Log,
  LogRefused,
  type Message,
  NO_DATA,
  nextValue,
  nothing,
  type Outcome,
  type Publish,
  type Retention,
  ROOM_BYTES,
  rangesOf,
  type SeqRange,
} from './log.ts'

/** Rooms that one call of `expire` looks at: a longer call would hold the loop up. */
const EXPIRE_AT_ONCE = 1_000

/** Rooms that are named at once. */
const ROOMS_AT_ONCE = 100

/** Writes of one call of `expire`, roughly, for the same reason. */
const EXPIRE_WRITES_MAX = 10_000

interface Options extends World {
  folder: string
  bytesMax: number
  /** Names the time since this machine was started. Where the system does not say it, every start is one after a crash. */
  boot?: string
  /** A clock that jumped forward must have stood for so long before messages expire by it. */
  shortenMs?: number
  report?: Parameters<typeof createLogClock>[0]['report']
}

/** @throws {LogRefused} */
export async function openLmdbLog({
  folder,
  bytesMax,
  shortenMs = 0,
  report = { warn() {}, info() {} },
  ...given
}: Options): Promise<Log> {
  const { now, wallNow, randomBytes } = given
  const newEpoch = () => randomBytes(9).toString('base64url')
  const boot = given.boot ?? readBoot() ?? newEpoch()
  const lock = await lockFolder(folder, given)
  let tables: Tables
  try {
    checkDataFile(folder, DATA_FILE)
    tables = openTables(folder)
  } catch (error) {
    await lock.release()
    if (error instanceof LogRefused) throw error
    throw new LogRefused(`${folder}/${DATA_FILE} cannot be opened: ${(error as Error).message}`)
  }
  const { env, rooms, due, messages, meta } = tables
  const commits = createCommits({ folder, tables, random: given.random, now })

  // A file that was restored from a backup lacks the messages acknowledged since. Their numbers will go to other
  // messages, so the file must not pass for the same history. A copy has another inode; a file moved within its file
  // system keeps its own.
  const { ino } = statSync(join(folder, DATA_FILE))
  const isKnownFile = meta.get('inode') === ino
  // A snapshot of a running machine or disk looks like a crash. So does a power cut, after which a disk that lied may
  // lack messages as well. Only a process that ended in order, or a machine that ran on, vouches for all of them.
  const isWhole = meta.get('isClosed') === true || meta.get('boot') === boot
  let epoch: string = (isKnownFile && isWhole && meta.get('epoch')) || newEpoch()
  const salt = meta.get('salt') ?? randomBytes(9).toString('base64url')
  const state = { counts: countsOf(tables) }
  const clock = createLogClock({ wallNow, now, lastMs: state.counts.timeMs, waitMs: shortenMs, report })
  const ids = createIds({ tables, state, salt })
  const outbox = createLmdbOutbox({ outbox: tables.outbox, state, commit, isOwned, time: clock.read })
  const charges = createCharges<number>({ bytesMax, random: given.random })
  /** How charges become what they were before the writes that are not committed yet. */
  let undoCharges: (() => void)[] = []
  const openedAt = now()
  /** For how long the log was open until it was opened now. */
  let openBeforeMs = 0
  /** Messages ever kept, as of the last commit. */
  let kept = 0
  /** What this process has written of the file itself. */
  let written: Partial<Meta> = {}
  /** The walk over all rooms, in case their `history` changed since their last publish. */
  let walk = newWalk()
  /** Of watched rooms that are not there, the seq that those who watch were told. */
  const floors = new Map<string, number>()

  /**
   * Before anything is written: a log on a full disk can be opened and read, and is claimed once there is room.
   *
   * @returns false if the disk is full
   */
  async function isOwned(): Promise<boolean> {
    if (commits.isClaimed()) return true
    if (!(await commits.claim())) return false
    load()
    return true
  }

  function load() {
    state.counts = countsOf(tables)
    openBeforeMs = state.counts.openMs
    kept = state.counts.kept
    ids.load()
    charges.load(heldCharges())
  }

  function* heldCharges() {
    for (const { key, value } of tables.charges.getRange({})) {
      const [id, seq] = key
      const room = rooms.get(value.room)
      if (room?.id === id && (seq === ROOM_ITSELF || seq >= room.oldest)) yield { room: id, seq, charge: value }
    }
  }

  const openMs = () => openBeforeMs + now() - openedAt

  /**
   * As `commits.commit`. Counts that were changed for it are as before where it fails.
   *
   * @param options `data`: bytes among the writes. `isClosed`: nothing is written after it. `nextEpoch`: begins with it
   */
  async function commit(
    writes: (() => Promise<unknown>)[],
    before: Counts,
    { data = 0, isClosed = false, nextEpoch = epoch }: { data?: number; isClosed?: boolean; nextEpoch?: string } = {},
  ) {
    const counts = { ...state.counts, openMs: openMs(), timeMs: clock.read() }
    const ofFile = { epoch: nextEpoch, inode: ino, boot, isClosed, salt }
    const changed = (Object.keys(ofFile) as (keyof typeof ofFile)[]).filter(name => ofFile[name] !== written[name])
    writes.push(() => meta.put('counts', counts), ...changed.map(name => () => meta.put(name, ofFile[name])))
    let isKept = false
    try {
      isKept = await commits.commit(writes, data)
    } finally {
      if (!isKept) {
        state.counts = before
        for (const undo of undoCharges.reverse()) undo()
      }
      undoCharges = []
    }
    if (isKept) {
      kept = counts.kept
      epoch = nextEpoch
      written = ofFile
    }
    return isKept
  }

  const bytesNow = () => state.counts.bytes + idCountOf(state.counts) * ID_BYTES + state.counts.rooms * ROOM_BYTES

  const roomOf = (name: string): Room | undefined => rooms.get(name)

  async function append(publishes: Publish[]): Promise<Outcome[]> {
    if (!(await isOwned())) return publishes.map(() => ({ error: 'log_full' }))
    const before = { ...state.counts }
    /** What its readers are told of a message; it expires by `time`. */
    const at = wallNow()
    const time = clock.read()
    const touched = new Map<string, Room>()
    /** Of them, those of which nothing is kept yet. */
    const added = new Set<Room>()
    /** By hash. */
    const known = new Map<string, Known>()
    const minted: Minted[] = []
    let dataBytes = 0
    const writes: (() => Promise<unknown>)[] = []

    const outcomes = publishes.map(publish => {
      const room = touched.get(publish.room) ?? roomOf(publish.room) ?? newRoom(publish)
      touched.set(publish.room, room)
      return publish.messageId === undefined ? keep(room, publish) : keepOnce(room, publish, publish.messageId)
    })
    for (const [name, room] of touched) {
      if (added.has(room)) continue
      trim(room, time, writes)
      put(name, room, time, writes)
    }
    for (const [index, { room }] of publishes.entries()) {
      const outcome = outcomes[index]
      if (outcome.error === undefined && !outcome.duplicate) outcome.oldest = touched.get(room)?.oldest
    }

    function keepOnce(room: Room, publish: Publish, messageId: string): Outcome {
      const { from, data } = publish
      const idHash = ids.hashOf(room.id, from, messageId)
      const digest = digestOf(data)
      const first = known.get(idHash) ?? recall(room.id, idHash)
      if (first) {
        if (first.digest !== undefined && digest !== first.digest) return { error: 'id_conflict' }
        return { position: { epoch, seq: first.seq }, at: first.at, duplicate: true }
      }
      const outcome = keep(room, publish, before.nextId + minted.length)
      if (outcome.error !== undefined) return outcome
      known.set(idHash, { seq: room.seq, at, digest })
      minted.push({ room: room.id, seq: room.seq, hash: idHash, digest })
      return outcome
    }

    function keep(
      room: Room,
      { room: name, messageId, from, data, retention, share = 1, payer, value, isTold }: Publish,
      idNumber?: number,
    ): Outcome {
      const rankBefore = room.value?.rank
      if (value?.rank !== undefined && rankBefore !== undefined && value.rank < rankBefore) {
        return { error: 'older', rank: rankBefore }
      }
      const weight = bytesOf({ data, from, messageId })
      const ownBytes = weight + (messageId === undefined ? 0 : ID_BYTES)
      const roomBytes = added.has(room) ? ROOM_BYTES : 0
      // Ids of this batch are not counted yet.
      const left = bytesMax * share - bytesNow() - minted.length * ID_BYTES
      const over = ownBytes + roomBytes - left
      if (over > 0 && !isRelieved(room, retention, weight, over)) return { error: 'log_full' }
      const refusal = charges.refusalOf(payer, ownBytes + roomBytes, left)
      if (refusal && !isRelieved(room, retention, weight, weight)) return { error: refusal }
      if (added.delete(room)) {
        state.counts.rooms++
        charge(name, [room.id, ROOM_ITSELF], payer, roomBytes)
      }
      if (value && room.oldest === room.seq) removeOnly(room)
      const seq = ++room.seq
      charge(name, [room.id, seq], payer, ownBytes)
      room.retention = retention
      if (room.oldest === seq) room.oldestAt = at
      room.bytes += weight
      dataBytes += data.length
      state.counts.kept++
      state.counts.bytes += weight
      writes.push(() => messages.put([room.id, seq], encode({ at, from, messageId, idNumber, data })))
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
      state.counts.bytes -= bytes
      room.bytes = 0
      room.oldest++
    }

    function charge(name: string, [id, seq]: [number, number], payer: Payer | undefined, bytes: number) {
      const charged = charges.add(id, seq, payer, bytes)
      if (!charged) return
      undoCharges.push(() => charges.take(id, seq))
      writes.push(() => tables.charges.put([id, seq], { ...charged, room: name }))
    }

    /** Whether so many bytes of the room go when a message of this weight comes. */
    function isRelieved({ id, oldest, seq, bytes }: Room, retention: Retention, weight: number, over: number) {
      let gone = 0
      for (let next = oldest; next <= seq && gone < over; next++) {
        const isTooMuch = seq - next + 2 > retention.messages || bytes - gone + weight > retention.bytes
        const message = stored(id, next)
        if (!message || !(isTooMuch || time - message.at > retention.ageMs)) return false
        gone += bytesOf(message)
      }
      return gone >= over
    }

    function newRoom({ room: name, retention }: Publish): Room {
      const seq = headOf(name, undefined).seq
      const room = { id: state.counts.nextRoom++, seq, oldest: seq + 1, oldestAt: 0, bytes: 0, retention }
      added.add(room)
      return room
    }

    if (writes.length === 0) return outcomes
    const indexIds = ids.note(minted, at, openMs(), writes)
    if (!(await commit(writes, before, { data: dataBytes }))) return publishes.map(() => ({ error: 'log_full' }))
    indexIds()
    return outcomes
  }

  function recall(room: number, idHash: string): Known | undefined {
    const found = ids.find(room, idHash)
    if (!found || 'digest' in found) return found
    const message = stored(room, found.seq)
    if (!message) return undefined
    const { at, data, deleted } = message
    // Of a deleted one nobody knows the data any more: it is the same one.
    return { seq: found.seq, at, digest: deleted ? undefined : digestOf(data) }
  }

  /**
   * @param time the log's: a room whose first message has a later one is looked at by this
   * @param writes collects the room, and its place among those to be looked at
   */
  function put(name: string, room: Room, time: number, writes: (() => Promise<unknown>)[]) {
    const dueAt = Math.min(room.oldestAt, time) + (isEmpty(room) ? EMPTY_MS : room.retention.ageMs)
    // One that is looked at earlier is given its next time then: a publish into a busy room writes no place.
    if (room.dueAt === undefined || dueAt < room.dueAt) {
      unschedule(room, writes)
      room.dueAt = dueAt
      writes.push(() => due.put([dueAt, room.id], name))
    }
    writes.push(() => rooms.put(name, room))
  }

  function unschedule(room: Room, writes: (() => Promise<unknown>)[]) {
    const { id, dueAt } = room
    if (dueAt === undefined) return
    room.dueAt = undefined
    writes.push(() => due.remove([dueAt, id]))
  }

  /**
   * @param room changed in place
   * @param time the log's
   * @param writes collects the removals
   */
  function trim(
    room: Room,
    time: number,
    writes: (() => Promise<unknown>)[],
    countMax: number = Number.POSITIVE_INFINITY,
  ) {
    const { id, retention } = room
    const oldestBefore = room.oldest
    // The clock went back since: the age counts from now, or the message would stay until that time has come.
    room.oldestAt = Math.min(room.oldestAt, wallNow())
    /** The first message held, if it was read. */
    let first
    while (room.oldest <= room.seq && room.oldest - oldestBefore < countMax) {
      const held = room.seq - room.oldest + 1
      // The newest message stays, however large: it was acknowledged.
      const isTooMuch = held > 1 && (held > retention.messages || room.bytes > retention.bytes)
      if (!isTooMuch && time - room.oldestAt <= retention.ageMs) break
      const seq = room.oldest
      first ??= stored(id, seq)
      // Kept and outdated in one batch: its write is among those to come, and so is its removal.
      if (!first) break
      const weight = bytesOf(first)
      const wasAheadMs = first.at - room.oldestAt
      room.bytes -= weight
      state.counts.bytes -= weight
      ids.forget(id, first, writes)
      discharge(id, seq, writes)
      room.oldest++
      first = stored(id, room.oldest)
      // A message that is not stored yet is of this batch. With the time of the message before it, it would go too
      // early.
      if (!first) room.oldestAt = isEmpty(room) ? time : wallNow()
      else room.oldestAt = first.at > wallNow() ? first.at - wasAheadMs : first.at
      writes.push(() => messages.remove([id, seq]))
    }
    return room.oldest > oldestBefore
  }

  /** @param id of a room @param writes collects the removal */
  function discharge(id: number, seq: number, writes: (() => Promise<unknown>)[]) {
    const charge = charges.take(id, seq)
    if (!charge) return
    undoCharges.push(() => charges.put(id, seq, charge))
    writes.push(() => tables.charges.remove([id, seq]))
  }

  /** @param id of a room */
  function stored(id: number, seq: number) {
    const found = messages.get([id, seq])
    return found && decodeWithId(found)
  }

  /**
   * @param room changed in place
   * @param writes collects what replaces the messages
   * @returns the seqs that were there
   */
  function deleteSome(room: Room, seqs: number[], writes: (() => Promise<unknown>)[]) {
    const { id } = room
    return seqs.filter(seq => {
      const message = seq < room.oldest ? undefined : stored(id, seq)
      if (!message || message.deleted || message.deletes) return false
      const { at, from, messageId, idNumber } = message
      const idHash = messageId === undefined ? undefined : ids.hashOf(id, from, messageId)
      const left: Stored = { at, from: '', messageId: undefined, data: NO_DATA, deleted: true, idNumber, idHash }
      weigh(room, bytesOf(left) - bytesOf(message))
      discharge(id, seq, writes)
      writes.push(() => messages.put([id, seq], encode(left)))
      return true
    })
  }

  /** @returns the number of messages that went, as far as one call may */
  function deleteAll(room: Room, time: number, writes: (() => Promise<unknown>)[]) {
    const { oldest, seq, retention } = room
    if (oldest === seq && stored(room.id, seq)?.deletes) return 0
    room.retention = nothing(retention)
    trim(room, time, writes, EXPIRE_WRITES_MAX)
    room.retention = retention
    return room.oldest - oldest
  }

  /** What tells readers of a deletion. */
  function addNotice(room: Room, deletes: SeqRange[], writes: (() => Promise<unknown>)[]): Message {
    const seq = ++room.seq
    const message = { at: wallNow(), from: '', messageId: undefined, data: NO_DATA, deletes }
    if (room.oldest === seq) room.oldestAt = message.at
    weigh(room, bytesOf(message))
    state.counts.kept++
    writes.push(() => messages.put([room.id, seq], encode(message)))
    return { seq, ...message }
  }

  function weigh(room: Room, bytes: number) {
    room.bytes += bytes
    state.counts.bytes += bytes
  }

  function headOf(name: string, room: Room | undefined): Head {
    if (!room) {
      const seq = floors.get(name) ?? state.counts.floor
      return { epoch, seq, oldest: seq + 1, bytes: 0 }
    }
    return { epoch, seq: room.seq, oldest: room.oldest, bytes: room.bytes, value: room.value }
  }

  async function expireIds() {
    const before = { ...state.counts }
    const writes: (() => Promise<unknown>)[] = []
    const forgetIndex = ids.expire(openMs(), writes)
    if (writes.length > 0 && (await commit(writes, before))) forgetIndex()
  }

  if (!(await isOwned())) load() // to be read, while the disk is full
  // Without it a position in an empty room would not outlive a restart; nor could a crash be told from an end in order.
  if (commits.isClaimed()) await commit([], state.counts)

  return {
    id: () => epoch,
    at: () => kept,

    renew: async () => (await isOwned()) && (await commit([], state.counts, { nextEpoch: newEpoch() })),
    append,

    async delete(name, seqs, isTold) {
      if (!(await isOwned())) return { error: 'log_full' }
      const before = { ...state.counts }
      const time = clock.read()
      const writes: (() => Promise<unknown>)[] = []
      const room = roomOf(name)
      const gone = room && seqs && deleteSome(room, seqs, writes)
      const count = gone ? gone.length : room ? deleteAll(room, time, writes) : 0
      if (!room || count === 0) return { messages: 0, more: false, notice: undefined }
      const more = !gone && !isEmpty(room)
      const message = more ? undefined : addNotice(room, gone ? rangesOf(gone) : [[1, room.seq]], writes)
      if (message && isTold) outbox.put(name, { epoch, ...message }, writes)
      put(name, room, time, writes)
      if (!(await commit(writes, before))) return { error: 'log_full' }
      return { messages: count, more, notice: message && { epoch, oldest: room.oldest, message } }
    },

    async rooms(cursor) {
      const names = [...rooms.getKeys({ start: `${cursor}\u0000`, limit: ROOMS_AT_ONCE })]
      return { rooms: names, cursor: names.length < ROOMS_AT_ONCE ? undefined : names.at(-1) }
    },

    head: async name => headOf(name, roomOf(name)),

    async read(name, range) {
      const room = roomOf(name)
      const head = headOf(name, room)
      const found: Message[] = []
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
      if (!(await isOwned())) return { trimmed: [], more: false }
      const before = { ...state.counts }
      const time = clock.read()
      const writes: (() => Promise<unknown>)[] = []
      const trimmed: { room: string; head: Head }[] = []
      const isEnough = () => writes.length >= EXPIRE_WRITES_MAX
      const look = (name: string, room: Room) => {
        if (trim(room, time, writes, EXPIRE_WRITES_MAX)) trimmed.push({ room: name, head: headOf(name, room) })
      }

      if (retentionOf && walk.retentionOf !== retentionOf) walk = newWalk(retentionOf)
      let looked = 0
      if (!walk.isOver) {
        for (const { key, value: room } of rooms.getRange({ start: walk.from, limit: EXPIRE_AT_ONCE })) {
          walk.from = key // the same room once more, if it has more to lose
          if (isEnough()) break
          looked++
          walk.from += '\u0000'
          const retention = walk.retentionOf?.(key) ?? room.retention
          if (room.dueAt !== undefined && isSame(retention, room.retention)) continue
          room.retention = retention
          look(key, room)
          put(key, room, time, writes)
        }
        walk.isOver = looked < EXPIRE_AT_ONCE && !isEnough()
      }
      const pastDue = walk.isOver ? due.getRange({ end: [time, 0], limit: EXPIRE_AT_ONCE }) : []
      for (const { value: name } of pastDue) {
        if (isEnough()) break
        looked++
        const room = rooms.get(name) as Room
        unschedule(room, writes)
        const isPast = isEmpty(room) && time - room.oldestAt > EMPTY_MS
        look(name, room)
        if (isPast && !floors.has(name)) {
          writes.push(() => rooms.remove(name))
          discharge(room.id, ROOM_ITSELF, writes)
          state.counts.rooms--
          state.counts.floor = floorAbove(state.counts.floor, room.seq)
          continue
        }
        if (isPast) room.oldestAt = time // it is watched
        put(name, room, time, writes)
      }
      commits.checkOwner()
      if (writes.length > 0 && !(await commit(writes, before))) {
        walk = newWalk(walk.retentionOf)
        return { trimmed: [], more: false }
      }
      await expireIds()
      return { trimmed, more: looked >= EXPIRE_AT_ONCE || isEnough() || !walk.isOver }
    },

    watch(name) {
      if (!floors.has(name)) floors.set(name, state.counts.floor)
    },
    unwatch: name => void floors.delete(name),

    outbox,

    notes: {
      read: async () => ({ text: meta.get('notes') ?? '', at: clock.read() }),
      async replace(before, after) {
        if ((meta.get('notes') ?? '') !== before) return false
        if (!(await isOwned())) return true
        await commit([() => meta.put('notes', after)], state.counts) // on a full disk it is said again after a restart
        return true
      },
    },

    stats: () => ({
      bytes: bytesNow(),
      bytesMax,
      rooms: state.counts.rooms,
      charged: charges.stats(),
      clockAheadMs: clock.aheadMs(),
    }),

    async close() {
      try {
        if (commits.isClaimed()) await commit([], state.counts, { isClosed: true })
      } finally {
        await env.close()
        await lock.release()
      }
    },
  }
}

function countsOf({ meta, rooms }: Pick<Tables, 'meta' | 'rooms'>): Counts {
  const stored = meta.get('counts')
  return {
    rooms: stored?.rooms ?? rooms.getCount(),
    floor: 0,
    bytes: 0,
    kept: 0,
    nextRoom: 1,
    nextId: 1,
    firstId: stored?.nextId ?? 1,
    heldIds: 0,
    openMs: 0,
    timeMs: undefined,
    outboxBytes: 0,
    ...stored,
  }
}

const newWalk = (retentionOf?: (room: string) => Retention | undefined) => ({ retentionOf, from: '', isOver: false })

const isEmpty = ({ oldest, seq }: Room) => oldest > seq

const isSame = (one: Retention, other: Retention) =>
  one.messages === other.messages && one.ageMs === other.ageMs && one.bytes === other.bytes

/** In a container it is the host's. */
function readBoot() {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}
