// The promise of a log: where the journal keeps the messages of rooms. memory.ts, lmdb.ts and valkey.ts keep it, and one suite
// runs against all of them. The journal commits one batch at a time: no log has to order two that overlap.
import type { Message } from '@keycast/backbone'
import type { Position } from '@keycast/protocol'
import type { Payer } from '@keycast/service'
import type { Kind } from './charges.ts'

/** How much of a room is kept: each bound alone trims. `bytes` are those of its messages as stored. */
export interface Retention {
  messages: number
  ageMs: number
  bytes: number
}

/**
 * A message to be kept. `data` is JSON in UTF-8, kept as it is. With `messageId` the same one from the same publisher
 * in the same room is the same message; `from` is empty for an anonymous publisher. `share` of the log's bytes may be
 * taken once it is kept, all where it is absent: what matters more has the rest for itself. Messages that it drives out
 * of its room do not count. `payer`: for whom its bytes count, and those of the room if it is the first there; nobody
 * where it is absent. `value`: it is the room's value from now on, unless one of a higher rank was. `isTold`: a backend is to be told
 * of it, so that it stands in the outbox, too.
 */
export interface Publish {
  room: string
  messageId: string | undefined
  from: string
  data: Buffer
  retention: Retention
  share?: number
  payer?: Payer
  value?: { rank: number | undefined }
  isTold?: boolean
}

/** What became of a publish. `value`, of one that was kept: its number, and the highest rank before it. */
export interface Kept {
  /** Of a duplicate: that of the first one. */
  position: Position
  at: number
  /** The first message that the room then holds; absent for a duplicate. */
  oldest?: number
  duplicate: boolean
  value?: { order: number; rankBefore: number | undefined }
  error?: undefined
}

/**
 * `id_conflict`: the messageId stands for other data. `log_full`: there is room again when somebody makes some, or retention
 * does. `capacity`: the same for this payer alone; a message that drives out as many bytes of its room as it brings is not
 * refused for its payer. `journal_unavailable`: the log cannot be reached. `older`: a value of a higher `rank` was there.
 */
export type NotKept =
  | { error: 'id_conflict' | 'log_full' | 'capacity' | 'journal_unavailable' }
  | { error: 'older'; rank: number }

export type Outcome = Kept | NotKept

export type SeqRange = [first: number, last: number]

/** With it everything of a room goes: for a deletion. */
export const nothing = ({ messages, bytes }: Retention): Retention => ({
  messages,
  bytes,
  ageMs: Number.NEGATIVE_INFINITY,
})

/** The data of a message that was deleted, and of one that says so. */
export const NO_DATA = Buffer.from('null')

/**
 * The outcome of a deletion. `notice`: what tells readers; `undefined` where none of the messages is held. `messages`: how
 * many are gone now. `more`: some of the room are left, and this notice.
 */
export interface Deletion {
  messages: number
  more: boolean
  notice: { epoch: string; oldest: number; message: Message } | undefined
}

/**
 * Where a room stands. `seq` is its last message's; the log's floor where there is none, at first 0. `oldest` is the
 * first still held; `seq` + 1 where none is.
 */
export interface Head {
  epoch: string
  seq: number
  oldest: number
  bytes: number
  value?: Valued
}

/**
 * What a room is known by whose messages are values. `rank`: the highest. `order`: of the latest, in milliseconds since 1970
 * or more, for it rises with each. Both are known for as long as the room.
 */
export interface Valued {
  order: number
  rank: number | undefined
}

/** @param at when the next value came */
export const nextValue = (
  { order = 0, rank }: Partial<Valued> = {},
  next: { rank: number | undefined },
  at: number,
) => ({
  order: Math.max(at, order + 1),
  rank: next.rank ?? rank,
})

/**
 * What is read: messages with a seq above `after`, or below `before` and then the last of those, ascending. No more
 * than `limit`, and no more than `bytesMax` of data, but one at least. With `epoch` only of that history: of another
 * one nothing is read but the head.
 */
export type Range = { limit: number; bytesMax: number; epoch?: string } & ({ after: number } | { before: number })

export interface Log {
  /**
   * Of the history: two logs never have the same, the journals of one log have. It may be another one after the log was
   * restored, or lost.
   */
  id: () => string
  /**
   * Of all rooms, while the log can be reached. Only of a log on a server, where it tells servers apart: a copy, or what was a
   * replica, has the same id.
   */
  epoch?: () => string | undefined
  /**
   * How far the log is, as a crash leaves it: messages that it ever kept. Only of a log whose file can be replaced by
   * an older state of itself.
   */
  at?: () => number
  /**
   * Begins another epoch, and takes another id; false if that cannot be written now. It writes: not to overlap with
   * `append` or `expire`.
   */
  renew?: () => Promise<boolean>
  /**
   * Resolves once a crash cannot lose any of them; outcomes in the order given. Rejects if nobody can know whether they
   * are kept: the journal must then read the heads anew; or end, if it is {@link LogBroken}
   */
  append: (publishes: Publish[]) => Promise<Outcome[]>
  /**
   * Deletes messages for good, all that the room holds where there is no `seqs`, and tells readers by one more message. It
   * writes: not to overlap with `append` or `expire`. To be called again while there is `more`.
   *
   * @param isTold whether the message that tells readers stands in the outbox, too
   */
  delete: (
    room: string,
    seqs?: number[],
    isTold?: boolean,
  ) => Promise<Deletion | { error: 'log_full' | 'journal_unavailable' }>
  /** The rooms; those that come or go meanwhile, perhaps. */
  rooms: () => AsyncIterable<string>
  head: (room: string) => Promise<Head>
  read: (room: string, range: Range) => Promise<{ head: Head; messages: Message[] }>
  /**
   * Trims by age, and forgets old ids. Repeated calls come to every room. A room whose retention was lowered since its
   * last publish is trimmed to the lower one.
   *
   * @returns the rooms that were trimmed, where `news` does not say it; and whether there may be more to do now
   */
  expire: (
    retentionOf?: (room: string) => Retention | undefined,
  ) => Promise<{ trimmed: { room: string; head: Head }[]; more: boolean }>
  /**
   * `charged`: bytes that count for somebody, by kind. `clockAheadMs`: how far the wall clock is ahead of the time by which
   * messages expire, where a log minds that.
   */
  stats: () => {
    bytes: number
    bytesMax: number
    rooms: number
    charged: Record<Kind, number>
    clockAheadMs?: number
  }
  /**
   * A room that somebody watches is not forgotten. Another one is, once it was empty for {@link EMPTY_MS}; if it is used
   * again, its numbers go on above all that it ever had. Both need not be paired.
   */
  watch: (room: string) => void
  unwatch: (room: string) => void
  outbox: Outbox
  /** Only of a log that other journals append to as well. */
  news?: News
  /** Only of a log that outlives its journals. */
  notes?: Notes
  /** Only of a log in a folder: the disk that has it. */
  disk?: () => { bytes: number; freeBytes: number }
  /** The reason why nothing can be kept now; only of a log that can be out of reach. */
  notReady?: () => string | undefined
  close: () => Promise<void>
}

/** A message that a backend is still to be told, with the epoch in which it was kept. */
export type Untold = Message & { epoch: string }

/** What a backend was never told: the first and the last position. */
export interface Untellable {
  from: Position
  to: Position
}

/**
 * News that backends are still to be told, room by room. A message comes into it with the same write that keeps it, and stays
 * until it is taken out, whatever becomes of the room and its history. It is bounded by whoever takes.
 */
export interface Outbox {
  /** The rooms that have something there, and the times of their first messages. Some of them may be taken out meanwhile. */
  rooms: () => AsyncIterable<{ room: string; at: number }>
  /**
   * The first messages of a room, those above `after` where it is given: `limit` and `bytesMax` of data at most, but one
   * at least. `gap`: as it was left by `take`. `now`: by the clock that gave the messages their times, as far as the log
   * trusts it.
   */
  read: (
    room: string,
    range: { after?: number; limit: number; bytesMax: number },
  ) => Promise<{ gap: Untellable | undefined; messages: Untold[]; now: number }>
  /**
   * Takes messages out, as far as `upTo`, and leaves a gap to be named, or none. Rejects where nothing was done. It
   * writes: not to overlap with `append` or `expire`.
   */
  take: (parts: { room: string; upTo: number; gap?: Untellable }[]) => Promise<void>
  /** Takes messages out that were deleted. Rejects, and writes, as `take` does. */
  remove: (room: string, seqs: number[]) => Promise<void>
  stats: () => { bytes: number }
  /**
   * Only of a log that many journals have: one of them tells. Whether it is this one, for the next {@link OWN_MS}.
   * Rejects where nobody knows.
   */
  own?: () => Promise<boolean>
  /** Some rooms that came to have something there, once each. Only where there is `own`. */
  news?: () => Promise<string[]>
}

/** A journal that ended without a word tells nothing for so long. */
export const OWN_MS = 10_000

/** The cost of an entry of the outbox beside the message: its key, and what names it in memory while it is told. */
const OUTBOX_ENTRY_BYTES = 256

export const untoldBytesOf = (room: string, message: Pick<Message, 'data' | 'from' | 'messageId'>) =>
  OUTBOX_ENTRY_BYTES + room.length + bytesOf(message)

export const gapBytesOf = (room: string) => OUTBOX_ENTRY_BYTES + room.length

/** A text that the journals of a log leave to each other, and to those that start later. */
export interface Notes {
  /** Empty where there is none; `at`: the log's clock, in milliseconds since 1970. */
  read: () => Promise<{ text: string; at: number }>
  /**
   * false, and nothing is done, where the text is not `before` any more. It writes: not to overlap with `append` or
   * `expire`.
   */
  replace: (before: string, after: string) => Promise<boolean>
}

/** News of other journals' messages. Hints come soon and may be lost, so heads must be compared now and then. */
export interface News {
  /** To hints of rooms that are watched. */
  listen: (listener: (room: string, position: Position) => void) => void
  heads: (rooms: string[]) => Promise<{ room: string; head: Position & { oldest: number } }[]>
}

/** A messageId is known for as long as its message is held, and this long at least. */
export const ID_MS = 5 * 60_000

/** The cost of an id that is remembered: its hash and place on disk, and an entry in memory. */
export const ID_BYTES = 64

/** The cost of a room: where it stands, its name, and when it is to be looked at. */
export const ROOM_BYTES = 512

/**
 * An empty room that nobody watches is forgotten after this time: by then a client that was away for a moment is back, and
 * every messageId of the room is forgotten.
 */
export const EMPTY_MS = 3_600_000

/**
 * Numbers of a room that is not there begin above the log's floor, which is above all numbers of the rooms that were
 * forgotten. It rises by so much at once: positions of rooms that are not there stay good until then.
 */
export const FLOOR_STEP = 1_000_000

/** @param seq the last of a room that is forgotten */
export const floorAbove = (floor: number, seq: number) =>
  seq > floor ? Math.ceil(seq / FLOOR_STEP) * FLOOR_STEP : floor

/** The cost of a message beside its data: its place, its time, its publisher. */
export const MESSAGE_BYTES = 96

/** What a message takes of the bytes that are read at once: readers are told in numbers what one deletes. */
export const readBytesOf = ({ data, deletes = [] }: Pick<Message, 'data' | 'deletes'>) =>
  data.length + deletes.length * RANGE_BYTES

const RANGE_BYTES = 20

/** A message that comes where there is no room may drive out so many: each has to be looked at first. */
export const RELIEVED_BY_MAX = 100

/** The log cannot be opened, e.g. because its files are damaged. The message is for the operator. */
export class LogRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'LogRefused'
  }
}

/** There is no log where one was looked for. */
export class LogMissing extends LogRefused {}

/** Another process has the log. It may be about to end: another try can succeed. */
export class LogInUse extends LogRefused {}

/**
 * Nobody can know any more what the log has on disk: nothing may be answered or read, and this process must end. The
 * message is for the operator.
 */
export class LogBroken extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'LogBroken'
  }
}

/** @param seqs ascending */
export function rangesOf(seqs: number[]): SeqRange[] {
  const ranges: SeqRange[] = []
  for (const seq of seqs) {
    const last = ranges.at(-1)
    if (last && last[1] + 1 === seq) last[1] = seq
    else ranges.push([seq, seq])
  }
  return ranges
}

export function bytesOf({ data, from, messageId }: Pick<Message, 'data' | 'from' | 'messageId'>) {
  return MESSAGE_BYTES + data.length + from.length + (messageId?.length ?? 0)
}
