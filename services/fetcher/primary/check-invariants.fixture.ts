// For tests: invariants of a primary, true whenever none of its functions runs. Each message says what a viewer would
// notice.

import type { Holder } from '@keycast/service'
import { lanes } from './fetching/fetch-queue.ts'
import type { Entry } from './keys/entry.ts'
import { isAnswered, isFailing } from './keys/held.ts'
import { type Interest, isCold, isInUse, isKept, isWanted, isWantedBy, isWatched } from './keys/interest.ts'
import { costOf, type KeyTable } from './keys/key-table.ts'
import { countOf, eachWatcher, watcherIn } from './keys/watchers.ts'
import type { KeySource } from './origins/origins.ts'
import type { Primary } from './primary.ts'

/** @throws {Error} the message names the invariant and the key */
export function checkInvariants({ table, interest, sources }: Primary) {
  const entries = [...table.entries()]
  for (const entry of entries) {
    const broken = brokenRule(entry)
    if (broken !== undefined) throw new Error(`${entry.key}: ${broken}`)
  }
  checkCounts(entries, table)
  checkLinks(entries, interest)
  for (const source of sources.values()) checkSource(entries, source)
  // Together: a namespace may have moved from one backend to another since.
  const inFlight = sources.origins.reduce((sum, origin) => sum + origin.inFlight, 0)
  const counted = [...sources.values()].reduce((sum, { queue }) => sum + queue.inFlight(), 0)
  if (inFlight !== counted) throw new Error(`${inFlight} requests are counted in flight of ${counted}`)
}

/** Runs for every key after nearly every call, so it makes no lists. */
function brokenRule(entry: Entry): string | undefined {
  const { fetch, held, timing, source, namespace } = entry
  const kept = isKept(entry)
  const failing = isFailing(entry)
  const isUsed = isInUse(entry)
  const isTriedByItself = kept && !fetch && (failing || (isAnswered(entry) && namespace.refreshMs > 0))
  if (fetch === undefined && isCold(entry)) return 'somebody waits, and no fetch is to come'
  if (isTriedByItself && timing.timer === undefined && !(source.failing.has(entry) && source.probeTimer !== undefined))
    return 'it is kept fresh, and nothing tries it again'
  if (kept && !fetch && failing && !source.failing.has(entry)) return 'it fails, and recovery does not know'
  if (fetch !== undefined && fetch.sentAt === undefined && !isWanted(entry))
    return 'nobody wants it, and a fetch is queued'
  if (!kept && timing.timer !== undefined) return 'nobody keeps it fresh, and it has a timer'
  if (entry.interest.lingerTimer !== undefined && isWatched(entry)) return 'it is watched, and lingers'
  if (entry.refresh !== undefined && fetch === undefined) return 'its refresh is under way, and no fetch is to end it'
  if (held.takenOver !== undefined && timing.timer === undefined && fetch === undefined)
    return 'it was taken over, and nothing tries it'
  if (fetch !== undefined && fetch.entry !== entry) return 'its fetch is of another key'
  if (!isUsed && held.value === undefined && held.failure === undefined) return 'it is of no use, and held'
  if (!isUsed && held.value?.store === false) return 'its value may not be stored, and nobody wants it'
  if (namespace.isPerUser && !isUsed && !(held.value === undefined && failing))
    return "it is a viewer's own, and held though nobody wants it"
  if (entry.bytes !== costOf(entry)) return 'it is counted as something else than it costs'
  return undefined
}

function checkCounts(entries: Entry[], table: KeyTable) {
  let bytes = 0
  for (const entry of entries) bytes += entry.bytes
  const expected = { keys: entries.length, bytes }
  // A key that nobody wants is charged to nobody, any other to somebody who wants it.
  const held = new Map<Holder, number>()
  for (const entry of entries) {
    const { holder, bytes, key } = entry
    if (!holder) continue
    if (!isInUse(entry)) throw new Error(`${key} is charged, and not in use`)
    held.set(holder, (held.get(holder) ?? 0) + bytes)
  }
  for (const [holder, bytes] of held) {
    if (holder.held !== bytes) throw new Error(`${holder.payer} is charged ${holder.held} bytes of ${bytes}`)
  }
  const stats = table.stats()
  for (const name of ['keys', 'bytes'] as const) {
    if (stats[name] !== expected[name]) throw new Error(`${name}: ${stats[name]} are counted of ${expected[name]}`)
  }
}

/** Each want of a link stands in the entry and in the index by link. */
function checkLinks(entries: Entry[], interest: Interest) {
  const held = new Set(entries)
  let indexed = 0
  for (const link of interest.links()) {
    let wanted = 0
    for (const entry of interest.entriesOf(link)) {
      if (!isWantedBy(entry, link)) throw new Error(`${link} does not want ${entry.key}`)
      if (!held.has(entry)) throw new Error(`${link} wants ${entry.key}, which was let go of`)
      wanted++
    }
    if (wanted === 0) throw new Error(`link ${link} wants nothing, and is indexed`)
    indexed += wanted
  }
  // Every indexed want stands in an entry, once per link and key. So if the numbers are equal, none is missing.
  let wants = 0
  for (const { interest } of entries) {
    wants += countOf(interest.watchers)
    if (interest.waiters) for (const link of interest.waiters.keys()) if (!watcherIn(interest.watchers, link)) wants++
  }
  if (wants === indexed) return
  for (const entry of entries) {
    const { watchers, waiters } = entry.interest
    for (const link of [...Array.from(eachWatcher(watchers), watcher => watcher.link), ...(waiters?.keys() ?? [])]) {
      if (![...interest.entriesOf(link)].includes(entry))
        throw new Error(`${link} wants ${entry.key}, and would not be found when it is lost`)
    }
  }
}

function checkSource(entries: Entry[], source: KeySource) {
  const { namespace } = source
  const newCount = () => ({ queued: 0, inFlight: 0 })
  const under = { cold: newCount(), refresh: newCount(), missing: newCount() }
  let kept = 0
  const goAlong = new Set(entries.flatMap(({ fetch }) => fetch?.company ?? []))
  for (const entry of entries) {
    const { fetch } = entry
    if (entry.source !== source) continue
    if (fetch && !goAlong.has(fetch)) under[fetch.lane][fetch.sentAt === undefined ? 'queued' : 'inFlight']++
    if (isKept(entry)) kept++
  }
  if (source.keptKeys !== kept) throw new Error(`${namespace}: ${source.keptKeys} keys are counted as kept of ${kept}`)
  for (const lane of lanes) {
    if (source.queue.queuedIn(lane) !== under[lane].queued)
      throw new Error(`${namespace}: ${lane} fetches are queued, and lost`)
    if (source.queue.inFlightOf(lane) !== under[lane].inFlight) throw new Error(`${namespace}: ${lane} places leak`)
  }
  for (const entry of source.failing) {
    if (!isKept(entry) || !isFailing(entry)) throw new Error(`${entry.key} does not fail, and would be probed`)
  }
}
