// What a log does with a room, whatever it keeps rooms in: what it takes, trims and reads of one. Valkey does the same in
// valkey.lua.
import type { Message } from '@keycast/backbone'
import type { createCharges } from './charges.ts'
import {
  bytesOf,
  type NotKept,
  type Publish,
  type Range,
  RELIEVED_BY_MAX,
  type Retention,
  readBytesOf,
  type Valued,
} from './log.ts'

/** `oldest`: of the messages held; one above `seq` where there is none. */
export interface Room {
  seq: number
  oldest: number
  bytes: number
  retention: Retention
  value?: Valued
}

export const isEmpty = ({ oldest, seq }: Room) => oldest > seq

/** The newest message stays, however large: it was acknowledged. */
export const hasTooMuch = ({ oldest, seq, bytes, retention }: Room) =>
  seq > oldest && (seq - oldest + 1 > retention.messages || bytes > retention.bytes)

/**
 * Looks a message up.
 *
 * @returns `undefined` where it is not held, or not stored yet
 */
type Stored<R extends Room> = (room: R, seq: number) => Omit<Message, 'seq'> | undefined

/**
 * `weight`: of the message. `bytes`: all that it adds to the log. `left`: bytes that the log may still take. `time`: by
 * which messages expire.
 */
interface Costs {
  weight: number
  bytes: number
  left: number
  time: number
}

/** @returns why a message is not kept, if it is not */
export function refusalOf<R extends Room>(
  room: R,
  publish: Publish,
  costs: Costs,
  { charges, stored }: { charges: Pick<ReturnType<typeof createCharges>, 'refusalOf'>; stored: Stored<R> },
): NotKept | undefined {
  const { payer, value } = publish
  const rank = room.value?.rank
  if (value?.rank !== undefined && rank !== undefined && value.rank < rank) return { error: 'older', rank }
  const { weight, bytes, left } = costs
  const over = bytes - left
  if (over > 0 && !isRelieved(room, publish, costs, over, stored)) return { error: 'log_full' }
  const error = charges.refusalOf(payer, bytes, left)
  return error && !isRelieved(room, publish, costs, weight, stored) ? { error } : undefined
}

/** Whether the message drives so many bytes out of its room. */
function isRelieved<R extends Room>(
  room: R,
  { retention }: Publish,
  { weight, time }: Costs,
  over: number,
  stored: Stored<R>,
) {
  const { oldest, seq, bytes } = room
  let gone = 0
  for (let next = oldest; next <= seq && next < oldest + RELIEVED_BY_MAX && gone < over; next++) {
    const isTooMuch = seq - next + 2 > retention.messages || bytes - gone + weight > retention.bytes
    const message = stored(room, next)
    if (!message || !(isTooMuch || time - message.at > retention.ageMs)) return false
    gone += bytesOf(message)
  }
  return gone >= over
}

/** @param scan the room's messages between two seqs, in either direction */
export function readHeld(
  { seq, oldest }: Room,
  range: Range,
  scan: (from: number, to: number) => Iterable<Message>,
): Message[] {
  const isForward = 'after' in range
  const first = Math.max(isForward ? range.after + 1 : 0, oldest)
  const last = isForward ? seq : Math.min(range.before - 1, seq)
  if (first > last) return []
  const part = partOf(isForward ? scan(first, last) : scan(last, first), range)
  return isForward ? part : part.reverse()
}

/** @returns the first messages, as many as are read at once: one at least */
export function partOf<M extends Pick<Message, 'data' | 'deletes'>>(
  messages: Iterable<M>,
  { limit, bytesMax }: Pick<Range, 'limit' | 'bytesMax'>,
): M[] {
  const part: M[] = []
  let left = bytesMax
  for (const message of messages) {
    left -= readBytesOf(message)
    if (part.length === limit || (left < 0 && part.length > 0)) break
    part.push(message)
  }
  return part
}
