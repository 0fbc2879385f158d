// The keys that an event of a backend names: `{"key": "article:7"}`, `{"keys": ["article:7", "article:8"]}`, or all of a
// namespace, `{"key": "article:*"}`. Or the value of one, as a line of POST /v1/values has it: `{"key": …, "value": …}`.
import type { HandedOver } from '@keycast/backbone'
import { excerpt, idOf, keyProblem, namespaceOf, rawMember } from '@keycast/protocol'
import { idProblem, type Namespace, type Namespaces, readContent } from '@keycast/service'
import { event, fieldsOf, HANDED_OVER_BYTES_MAX, readLine } from '@keycast/service/hand-over'

/** All keys of a namespace. No key equals it: `*` stands in none. */
export const allKeysOf = (name: string) => `${name}:*`

/** An event that names more is taken for one that names all: to look at each would keep the keys of other backends waiting. */
const KEYS_MAX = 10_000

/** What an event says. `problem`: it is passed over, but for the keys, which are asked for. */
interface Changes {
  keys: string[]
  value?: HandedOver
  problem?: string
}

/** @param names of the namespaces whose stream it is */
export function readChanges(data: string, namespaces: Namespaces, names: string[]): Changes {
  const said = fieldsOf(data) ?? {}
  const { key } = said
  // Each is looked at below.
  const keys = (said.keys === undefined ? [key] : keysIn(data)) as string[] | undefined
  if (keys === undefined) return { keys: [], problem: 'keys is no list' }
  if (keys.length > KEYS_MAX) return { keys: names.map(allKeysOf) }
  for (const each of keys) {
    const problem = problemOf(each, namespaces, names)
    if (problem) return { keys: [], problem }
  }
  if (said.keys !== undefined || (said.value === undefined && said.delete === undefined)) return { keys }
  const value = readValue(key as string, data, namespaces.get(namespaceOf(key as string)) as Namespace)
  return typeof value === 'string' ? { keys, problem: `${excerpt(key)}: ${value}` } : { keys: [], value }
}

/** @returns a text, if it is none that can be handed over */
function readValue(key: string, data: string, { name, isPerUser, bytesMax }: Namespace): HandedOver | string {
  if (key === allKeysOf(name)) return 'it names no single key'
  if (isPerUser) return 'each user has another value of it'
  const line = readLine({ number: 1, text: data }, event)
  if ('problem' in line) return line.problem
  const { bytes, contentType, rank } = line
  if (!bytes) return { key, content: undefined, rank }
  const limit = Math.min(bytesMax, HANDED_OVER_BYTES_MAX)
  const read = readContent(bytes, { contentType, version: undefined, bytesMax: limit })
  if (read.kind === 'value') {
    const { kind: _, ...content } = read
    return { key, content, rank }
  }
  return read.kind === 'failed' ? read.message : 'it has no content'
}

function problemOf(key: unknown, namespaces: Namespaces, names: string[]) {
  if (typeof key !== 'string') return 'it names no key: {"key": "namespace:id"}'
  const name = namespaceOf(key)
  const namespace = namespaces.get(name)
  if (!namespace || !names.includes(name)) return `${excerpt(key)} is of no namespace that has this stream`
  if (key === allKeysOf(name)) return undefined
  const problem = keyProblem(key) ?? idProblem(namespace, idOf(key))
  return problem && `${excerpt(key)}: ${problem}`
}

/** @param data an object that has some @returns too many where there may be, `undefined` if they are no list */
function keysIn(data: string): unknown[] | undefined {
  const { text = '', depth = 0 } = rawMember(data, 'keys') ?? {}
  if (!text.startsWith('[')) return undefined
  if (depth > 1) return [undefined]
  const many = text.split(',', KEYS_MAX + 1)
  return many.length > KEYS_MAX ? many : JSON.parse(text)
}
