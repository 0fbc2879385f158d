// The query of a stream: the keys, where their rooms go on, and for whom.
import type { FastifyRequest } from 'fastify'
import type { HttpProblem } from '../http/problems.ts'
import { KEYS_MAX, readCursor } from './cursor.ts'

const bad = (message: string): { problem: HttpProblem } => ({ problem: { code: 'bad_request', message } })

/** The last cursor is in the header where a browser comes back by itself, else where the page says it. */
export function readQuery({ raw: { url = '' }, headers }: FastifyRequest) {
  const fields = new Map<string, string[]>([
    ['keys', []],
    ['after', []],
    ['ticket', []],
  ])
  for (const [name, texts] of partsOf(url)) {
    const field = fields.get(name)
    if (!field) return bad('the query has "keys", "after" and "ticket", and nothing else: a & within a key is %26')
    field.push(...texts)
  }
  const [keys, [after], [ticket]] = [...fields.values()]
  if (keys.length > KEYS_MAX) {
    const message = `a stream takes ${KEYS_MAX} keys in its URL, not ${keys.length}: open another, or send the others a subscribe`
    return { problem: { code: 'too_many_keys', message } satisfies HttpProblem }
  }
  const cursor = headers['last-event-id'] || after
  const positions = cursor === undefined ? new Map() : readCursor(String(cursor), keys)
  if (!positions) return bad('"after" or Last-Event-ID is no id of an event of these keys, in this order')
  return { keys, positions, ticket }
}

/** The query's names and their texts. A comma stands between two texts; one that is encoded is a part of a text. */
function* partsOf(url: string): Iterable<[name: string, texts: string[]]> {
  const mark = url.indexOf('?')
  if (mark < 0) return
  for (const part of url.slice(mark + 1).split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const texts = equals < 0 ? [] : part.slice(equals + 1).split(',')
    yield [equals < 0 ? part : part.slice(0, equals), texts.filter(text => text !== '').map(decoded)]
  }
}

function decoded(text: string) {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    // No key: the gate says so.
    return text
  }
}
