// The response to a request for many keys: each key's item, found by its id. An item is passed on byte by byte.
import { versionOf } from '@keycast/protocol'
import { jsonProblem, withoutBom } from '@keycast/service'
import type { BatchLease, CurrentResult, FailedResult } from '../worker-messages.ts'
import { elementsOf, isList, pointed } from './json-slices.ts'
import type { Pulled } from './response.ts'

/** Content is JSON, whatever type the response declares. */
const CONTENT_TYPE = 'application/json'

/**
 * A request is for 500 keys. To look for their ids in two million items would take this worker seconds, in which it neither
 * reads other backends' responses nor beats.
 */
const ITEMS_MAX = 100_000

/** @param head of the response: its freshness is every item's. A validator of all of them says nothing of one */
export function readBatch(
  { items, id: idAt, keys }: BatchLease,
  received: Buffer,
  head: Pick<CurrentResult, 'status' | 'maxAgeMs'> & { store: boolean },
): Pulled {
  const failed = (code: FailedResult['code'], message: string): Pulled => ({
    result: { kind: 'failed', code, message, status: head.status },
  })
  const body = withoutBom(received)
  const problem = jsonProblem(body)
  if (problem) return failed('invalid_content', problem)
  const list = pointed(body, items)
  if (!list || !isList(list))
    return failed('invalid_content', 'the response to a batch has no list where `items` points')

  const byId = new Map<string, Buffer | undefined>(keys.map(({ id }) => [id, undefined]))
  let count = 0
  for (const element of elementsOf(list)) {
    if (++count > ITEMS_MAX) return failed('too_large', `the response to a batch has more than ${ITEMS_MAX} items`)
    // An item without an id is nobody's, and of two with the same the last holds.
    const id = idOf(pointed(element, idAt))
    if (id !== undefined && byId.has(id)) byId.set(id, element)
  }
  const [own, ...others] = keys.map(({ id, version: held }): Pulled => {
    const item = byId.get(id)
    if (!item) {
      const { status, maxAgeMs } = head
      const message = 'the backend has nothing under this key: its answer to a batch has no such item'
      return { result: { kind: 'failed', code: 'not_found', message, status, maxAgeMs } }
    }
    const version = versionOf(item, CONTENT_TYPE)
    if (version === held) return { result: { kind: 'current', ...head } }
    return { result: { kind: 'value', version, contentType: CONTENT_TYPE, format: 'json', ...head }, body: item }
  })
  return { ...own, others }
}

/** A number counts as it is written: as a number, a long one would lose its last digits. */
function idOf(written: Buffer | undefined): string | undefined {
  const text = written?.toString()
  if (text?.startsWith('"')) return JSON.parse(text)
  return text && /^-?\d/.test(text) ? text : undefined
}
