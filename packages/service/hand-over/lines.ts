// The lines of POST /v1/values, and the events of a stream of changes: each hands over the value of one key, or says that
// it has none.
import { isUtf8 } from 'node:buffer'
import { excerpt, rawMember, rawMembers } from '@keycast/protocol'
import { z } from 'zod'
import { isJsonType } from '../content.ts'
import { isJson } from '../json-grammar.ts'

/** A fetcher node cuts off a gateway that sends a larger part. */
export const HANDED_OVER_BYTES_MAX = 2 ** 20 - 1

/** `bytes` undefined: the key has no value. */
export interface Line {
  /** Counted from 1, empty ones too. */
  number: number
  key: string
  bytes: Buffer | undefined
  contentType: string
  /** `bytes` are JSON as they stand in the line, which was parsed. */
  isJson: boolean
  rank: number | undefined
}

const line = z.strictObject({
  key: z.string({ error: 'must be a text' }),
  value: z.unknown().optional(),
  delete: z.literal(true, { error: 'must be true' }).optional(),
  contentType: z.string({ error: 'must be a text' }).optional(),
  order: z
    .int({ error: 'must be a whole number from 0' })
    .min(0, { error: 'must be a whole number from 0' })
    .optional(),
})

/** The same fields, beside which others may stand. */
export const event = line.strip()

/** Of lines, and of events. */
const known = new Set([...Object.keys(line.shape), 'keys'])

const LINE_FEED = 10
const SPACE = 32

/**
 * The lines of a body that are not empty. One that has nothing but line feeds takes no memory for each.
 *
 * @param linesMax one more is given of those that are beyond it
 * @returns `undefined` if it is no text
 */
export function linesOf(body: Buffer, linesMax: number): { number: number; text: string }[] | undefined {
  if (!isUtf8(body)) return undefined
  const lines = []
  let start = 0
  let isEmpty = true
  for (let at = 0, number = 1; at <= body.length && lines.length <= linesMax; at++) {
    if (at < body.length && body[at] !== LINE_FEED) {
      isEmpty &&= body[at] <= SPACE
      continue
    }
    if (!isEmpty) lines.push({ number, text: body.toString('utf8', start, at) })
    number++
    start = at + 1
    isEmpty = true
  }
  return lines
}

/** @param schema `event`, where other fields are passed over */
export function readLine(
  { number, text }: { number: number; text: string },
  schema: typeof line | typeof event = line,
): Line | { problem: string } {
  const parsed = schema.safeParse(fieldsOf(text))
  if (!parsed.success) return { problem: problemOf(parsed.error.issues[0]) }
  const { key, value, contentType = 'application/json', order: rank } = parsed.data
  const written = rawMember(text, 'value')
  if ((written === undefined) === (parsed.data.delete === undefined)) {
    return { problem: 'it must have "value" or "delete":true' }
  }
  const said = { number, key, contentType, rank }
  if (!written) return { ...said, bytes: undefined, isJson: false }
  // As it is written: numbers that were parsed would lose digits.
  if (isJsonType(contentType)) return { ...said, bytes: Buffer.from(written.text), isJson: true }
  if (typeof value === 'string') return { ...said, bytes: Buffer.from(value), isJson: false }
  return { problem: `a value of ${excerpt(contentType)} must be a text: hand other bytes over by PUT` }
}

/**
 * The fields of a JSON object. In the place of each list and map stands an empty list: a backend may send some that take
 * half a second to be made, and a node has nothing else done meanwhile. Of those that nobody knows the first is enough.
 *
 * @returns `undefined` for any other text
 */
export function fieldsOf(text: string): Record<string, unknown> | undefined {
  if (!text.trimStart().startsWith('{') || !isJson(Buffer.from(text))) return undefined
  let others = 0
  const members = rawMembers(text, name => known.has(name) || others++ === 0)
  return Object.fromEntries(
    Array.from(members, ([name, raw]) => [name, raw.depth > 0 ? [] : JSON.parse(raw.text)] as const),
  )
}

function problemOf({ path: [field], code, message, ...rest }: z.core.$ZodIssue) {
  if (code === 'unrecognized_keys') return `it has an unknown field ${excerpt((rest as { keys: string[] }).keys[0])}`
  return field === undefined ? 'it is no JSON object' : `${String(field)} ${message}`
}
