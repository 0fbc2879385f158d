// Messages as Valkey keeps them, in a stream for each room.
import type { Message } from '@keycast/backbone'
import { NO_DATA } from '../log.ts'

/** Of a stream: its id, then names and values by turns. */
export type Entry = [id: Buffer, fields: Buffer[]]

/** Of a value, as valkey.lua says it. */
export const rankOf = (rank: string | Buffer = '') => (rank.length === 0 ? undefined : Number(String(rank)))

export function messageOf([id, [, at, , from, , messageId, , data, , deletes]]: Entry): Message {
  const message: Message = {
    seq: Number.parseInt(String(id), 10),
    at: Number(at),
    from: String(from),
    messageId: messageId.length > 0 ? String(messageId) : undefined,
    data,
  }
  return deletes === undefined ? message : { ...message, deletes: JSON.parse(String(deletes)) }
}

/**
 * Puts a message into the place of each that is missing: those were deleted. A stream keeps no place for them.
 *
 * @param places `first`: the seq that they begin with. `end`: the one after the last place, where that is known. `step`: 1
 *   where they ascend, -1 where they descend. `limit`: as many at most
 */
export function withDeleted(
  found: Message[],
  { first, end, step, limit }: { first: number; end: number | undefined; step: 1 | -1; limit: number },
): Message[] {
  const messages: Message[] = []
  let next = first
  const fill = (until: number, at: number) => {
    for (; (until - next) * step > 0 && messages.length < limit; next += step) {
      messages.push({ seq: next, at, from: '', messageId: undefined, data: NO_DATA, deleted: true })
    }
  }
  for (const message of found) {
    fill(message.seq, message.at)
    messages.push(message)
    next += step
  }
  if (end !== undefined) fill(end, found.at(-1)?.at ?? 0)
  return messages.slice(0, limit)
}
