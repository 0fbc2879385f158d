// A log in Valkey, which many journals share. Valkey gives every message its number, so any journal may append, and one
// order comes out. The functions that run inside Valkey are in valkey.lua.
import type { Message } from '@keycast/backbone'
import type { Position } from '@keycast/protocol'
import { createOnceAMinute, type Log as LogOf, type World } from '@keycast/service'
import { type Kind, kinds } from '../charges.ts'
import {
  type Head,
  type Log,
  type News,
  NO_DATA,
  type Outcome,
  type Publish,
  type Range,
  type Retention,
} from '../log.ts'
import { type Appended, argumentsOf, callsOf, outcomesOf } from './append.ts'
import { checkOneServer, checkValkey } from './checks.ts'
import { createConnection, type Session } from './connection.ts'
import { endIfChanged, isReadOnly, noticing, refusalOf } from './errors.ts'
import { call, loadFunctions, look, scanAll } from './functions.ts'
import { type Entry, messageOf, rankOf, withDeleted } from './messages.ts'
import { createValkeyOutbox } from './outbox.ts'
import { createRetentionWalk } from './retention-walk.ts'

/** Replicas must have a batch on disk within this time. After it nobody knows whether the batch is kept. */
const ACKNOWLEDGE_MS = 2_000

/** Rooms and ids that one call of `expire` checks, and rooms in one comparison. */
const EXPIRE_AT_ONCE = 200
const HEADS_AT_ONCE = 1_000

/** Valkey cuts off a client to which it owes 32 MiB of replies, of one command as well. */
const SUBSCRIBE_AT_ONCE = 1_000

const CHANNEL = 'keycast:news:'

/** As in valkey.lua: it has every room. */
const EXPIRY = 'keycast:expiry'

/**
 * The reply of delete: the epoch, the bytes and rooms held, how many messages went, whether there are more, and of what
 * tells readers its seq, its time, what it deletes, and the oldest seq.
 */
type DeletedReply = [
  epoch: string,
  bytes: number,
  rooms: number,
  messages: number,
  more: number,
  told: [] | [seq: number, at: number, deletes: Buffer, oldest: number],
]

type ReadReply = [
  epoch: Buffer | null,
  seq: number,
  oldest: number,
  bytes: number,
  entries: Entry[],
  isEnd: number,
  order: number,
  rank: Buffer,
]

interface Options extends World {
  /** Of the primary. */
  url: string
  bytesMax: number
  /** The number that must have a batch on disk before it is acknowledged. */
  replicasMin?: number
  /** Also uses a Valkey that may lose acknowledged messages. */
  allowsLoss?: boolean
  /**
   * In place of Valkey's own clock, for tests: milliseconds since 1970. A journal whose clock is ahead would trim what all
   * journals share.
   */
  valkeyNow?: () => number
  /** Valkey must be reached within this time. */
  startMs?: number
  report: Pick<LogOf, 'warn' | 'error' | 'info'>
}

/** @throws {LogRefused} if it would lose messages or cannot be used */
export async function openValkeyLog({
  url,
  bytesMax,
  replicasMin = 0,
  allowsLoss = false,
  valkeyNow,
  startMs,
  report,
  ...world
}: Options): Promise<Log & { news: News }> {
  const isLogDue = createOnceAMinute(world.now)
  const newEpoch = () => world.randomBytes(9).toString('base64url')
  let acknowledgement = { local: 1, replicas: replicasMin }
  let stored = { bytes: 0, rooms: 0 }
  let charged: Record<Kind, number> = { users: 0, guests: 0, addresses: 0 }
  let epoch = ''
  let id = ''
  const watched = new Set<string>()
  /** By which it listens: rooms are come to and left while that is made. */
  let listening: Session | undefined
  let onNews: (room: string, position: Position) => void = () => {}

  const connection = createConnection({
    ...world,
    url,
    startMs,
    prepare,
    onMessage(channel, message) {
      const [epochHeard, seq] = message.split(' ')
      onNews(channel.slice(CHANNEL.length), { epoch: epochHeard, seq: Number(seq) })
    },
    onLost(error) {
      if (isLogDue(error.message)) report.error({ err: error }, 'Valkey cannot be used: nothing is kept meanwhile')
    },
  })

  async function prepare(session: Session) {
    await checkOneServer(session)
    const checked = await checkValkey(session, { where: connection.where, replicasMin, allowsLoss })
    acknowledgement = checked.acknowledgement
    for (const loss of checked.losses) if (isLogDue(loss)) report.warn(`Valkey may lose messages: ${loss}`)
    await loadFunctions(session)
    await renew(session).catch(error => readOnly(session, error))
    listening = session
    const rooms = [...watched]
    for (let start = 0; start < rooms.length; start += SUBSCRIBE_AT_ONCE) {
      const part = rooms.slice(start, start + SUBSCRIBE_AT_ONCE).filter(room => watched.has(room))
      if (part.length > 0) await session.subscribe(part.map(room => CHANNEL + room))
    }
    report.info({ where: connection.where, epoch }, 'Valkey is connected')
  }

  /** Sets the epoch that belongs to the server as it is now. */
  async function renew(session: Session) {
    const [renewed, bytes, rooms, idNow] = await call<[string, number, number, string]>(session, 'open', newEpoch())
    stored = { bytes, rooms }
    id = idNow
    noteEpoch(renewed)
  }

  /** A primary that takes no write can be read in the epoch that is there. */
  async function readOnly(session: Session, error: Error) {
    if (!isReadOnly(error)) throw error
    const [isRight, epochThere, idThere] = await look<[number, Buffer, Buffer]>(session, 'heads')
    if (isRight !== 1) throw error
    id = String(idThere)
    noteEpoch(String(epochThere))
  }

  function noteEpoch(epochNow: string) {
    if (epoch !== '' && epochNow !== epoch) {
      report.warn({ from: epoch, to: epochNow }, 'Valkey started again or failed over: every room has a new epoch')
    }
    epoch = epochNow
  }

  /** @throws {Error} where there is none */
  function sessionNow(): Session {
    const session = connection.session()
    if (!session) throw new Error(`Valkey at ${connection.where} cannot be reached`)
    return session
  }

  async function append(publishes: Publish[]): Promise<Outcome[]> {
    const session = connection.session()
    if (!session) return publishes.map(() => ({ error: 'journal_unavailable' }))
    const calls = callsOf(publishes)
    const candidate = newEpoch()
    const replies = Promise.allSettled(
      calls.map(part => {
        const args = argumentsOf(part, { bytesMax, random: world.random })
        return call<Appended>(session, 'append', time(), candidate, ...args)
      }),
    )
    const isAcknowledged = acknowledged(session)
    const ended = await replies
    const byPublish = new Map<Publish, Outcome>()
    let isKept = false
    for (const [index, reply] of ended.entries()) {
      const part = calls[index]
      if (reply.status === 'fulfilled') {
        isKept = true
        const [epochNow, bytes, rooms] = reply.value
        stored = { bytes, rooms }
        noteEpoch(epochNow)
        for (const [place, outcome] of outcomesOf(reply.value).entries()) byPublish.set(part[place], outcome)
      } else {
        const error = refusalOf(reply.reason)
        endIfChanged(session, reply.reason)
        for (const publish of part) byPublish.set(publish, { error })
      }
    }
    const outcomes = publishes.map(publish => byPublish.get(publish) as Outcome)
    if (!(await isAcknowledged) && isKept) throw notAcknowledged()
    hint(session, publishes, outcomes)
    return outcomes
  }

  /** Whether all that the session was told so far is on disk: it answers also when the time is over. */
  async function acknowledged(session: Session) {
    const { local, replicas } = acknowledgement
    if (local + replicas === 0) return true
    try {
      const counts = await session.write<number[]>(['WAITAOF', String(local), String(replicas), String(ACKNOWLEDGE_MS)])
      return counts[0] >= local && counts[1] >= replicas
    } catch {
      return false
    }
  }

  const notAcknowledged = () =>
    new Error(
      `Valkey did not say within ${ACKNOWLEDGE_MS} ms that ${acknowledgement.replicas} replicas have the batch on disk`,
    )

  /** The time for a call; none if Valkey is to look at its clock. */
  const time = () => String(valkeyNow?.() ?? '')

  /** Tells other journals of a room that has news. */
  function hintOf({ read }: Session, room: string, { epoch, seq }: Position) {
    read(['SPUBLISH', CHANNEL + room, `${epoch} ${seq}`]).catch(() => {}) // the next comparison tells
  }

  function hint(session: Session, publishes: Publish[], outcomes: Outcome[]) {
    const heads = new Map<string, Position>()
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.error === undefined && !outcome.duplicate) heads.set(publishes[index].room, outcome.position)
    }
    for (const [room, position] of heads) hintOf(session, room, position)
  }

  async function read(room: string, range: Range): Promise<{ head: Head; messages: Message[] }> {
    const [side, bound] = 'after' in range ? ['after', range.after] : ['before', range.before]
    const args = [room, side, String(bound), String(range.limit), String(range.bytesMax), range.epoch ?? '']
    const reply = await look<ReadReply>(sessionNow(), 'read', ...args)
    const [epochNow, seq, oldest, bytes, entries, isEnd, order, rank] = reply
    if (epochNow === null) throw new Error('Valkey was emptied')
    const isForward = 'after' in range
    const first = isForward ? Math.max(range.after + 1, oldest) : Math.min(range.before - 1, seq)
    const end = isEnd === 1 && !isForward ? oldest - 1 : undefined
    const step = isForward ? 1 : -1
    const messages = withDeleted(entries.map(messageOf), { first, end, step, limit: range.limit })
    if (!isForward) messages.reverse()
    const value = order > 0 ? { order, rank: rankOf(rank) } : undefined
    return { head: { epoch: String(epochNow), seq, oldest, bytes, value }, messages }
  }

  /** @returns whether there may be more to do */
  async function expire(session: Session, retentionOf?: (room: string) => Retention | undefined): Promise<boolean> {
    const isWalking = retentionOf !== undefined && (await walk.step(session, retentionOf, epoch))
    const args = [time(), String(EXPIRE_AT_ONCE), CHANNEL]
    const reply = await call<[number, number, number, number[]]>(session, 'expire', ...args)
    const [touched, bytes, rooms, ofKinds] = reply
    stored = { bytes, rooms }
    charged = Object.fromEntries(kinds.map((kind, index) => [kind, ofKinds[index]])) as typeof charged
    return touched > 0 || isWalking
  }

  async function headsOf(session: Session, rooms: string[]) {
    const found = []
    for (let start = 0; start === 0 || start < rooms.length; start += HEADS_AT_ONCE) {
      const part = rooms.slice(start, start + HEADS_AT_ONCE)
      const reply = await look<[number, Buffer, Buffer, ...number[][]]>(session, 'heads', ...part)
      const [isRight, epochThere, idThere, ...stored] = reply
      if (isRight === 1) {
        id = String(idThere)
        noteEpoch(String(epochThere))
      } else await renew(session)
      found.push(
        ...part.map((room, index) => {
          const [seq, oldest] = stored[index]
          return { room, head: { epoch, seq, oldest } }
        }),
      )
    }
    return found
  }

  const walk = createRetentionWalk({ rooms: EXPIRY, atOnce: EXPIRE_AT_ONCE, time })
  const outbox = createValkeyOutbox({ session: sessionNow, time, journal: newEpoch() })

  await connection.start().catch(error => {
    connection.close()
    throw error
  })

  return {
    id: () => id,
    epoch: () => (connection.session() ? epoch : undefined),
    append,
    read,
    head: async room => (await read(room, { after: 0, limit: 0, bytesMax: 0 })).head,

    async expire(retentionOf) {
      const session = connection.session()
      if (!session) return { trimmed: [], more: false }
      return { trimmed: [], more: await noticing(session, expire(session, retentionOf)) }
    },

    async delete(room, seqs, isTold) {
      const session = connection.session()
      if (!session) return { error: 'journal_unavailable' }
      const args = [time(), newEpoch(), room, isTold ? '1' : '', ...(seqs ? ['some', ...seqs.map(String)] : ['all'])]
      const deleting = call<DeletedReply>(session, 'delete', ...args)
      const isAcknowledged = acknowledged(session)
      const [epochNow, bytes, rooms, messages, more, told] = await deleting
      stored = { bytes, rooms }
      noteEpoch(String(epochNow))
      if (!(await isAcknowledged)) throw notAcknowledged()
      if (told.length === 0) return { messages, more: false, notice: undefined }
      const [seq, at, deletes, oldest] = told
      hintOf(session, room, { epoch, seq })
      const message = { seq, at, from: '', messageId: undefined, data: NO_DATA, deletes: JSON.parse(String(deletes)) }
      return { messages, more: more === 1, notice: { epoch, oldest, message } }
    },

    async *rooms() {
      for await (const { room } of scanAll(sessionNow(), EXPIRY, EXPIRE_AT_ONCE)) yield room
    },

    watch(room) {
      watched.add(room)
      listening?.subscribe([CHANNEL + room]).catch(() => {})
    },

    unwatch(room) {
      watched.delete(room)
      listening?.unsubscribe([CHANNEL + room]).catch(() => {})
    },

    outbox,

    notes: {
      async read() {
        const [text, at] = await look<[Buffer, number]>(sessionNow(), 'notes', time())
        return { text: String(text), at }
      },
      async replace(before, after) {
        return (await call<number>(sessionNow(), 'note', before, after)) === 1
      },
    },

    news: {
      listen(listener) {
        onNews = listener
      },

      async heads(rooms) {
        const session = sessionNow()
        return noticing(session, headsOf(session, rooms))
      },
    },

    notReady: () => (connection.session() ? undefined : `Valkey at ${connection.where} cannot be reached`),
    stats: () => ({ ...stored, bytesMax, charged }),
    close: async () => connection.close(),
  }
}
