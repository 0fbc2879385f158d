// A log on this host's disk, in LMDB: one journal process, acknowledged once flushed.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Message } from '@keycast/backbone'
import type { World } from '@keycast/service'
import { type Log, LogRefused } from '../log.ts'
import { readHeld } from '../room.ts'
import { createAppend } from './append.ts'
import { createLogClock } from './clock.ts'
import { type CommitOptions, createCommits, type Write } from './commits.ts'
import { createDeletion } from './deletion.ts'
import { createExpiry } from './expiry.ts'
import { checkDataFile, DATA_FILE, lockFolder } from './folder.ts'
import { bytesKept, createIds } from './ids.ts'
import { createKeptCharges } from './kept-charges.ts'
import { type Counts, decode, type Meta, openTables, type State, type Tables } from './layout.ts'
import { createLmdbOutbox } from './outbox.ts'
import { createRooms } from './rooms.ts'

/** Rooms that are looked up at once. */
const ROOMS_AT_ONCE = 100

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
  let isOpen = false
  const lock = await lockFolder(folder, given, () => (isOpen ? hold() : undefined))
  let tables: Tables
  try {
    checkDataFile(folder, DATA_FILE)
    tables = openTables(folder)
  } catch (error) {
    await lock.release()
    if (error instanceof LogRefused) throw error
    throw new LogRefused(`${folder}/${DATA_FILE} cannot be opened: ${(error as Error).message}`)
  }
  const { env, messages, meta } = tables
  isOpen = true
  const commits = createCommits({ folder, tables, random: given.random, now })

  // A file that was restored from a backup lacks the messages acknowledged since. Their numbers will go to other
  // messages, so the file must not pass for the same history. A copy has another inode; a file moved within its file
  // system keeps its own.
  const { ino } = statSync(join(folder, DATA_FILE))
  const isKnownFile = meta.get('inode') === ino
  // A snapshot of a running machine or disk looks like a crash. So does a power cut, after which a disk that lied may
  // lack messages as well. Only a process that ended in order, or a machine that ran on, vouches for all of them.
  const isWhole = meta.get('isClosed') === true || meta.get('boot') === boot
  const epoch: string = (isKnownFile && isWhole && meta.get('epoch')) || newEpoch()
  const salt = meta.get('salt') ?? randomBytes(9).toString('base64url')
  const state: State = { counts: countsOf(tables), epoch }
  const clock = createLogClock({ wallNow, now, lastMs: state.counts.timeMs, waitMs: shortenMs, report })
  const ids = createIds({ tables, state, salt })
  const charges = createKeptCharges({ tables, bytesMax, random: given.random })
  const rooms = createRooms({ tables, state, ids, charges, wallNow })
  const outbox = createLmdbOutbox({ outbox: tables.outbox, state, commit, isOwned, time: clock.read })
  const parts = { tables, state, rooms, ids, charges, outbox, clock, wallNow, openMs, isOwned, commit }
  const openedAt = now()
  /** For how long the log was open until it was opened now. */
  let openBeforeMs = 0
  /** As of the last commit. */
  let committed = state.counts
  /** What this process has written of the file itself. */
  let written: Partial<Meta> = {}

  /** LMDB uses no page again that a transaction may read. */
  function hold() {
    const transaction = env.useReadTransaction()
    return () => {
      if (isOpen) transaction.done()
    }
  }

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
    committed = countsOf(tables)
    state.counts = { ...committed }
    openBeforeMs = committed.openMs
    ids.load()
    charges.load()
  }

  function openMs() {
    return openBeforeMs + now() - openedAt
  }

  /** As `commits.commit`. Where it fails, changes in memory that were made for it are undone. */
  async function commit(writes: Write[], { data = 0, isClosed = false, nextEpoch = state.epoch }: CommitOptions = {}) {
    const counts = { ...state.counts, openMs: openMs(), timeMs: clock.read() }
    const ofFile = { epoch: nextEpoch, inode: ino, boot, isClosed, salt }
    const changed = (Object.keys(ofFile) as (keyof typeof ofFile)[]).filter(name => ofFile[name] !== written[name])
    writes.push(() => meta.put('counts', counts), ...changed.map(name => () => meta.put(name, ofFile[name])))
    let isKept = false
    try {
      isKept = await commits.commit(writes, data)
    } finally {
      charges.settle(isKept)
      if (!isKept) state.counts = { ...committed }
    }
    if (isKept) {
      committed = counts
      state.epoch = nextEpoch
      written = ofFile
    }
    return isKept
  }

  function* scan(room: number, from: number, to: number, limit: number): Generator<Message> {
    const reverse = from > to
    const end = [room, reverse ? to - 1 : to + 1] as [number, number]
    for (const { key, value } of messages.getRange({ start: [room, from], end, limit, reverse })) {
      yield { seq: key[1], ...decode(value) }
    }
  }

  if (!(await isOwned())) load() // to be read, while the disk is full
  // Without it a position in an empty room would not outlive a restart; nor could a crash be told from an end in order.
  if (commits.isClaimed()) await commit([])

  return {
    id: () => state.epoch,
    at: () => committed.kept,

    renew: async () => (await isOwned()) && (await commit([], { nextEpoch: newEpoch() })),
    append: createAppend({ ...parts, bytesMax }),
    delete: createDeletion(parts),
    expire: createExpiry({ ...parts, checkOwner: commits.checkOwner }),

    async *rooms() {
      // Not in one range, which would keep LMDB from using pages again until its end.
      for (let part = ['']; part.length > 0; ) {
        part = [...tables.rooms.getKeys({ start: `${part.at(-1)}\u0000`, limit: ROOMS_AT_ONCE })]
        yield* part
      }
    },

    head: async name => rooms.head(name),

    async read(name, range) {
      const room = rooms.get(name)
      const head = rooms.head(name, room)
      if (!room || (range.epoch !== undefined && range.epoch !== state.epoch)) return { head, messages: [] }
      return { head, messages: readHeld(room, range, (from, to) => scan(room.id, from, to, range.limit)) }
    },

    watch: rooms.watch,
    unwatch: rooms.unwatch,

    outbox,

    notes: {
      read: async () => ({ text: meta.get('notes') ?? '', at: clock.read() }),
      async replace(before, after) {
        if ((meta.get('notes') ?? '') !== before) return false
        if (!(await isOwned())) return true
        await commit([() => meta.put('notes', after)]) // on a full disk it is said again after a restart
        return true
      },
    },

    disk: commits.disk,

    stats: () => ({
      bytes: bytesKept(state.counts),
      bytesMax,
      rooms: state.counts.rooms,
      charged: charges.stats(),
      clockAheadMs: Math.round(clock.aheadMs()),
    }),

    async close() {
      try {
        if (commits.isClaimed()) await commit([], { isClosed: true })
      } finally {
        isOpen = false
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

/** In a container it is the host's. */
function readBoot() {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}
