// The keys that an event of a backend names: `{"key": "article:7"}`, `{"keys": ["article:7", "article:8"]}`, or all of a
// namespace, `{"key": "article:*"}`.
import { excerpt, idOf, keyProblem, namespaceOf } from '@keycast/protocol'
import { idProblem, type Namespaces } from '@keycast/service'

/** All keys of a namespace. No key equals it: `*` stands in none. */
export const allKeysOf = (name: string) => `${name}:*`

/**
 * @param names of the namespaces whose stream it is
 * @returns the keys, or why the event is passed over
 */
export function readChangedKeys(data: string, namespaces: Namespaces, names: string[]): string[] | { problem: string } {
  const { key, keys = [key] } = parsed(data)
  if (!Array.isArray(keys)) return { problem: 'keys is no list' }
  for (const each of keys) {
    const problem = problemOf(each, namespaces, names)
    if (problem) return { problem }
  }
  return keys
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

/** @returns the fields of an object, whatever the text is */
function parsed(data: string): { key?: unknown; keys?: unknown } {
  try {
    return Object(JSON.parse(data))
  } catch {
    return {}
  }
}
