// Fetches that go in one request: which ones, and what becomes of them where that request fails as a whole.
import { idOf } from '@keycast/protocol'
import type { Batch } from '@keycast/service'
import type { FailedResult, Result } from '../../worker-messages.ts'
import type { Entry } from '../keys/entry.ts'
import type { Fetch } from './fetches.ts'

export type Batches = ReturnType<typeof createBatches>

/** Where one key may have made a request fail, its keys are asked for in this many parts: one of 100 costs 20 more. */
const PARTS = 10

export function createBatches() {
  /** Keys that failed while they were asked for alone: anybody can make up an id that a backend refuses. */
  const apart = new WeakSet<Entry>()

  /** @returns the others of a new fetch: none, where it must go alone; `undefined` where they are chosen when it goes */
  function companyOf(entry: Entry): Fetch[] | undefined {
    return apart.has(entry) ? [] : undefined
  }

  /** Chooses the fetches that go with one which is about to go. @param batch its namespace's */
  function gather(fetch: Fetch, { max, idsBytesMax, bytesOf }: Batch) {
    const { queue } = fetch.source
    const company: Fetch[] = []
    const returned: Fetch[] = []
    let room = idsBytesMax - bytesOf(idOf(fetch.entry.key))
    while (company.length + returned.length < max - 1 && room > 0) {
      const next = queue.takeAlong(fetch.lane)
      if (!next) break
      room -= bytesOf(idOf(next.entry.key))
      if (next.company || room < 0) returned.push(next)
      else company.push(next)
    }
    for (const one of returned) queue.putBack(one)
    fetch.company = company
  }

  /** @returns those that a request was for, and that have not ended */
  function underWay(fetch: Fetch): Fetch[] {
    const all = [fetch, ...(fetch.company ?? [])]
    return all.filter(one => one.entry.fetch === one)
  }

  /**
   * The request failed as a whole, perhaps for one of its keys: has them asked for in smaller parts.
   *
   * @param isWanted whether somebody still wants the key; its fetch ends where nobody does
   * @returns whether it did
   */
  function split(fetch: Fetch, result: Result, isWanted: (fetch: Fetch) => boolean): boolean {
    const all = underWay(fetch)
    if (all.length < 2 || !isPerhapsOfOne(result)) return false
    const size = Math.ceil(all.length / PARTS)
    const wanted = all.filter(isWanted)
    while (wanted.length > 0) sendAgain(wanted.splice(0, size))
    return true
  }

  /** @param fetches that go together, before all that are queued */
  function sendAgain([first, ...others]: Fetch[]) {
    for (const fetch of [first, ...others]) fetch.sentAt = undefined
    first.company = others
    first.source.queue.putBack(first)
  }

  /** Nobody wants the key of a queued fetch: those that were to go with it go without. */
  function leave(fetch: Fetch) {
    const others = underWay(fetch)
    if (others.length > 0) sendAgain(others)
  }

  /** The namespace has no batch any more: each of the keys is asked for by itself. */
  function dissolve(fetch: Fetch) {
    for (const one of underWay(fetch)) {
      one.company = undefined
      if (one === fetch) continue
      one.sentAt = undefined
      one.source.queue.putBack(one)
    }
  }

  /** Remembers whether a key that was asked for alone failed. */
  function note({ entry, company }: Fetch, result: Result) {
    if (result.kind !== 'failed') apart.delete(entry)
    else if (company?.length === 0 && isPerhapsOfOne(result)) apart.add(entry)
  }

  return { companyOf, gather, underWay, split, leave, dissolve, note }
}

/**
 * Whether a failure may be that of one key. Others are of the backend: to ask an overloaded one in parts would be a storm.
 * An item that is missing is no failure of the request.
 */
function isPerhapsOfOne(result: Result) {
  if (result.kind !== 'failed') return false
  const { code, status } = result
  if (code === 'not_found') return status !== 200
  return status === 500 || (perhapsOfOne.has(code) && status !== 401)
}

const perhapsOfOne = new Set<FailedResult['code']>(['backend_refused', 'too_large', 'invalid_content'])
