// For tests: a log in memory that many journals share, as they share a Valkey. Each call takes its time, may fail, and is over
// with its process. It notes all that was ever kept, and all that was deleted.
import type { Message } from '@keycast/backbone'
import { decodeKept, readPushedKey } from '@keycast/backbone'
import type { Position } from '@keycast/protocol'
import type { World } from '@keycast/service'
import { type Log, type Outbox, OWN_MS, type Publish } from '../journal/log/log.ts'
import { createMemoryLog } from '../journal/log/memory/memory.ts'
import type { Process } from './process.fixture.ts'

/** `at`, `deletedAt`: by the network's clock. */
export interface KeptMessage {
  room: string
  seq: number
  from: string
  data: string
  at: number
  deletedAt: number
  isTold: boolean
}

/** `text`: `undefined` where it was removed. */
export interface KeptValue {
  order: number
  rank: number | undefined
  text: string | undefined
  version: string | undefined
  at: number
}

interface Options {
  world: World
  after: World['after']
  integer: (below: number) => number
  pick: <T>(list: T[]) => T
}

export type SharedLog = ReturnType<typeof createSharedLog>

export function createSharedLog({ world, after, integer, pick }: Options) {
  const memory = createMemoryLog({ ...world, bytesMax: 2 ** 30 })
  const messages = new Map<string, KeptMessage>()
  const values = new Map<string, KeptValue[]>()
  /** In percent. */
  const failing = { reads: 0, appends: 0, hints: 0 }
  const amiss: string[] = []
  const listeners = new Map<Process, (room: string, position: Position) => void>()
  const watching = new Map<string, Set<Process>>()
  const newlyTold = new Set<string>()
  let teller: { process: Process; untilMs: number } | undefined
  const { now } = world

  const sleep = (ms: number) => new Promise<void>(resolve => after(ms, resolve))

  /** Some way to the log, and back. A process that died meanwhile hears nothing, and one that stands still later. */
  const call =
    (process: Process, share: 'reads' | 'appends') =>
    async <T>(run: () => Promise<T>): Promise<T> => {
      const fails = () => integer(100) < failing[share]
      if (integer(3) === 0) await sleep(pick([0.25, 1, 5, 40, 700]))
      const isLost = fails()
      if (process.isDead) return new Promise(() => {})
      const outcome = isLost ? undefined : await run()
      if (integer(3) === 0) await sleep(pick([0.25, 1, 5, 40, 700]))
      const isUnheard = isLost || fails()
      return new Promise((resolve, reject) =>
        process.run(() => (isUnheard ? reject(new Error('away')) : resolve(outcome as T))),
      )
    }

  function hint(room: string, position: Position) {
    for (const [process, listener] of listeners) {
      if (integer(100) < failing.hints) continue
      after(pick([0.25, 1, 30]), () => process.run(() => listener(room, position)))
    }
  }

  function noteMessage({ room, from, data, isTold = false }: Publish, seq: number) {
    const noted = { room, seq, from, data: String(data), at: now(), deletedAt: Number.POSITIVE_INFINITY, isTold }
    messages.set(`${room} ${seq}`, noted)
  }

  function noteValue({ room, data }: Publish, { order, rank }: { order: number; rank: number | undefined }) {
    const key = readPushedKey(room) as string
    const content = decodeKept(data)
    const of = values.get(key) ?? []
    values.set(key, of)
    of.push({ order, rank, text: content && String(content.body), version: content?.version, at: now() })
  }

  async function append(publishes: Publish[]) {
    const outcomes = await memory.append(publishes)
    for (const [index, outcome] of outcomes.entries()) {
      const publish = publishes[index]
      if (outcome.error !== undefined || outcome.duplicate) continue
      const { position, value } = outcome
      if (value) noteValue(publish, { order: value.order, rank: publish.value?.rank })
      else noteMessage(publish, position.seq)
      if (publish.isTold) newlyTold.add(publish.room)
      hint(publish.room, position)
    }
    return outcomes
  }

  async function remove(room: string, seqs?: number[], isTold?: boolean) {
    const { oldest, seq: last } = await memory.head(room)
    const deletion = await memory.delete(room, seqs, isTold)
    if (!('notice' in deletion) || !deletion.notice) return deletion
    const { epoch, message } = deletion.notice
    for (let seq = oldest; seq <= last; seq++) {
      const kept = messages.get(`${room} ${seq}`)
      if (kept && message.deletes?.some(([first, end]) => first <= seq && seq <= end))
        kept.deletedAt = Math.min(kept.deletedAt, now())
    }
    noteMessage({ room, from: '', data: message.data } as Publish, message.seq)
    if (isTold) newlyTold.add(room)
    hint(room, { epoch, seq: message.seq })
    return deletion
  }

  function outboxOf(process: Process): Outbox {
    const { rooms, read, take, remove: removeUntold, stats } = memory.outbox
    const reads = call(process, 'reads')
    const writes = call(process, 'reads')
    return {
      async *rooms() {
        yield* await reads(async () => rooms())
      },
      read: (room, range) => reads(() => read(room, range)),
      take: parts => writes(() => take(parts)),
      remove: (room, seqs) =>
        writes(async () => {
          await removeUntold(room, seqs)
          // Those that the room's history had no more are in no deletion.
          for (const seq of seqs) Object.assign(messages.get(`${room} ${seq}`) ?? {}, { isTold: false })
        }),
      stats,
      own: () =>
        writes(async () => {
          const isFree = !teller || teller.untilMs <= now() || teller.process === process
          if (isFree) teller = { process, untilMs: now() + OWN_MS }
          return isFree
        }),
      news: () =>
        reads(async () => {
          const rooms = [...newlyTold]
          newlyTold.clear()
          return rooms
        }),
    }
  }

  return {
    memory,
    messages,
    values,
    failing,
    amiss,

    /** All that a room holds. */
    async held(room: string): Promise<Message[]> {
      const { messages } = await memory.read(room, { after: 0, limit: 1e6, bytesMax: 1e9 })
      return messages
    },

    /** As a journal has it. */
    of(process: Process): Log {
      const reads = call(process, 'reads')
      const appends = call(process, 'appends')
      return {
        ...memory,
        append: publishes => appends(() => append(publishes)),
        delete: (...how) => appends(() => remove(...how)),
        read: (...how) => reads(() => memory.read(...how)),
        head: room => reads(() => memory.head(room)),
        async *rooms() {
          yield* await reads(async () => memory.rooms())
        },
        expire: retentionOf => reads(() => memory.expire(retentionOf)),
        outbox: outboxOf(process),
        watch(room) {
          const by = watching.get(room) ?? new Set()
          watching.set(room, by.add(process))
          memory.watch(room)
        },
        unwatch(room) {
          const by = watching.get(room)
          by?.delete(process)
          if (by?.size === 0) memory.unwatch(room)
        },
        news: {
          listen: listener => void listeners.set(process, listener),
          heads: rooms => reads(() => Promise.all(rooms.map(async room => ({ room, head: await memory.head(room) })))),
        },
      }
    },
  }
}
