// Values that backends hand over and the journal keeps, on the wire of rooms. Each is a key of its own, which no client can
// name: a namespace begins with a letter. Its position is the place of the latest value, which takes that of the one before.
import type { Content } from '@keycast/service'
import type { HandedOver } from '../backbone.ts'
import { incomplete, isCount, isId, type Sent } from './codec.ts'
import { isRank, readPut } from './values-codec.ts'

const MARK = '='

/** @param key that clients know */
export const pushedKey = (key: string) => MARK + key

/** @returns the key that clients know; `undefined` if it is none of these */
export const readPushedKey = (key: string): string | undefined => (key.startsWith(MARK) ? key.slice(1) : undefined)

/**
 * What the key's value is, or with `content` undefined that it has none. `order` is the same at all gateways, and rises with
 * each change, as that of a fetched value. `rank`: the highest of the key's values.
 */
export interface PushedAnswer {
  type: 'pushed'
  key: string
  epoch: string
  seq: number
  order: number
  rank?: number
  content: HandedOver['content']
}

/** The place that the gateway named is still the latest. */
interface UnchangedAnswer {
  type: 'unchanged'
  key: string
  epoch: string
  seq: number
}

export type PushedAnswers = PushedAnswer | UnchangedAnswer

export function decodePushed(head: Sent, parts: Buffer[]): PushedAnswers {
  const { type, key, epoch, seq, order, rank } = head
  if (!isId(epoch) || !isCount(seq)) return incomplete(head)
  if (type === 'unchanged') return { type, key, epoch, seq }
  if (!isCount(order) || (rank !== undefined && !isRank(rank))) return incomplete(head)
  return { type, key, epoch, seq, order, rank, content: readPut(head, parts).content }
}

/** A value as the log keeps it: what is said of the body in a line of JSON, then the body. */
export function encodeKept(content: HandedOver['content']): Buffer {
  if (!content) return NO_VALUE
  const { version, contentType, format, body } = content
  return Buffer.concat([Buffer.from(`${JSON.stringify({ version, contentType, format })}\n`), body])
}

/** @param kept by `encodeKept`, or what is left of a message that was deleted */
export function decodeKept(kept: Buffer): HandedOver['content'] {
  const end = kept.indexOf(0x0a)
  if (end === -1) return undefined
  const said: Content = JSON.parse(kept.toString('utf8', 0, end))
  return { ...said, body: kept.subarray(end + 1) }
}

const NO_VALUE = Buffer.from('null')
