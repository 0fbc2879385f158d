// For tests: what holds of a primary whenever none of its functions runs. Each check says what a viewer would notice.
import { isInUse } from './keys/entry.js'
import { isAnswered, isFailing } from './keys/held.js'
import { isCold, isKept, isWanted, isWatched, waiterOf, watcherOf } from './keys/interest.js'
import { costOf } from './keys/key-table.js'
import { eachWatcher } from './keys/watchers.js'

/** @typedef {import('./keys/entry.js').Entry} Entry */

/**
 * @param {import('./primary.js').Primary} primary
 * @throws {Error} that names what does not hold, and of which key
 */
export function checkInvariants({ table, interest, origins }) {
  const entries = [...table.entries()]
  for (const entry of entries) {
    for (const [rule, holds] of rulesOf(entry)) if (!holds) throw new Error(`${entry.key}: ${rule}`)
  }
  checkCounts(entries, table)
  checkLinks(entries, interest)
  for (const origin of origins.values()) checkOrigin(entries, origin)
}

/** @param {Entry} entry @returns {[string, boolean][]} */
function rulesOf(entry) {
  const { fetch, held, timing, origin, namespace } = entry
  const isQueued = fetch !== undefined && fetch.sentAt === undefined
  const isTriedByItself =
    isKept(entry) && !fetch && (isFailing(entry) || (isAnswered(entry) && namespace.refreshMs > 0))
  const isProbed = origin.failing.has(entry) && origin.probeTimer !== undefined
  return [
    ['somebody waits, and no fetch is to come', !isCold(entry) || fetch !== undefined],
    ['it is kept fresh, and nothing tries it again', !isTriedByItself || timing.timer !== undefined || isProbed],
    [
      'it fails, and recovery does not know',
      !(isKept(entry) && !fetch && isFailing(entry)) || origin.failing.has(entry),
    ],
    ['nobody wants it, and a fetch is queued', !isQueued || isWanted(entry)],
    ['nobody keeps it fresh, and it has a timer', isKept(entry) || timing.timer === undefined],
    ['it is watched, and lingers', !(isWatched(entry) && entry.interest.lingerTimer !== undefined)],
    ['its refresh is under way, and no fetch is to end it', entry.refresh === undefined || fetch !== undefined],
    [
      'it was taken over, and nothing tries it',
      held.takenOver === undefined || timing.timer !== undefined || fetch !== undefined,
    ],
    ['its fetch is of another key', fetch === undefined || fetch.entry === entry],
    ['it is of no use, and held', isInUse(entry) || held.value !== undefined || held.failure !== undefined],
    ['its value may not be stored, and nobody wants it', isInUse(entry) || held.value?.store !== false],
    [
      "it is a viewer's own, and held though nobody wants it",
      !namespace.isPerUser || isInUse(entry) || (held.value === undefined && isFailing(entry)),
    ],
    ['it is counted as something else than it costs', entry.bytes === costOf(entry)],
  ]
}

/** @param {Entry[]} entries @param {import('./keys/key-table.js').KeyTable} table */
function checkCounts(entries, table) {
  const expected = {
    keys: entries.length,
    kept: entries.filter(isKept).length,
    bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0),
  }
  const stats = table.stats()
  for (const name of /** @type {const} */ (['keys', 'kept', 'bytes'])) {
    if (stats[name] !== expected[name]) throw new Error(`${name}: ${stats[name]} are counted of ${expected[name]}`)
  }
}

/** What a link wants stands in the entry and in the index by link. @param {Entry[]} entries @param {import('./keys/interest.js').Interest} interest */
function checkLinks(entries, interest) {
  const held = new Set(entries)
  const indexed = new Set()
  for (const link of interest.links()) {
    const wanted = [...interest.entriesOf(link)]
    if (wanted.length === 0) throw new Error(`link ${link} wants nothing, and is indexed`)
    for (const entry of wanted) {
      if (!watcherOf(entry, link) && !waiterOf(entry, link)) throw new Error(`${link} does not want ${entry.key}`)
      if (!held.has(entry)) throw new Error(`${link} wants ${entry.key}, which was let go of`)
      indexed.add(`${link} ${entry.key}`)
    }
  }
  for (const {
    key,
    interest: { watchers, waiters },
  } of entries) {
    for (const link of [...Array.from(eachWatcher(watchers), watcher => watcher.link), ...(waiters?.keys() ?? [])]) {
      if (!indexed.has(`${link} ${key}`))
        throw new Error(`${link} wants ${key}, and would not be found when it is lost`)
    }
  }
}

/** @param {Entry[]} entries @param {import('./origins/origins.js').Origin} origin */
function checkOrigin(entries, origin) {
  const fetches = entries.flatMap(({ fetch }) => (fetch?.entry.origin === origin ? [fetch] : []))
  for (const lane of /** @type {const} */ (['cold', 'refresh'])) {
    const inLane = fetches.filter(fetch => fetch.lane === lane)
    const queued = inLane.filter(({ sentAt }) => sentAt === undefined).length
    if (origin.queue.queuedIn(lane) !== queued) throw new Error(`${origin.name}: ${lane} fetches are queued, and lost`)
    if (origin.queue.inFlightOf(lane) !== inLane.length - queued) throw new Error(`${origin.name}: ${lane} places leak`)
  }
  for (const entry of origin.failing) {
    if (!isKept(entry) || !isFailing(entry)) throw new Error(`${entry.key} does not fail, and would be probed`)
  }
}
