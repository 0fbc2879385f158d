// The promise of a log: where the journal keeps the messages of rooms. memory.ts, lmdb.ts and valkey.ts keep it, and one suite
// runs against all of them. The journal commits one batch at a time: no log has to order two that overlap.

/**
 * A place in a room's order. `seq` counts 1, 2, 3 … within an epoch; another epoch is another history.
 * @typedef {{ epoch: string, seq: number }} Position
 *
 * How much of a room is kept: each bound alone trims. `bytes` are those of its messages as stored.
 * @typedef {{ messages: number, ageMs: number, bytes: number }} Retention
 *
 * A message to be kept. `data` is JSON in UTF-8, kept as it is. With `messageId` the same one from the same publisher in the
 * same room is the same message; `from` is empty for an anonymous publisher.
 * @typedef {{ room: string, messageId: string | undefined, from: string, data: Buffer, retention: Retention }} Publish
 *
 * What became of it. `position` is the first one's where it is a `duplicate`. The others were not kept: `id_conflict`: the
 * messageId stands for other data. `log_full`: there is room again when somebody makes some, or retention does.
 * `journal_unavailable`: the log cannot be reached.
 * @typedef {{ position: Position, at: number, duplicate: boolean, error?: undefined }} Kept
 * @typedef {{ error: 'id_conflict' | 'log_full' | 'journal_unavailable' }} NotKept
 * @typedef {Kept | NotKept} Outcome
 *
 * A message as it was kept. `at` is in milliseconds since 1970 and orders nothing.
 * @typedef {{ seq: number, at: number, from: string, messageId: string | undefined, data: Buffer }} Message
 *
 * Where a room stands. `seq` is its last message's; 0 where there never was one. `oldest` is the first still held; `seq` + 1
 * where none is.
 * @typedef {{ epoch: string, seq: number, oldest: number, bytes: number }} Head
 *
 * What is read: messages with a seq above `after`, or below `before` and then the last of those, ascending. No more than
 * `limit`, and no more than `bytesMax` of data, but one at least. With `epoch` only of that history: of another one
 * nothing is read but the head.
 * @typedef {{ limit: number, bytesMax: number, epoch?: string } & ({ after: number } | { before: number })} Range
 *
 * @typedef {object} Log
 * @property {() => string} id of the history: two logs never have the same, the journals of one log have. It may be another
 *   one after the log was restored, or lost
 * @property {() => number} [at] how far the log is, as a crash leaves it: messages that it ever kept. Only of a log whose
 *   file can be replaced by an older state of itself
 * @property {() => Promise<boolean>} [renew] begins another epoch, and takes another id; false if that cannot be written
 *   now. It writes: not to overlap with `append` or `expire`
 * @property {(publishes: Publish[]) => Promise<Outcome[]>} append resolves once a crash cannot lose any of them;
 *   outcomes in the order given. Rejects if nobody can know whether they are kept: the journal must then read the heads
 *   anew; or end, if it is {@link LogBroken}
 * @property {(room: string) => Promise<Head>} head
 * @property {(room: string, range: Range) => Promise<{ head: Head, messages: Message[] }>} read
 * @property {(retentionOf?: (room: string) => Retention | undefined) => Promise<number>} expire trims by age, and
 *   forgets old ids; resolves with the number of rooms it touched, so above 0 while there is more to do. Repeated calls
 *   come to every room. A room whose retention was lowered since its last publish is trimmed to the lower one
 * @property {() => { bytes: number, bytesMax: number, rooms: number }} stats
 * @property {News} [news] only of a log that other journals append to as well
 * @property {Notes} [notes] only of a log that outlives its journals
 * @property {() => string | undefined} [notReady] the reason why nothing can be kept now; only of a log that can be out
 *   of reach
 * @property {() => Promise<void>} close
 */

/**
 * A text that the journals of a log leave to each other, and to those that start later.
 *
 * @typedef {object} Notes
 * @property {() => Promise<{ text: string, at: number }>} read empty where there is none; `at`: the log's clock, in
 *   milliseconds since 1970
 * @property {(before: string, after: string) => Promise<boolean>} replace false, and nothing is done, where the text is
 *   not `before` any more. It writes: not to overlap with `append` or `expire`
 */

/**
 * News of other journals' messages. Hints come soon and may be lost, so heads must be compared now and then.
 *
 * @typedef {object} News
 * @property {(listener: (room: string, position: Position) => void) => void} listen to hints of rooms that are watched
 * @property {(room: string) => void} watch
 * @property {(room: string) => void} unwatch
 * @property {(rooms: string[]) => Promise<{ room: string, position: Position }[]>} heads
 */

/** A messageId is known for as long as its message is held, and this long at least. */
export const ID_MS = 5 * 60_000

/** The cost of an id that is remembered: its hash and place on disk, and an entry in memory. */
export const ID_BYTES = 64

/** The cost of a message beside its data: its place, its time, its publisher. */
export const MESSAGE_BYTES = 96

/** The log cannot be opened, e.g. because its files are damaged. The message is for the operator. */
export class LogRefused extends Error {
  /** @param {string} message */
  constructor(message) {
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
  /** @param {string} message @param {{ cause?: unknown }} [options] */
  constructor(message, options) {
    super(message, options)
    this.name = 'LogBroken'
  }
}

/** @param {Pick<Message, 'data' | 'from' | 'messageId'>} message */
export function bytesOf({ data, from, messageId }) {
  return MESSAGE_BYTES + data.length + from.length + (messageId?.length ?? 0)
}
