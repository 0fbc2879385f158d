// The primary's side of every gateway: who wants what, and whether that is in memory, under way, or to be fetched.
import { errorCodes, keyProblem, namespaceOf } from '@keycast/protocol'
import { createFetches } from '../fetching/fetches.js'
import { createOutcomes } from '../fetching/results.js'
import { createEntry, isAnswered, isFailing, isFresh, isKept, isNoOlder, isWanted } from '../keys/entry.js'
import { createLinkKeys } from '../keys/interest.js'
import { createKeyTable } from '../keys/key-table.js'
import { createOrigins } from '../origins/origins.js'
import { createRecovery } from '../origins/recovery.js'
import { createBackoff } from '../timing/backoff.js'
import { createSchedule } from '../timing/schedule.js'
import { takeAnswer } from './answers.js'
import { createRefusals } from './refused-wants.js'

/**
 * @typedef {import('@keycast/backbone').Held} Held
 * @typedef {import('@keycast/backbone').HubEvents} HubEvents
 * @typedef {import('../keys/entry.js').Entry} Entry
 * @typedef {{ key: string, held: Held | undefined }} Want
 * @typedef {ReturnType<typeof createPrimary>} Primary
 */

/** A key is kept fresh for this long after its last viewer left: people reload pages. */
const LINGER_MS = 1_000

/** Upper end of the first wait after a failed try. */
const BACKOFF_MS_INITIAL = 250

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {import('../fetching/fetches.js').Pool} deps.pool
 * @param {(link: string, key: string) => void} deps.tell a link lacks the key's latest state
 * @param {import('../timing/timer-wheel.js').TimerWheel} deps.wheel
 * @param {import('../metrics.js').FetchMetrics} deps.metrics
 * @param {{ inFlightMax: number, cacheBytesMax: number }} deps.settings
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {() => number} [deps.random] 0 up to 1
 */
export function createPrimary({ namespaces, pool, tell, wheel, metrics, settings, now, random = Math.random }) {
  const origins = createOrigins({ namespaces, cap: settings.inFlightMax, now })
  const table = createKeyTable({ bytesMax: settings.cacheBytesMax })
  const refusals = createRefusals()
  const linkKeys = createLinkKeys()
  const firstBackoff = createBackoff({ initialMs: BACKOFF_MS_INITIAL, random })
  const schedule = createSchedule({ wheel, firstBackoff, attempt: want, now, random })
  const recovery = createRecovery({ wheel, schedule, attempt: want, now, random })
  const outcomes = createOutcomes({ table, schedule, recovery, want, tell, onNoRoom, now })
  const fetches = createFetches({
    origins: origins.values(),
    pool,
    onOutcome: outcomes.take,
    onRefused: outcomes.refuse,
    onAbandoned: table.settle,
    metrics,
    now,
  })

  /** @param {string} link @param {Want} want */
  function onWatch(link, { key, held }) {
    const entry = open(link, key, 'watch')
    if (!entry) return
    if (refusals.forgive(link, key, 'watch')) onFetch(link, { key, held })
    const wasKept = isKept(entry)
    const watcher = { ...seen(held), problem: undefined, owed: true, told: false }
    entry.watchers.set(link, watcher)
    linkKeys.add(link, entry)
    stopLingering(entry)
    table.settle(entry)

    if (!isTellable(entry, watcher, wasKept)) return ask(entry, watcher)
    metrics.wanted('memory')
    watcher.told = true
    tell(link, key)
    if (wasKept) return
    schedule.begin(entry)
    if (isFailing(entry)) return recovery.look(entry.origin)
    // A node that comes to own a watched key may have missed that it changed, and what is not refreshed by itself
    // would stay as it is.
    if (held || entry.namespace.refreshMs === 0) want(entry)
  }

  /**
   * Whether a watch is answered from memory.
   *
   * @param {Entry} entry
   * @param {import('../keys/entry.js').Watcher} watcher
   * @param {boolean} kept whether the key is kept fresh
   */
  function isTellable(entry, watcher, kept) {
    // That a key fails is told with what is held, or without; and it is tried again soon.
    if (isFailing(entry) && !entry.fetch) return kept || isBackingOff(entry)
    if (!isAnswered(entry)) return false
    return (kept ? !entry.invalid : isFresh(entry, now())) && isNoOlder(entry, watcher)
  }

  /** @param {string} link @param {string} key */
  function onUnwatch(link, key) {
    refusals.withdraw(link, key, 'watch')
    const entry = table.get(key)
    if (!entry?.watchers.delete(link)) return
    linkKeys.review(link, entry)
    leave(entry)
  }

  /** @param {string} link @param {Want} want */
  function onFetch(link, { key, held }) {
    const entry = open(link, key, 'fetch')
    if (!entry) return
    if (refusals.forgive(link, key, 'fetch')) onWatch(link, { key, held })
    const waiter = { ...seen(held), ready: false, late: entry.again }
    const watcher = entry.watchers.get(link)
    // The gateway's latest word on what it holds: it may have let go of what it was sent.
    if (watcher) watcher.version = waiter.version
    entry.waiters.set(link, waiter)
    linkKeys.add(link, entry)
    table.settle(entry)

    waiter.ready = (isFresh(entry, now()) && isNoOlder(entry, waiter)) || (!entry.fetch && isBackingOff(entry))
    if (!waiter.ready) return ask(entry, waiter)
    metrics.wanted('memory')
    tell(link, key)
  }

  /** @param {string} link @param {string} key */
  function onCancel(link, key) {
    refusals.withdraw(link, key, 'fetch')
    const entry = table.get(key)
    if (!entry?.waiters.delete(link)) return
    linkKeys.review(link, entry)
    settle(entry)
  }

  /** @param {string} key */
  function onRefresh(key) {
    const entry = table.get(key)
    if (!entry) return // nothing is held that could be old
    entry.invalid = true
    // What is under way may have been read before the change.
    if (entry.fetch?.sentAt !== undefined) entry.again = true
    else if (entry.notBeforeAt > now()) schedule.insist(entry)
    else if (isKept(entry)) want(entry)
    else entry.nextTryAt = undefined
  }

  /** @param {string} link */
  function onLinkLost(link) {
    refusals.dropLink(link)
    for (const entry of linkKeys.take(link)) {
      if (entry.waiters.delete(link)) settle(entry)
      if (entry.watchers.delete(link)) leave(entry)
    }
  }

  /** @param {string} link @param {string} key */
  function answerFor(link, key) {
    const refusal = refusals.take(link, key)
    const entry = table.get(key)
    if (refusal || !entry) return refusal
    // Had it an answer before, this one tells it of a change, when the link takes it.
    const stands = entry.watchers.get(link)?.owed === false
    const { answer, more } = takeAnswer(entry, link, now())
    linkKeys.review(link, entry)
    if (more) tell(link, key)
    settle(entry)
    if (answer) metrics.answered(answer.type)
    if (stands && answer?.type === 'value' && entry.value) metrics.relayed(now() - entry.value.cameAt)
    return answer
  }

  /**
   * The entry of a key a link wants; `undefined` where it cannot be had, which the link is then told.
   *
   * @param {string} link
   * @param {string} key anything a gateway sent
   * @param {import('./refused-wants.js').Wish} wish
   */
  function open(link, key, wish) {
    const held = table.get(key)
    if (held && isKept(held)) return held
    const why = keyProblem(key)
    if (why) return refuse(link, key, 'bad_key', why, wish)
    const namespace = namespaces.get(namespaceOf(key))
    const origin = namespace && origins.get(namespace.origin)
    if (!origin) return refuse(link, key, 'unknown_namespace', errorCodes.unknown_namespace, wish)
    const entry = table.open(key, () => createEntry(key, namespace, origin))
    return entry ?? refuse(link, key, 'capacity', errorCodes.capacity, wish)
  }

  /**
   * @param {string} link
   * @param {string} key
   * @param {'bad_key' | 'unknown_namespace' | 'capacity'} code
   * @param {string} message
   * @param {import('./refused-wants.js').Wish} wish
   */
  function refuse(link, key, code, message, wish) {
    metrics.wanted('refused')
    refusals.add(link, { type: 'failed', key, code, message, ageMs: 0 }, wish)
    tell(link, key)
    return undefined
  }

  /** @param {Held | undefined} held */
  function seen(held) {
    return { version: held?.version, askedAt: held ? now() - held.ageMs : Number.NEGATIVE_INFINITY }
  }

  /** Whether a try now would come before its time. @param {Entry} entry */
  function isBackingOff(entry) {
    return isFailing(entry) && entry.nextTryAt !== undefined && entry.nextTryAt > now()
  }

  /**
   * Has the key fetched for somebody.
   *
   * @param {Entry} entry
   * @param {{ askedAt: number }} seen
   */
  function ask(entry, { askedAt }) {
    const { fetch } = entry
    metrics.wanted(fetch ? 'joined' : 'fetched')
    // The answer under way would be older than what is held by whoever asks now.
    if (fetch?.sentAt !== undefined && fetch.sentAt < askedAt) entry.again = true
    want(entry)
  }

  /** @param {Entry} entry */
  function want(entry) {
    fetches.want(entry)
  }

  /** A link watches no more. @param {Entry} entry */
  function leave(entry) {
    if (entry.watchers.size > 0) return settle(entry)
    stopLingering(entry)
    entry.lingering = true
    entry.lingerTimer = wheel.set(now() + LINGER_MS, () => {
      entry.lingering = false
      schedule.end(entry)
      settle(entry)
    })
    settle(entry)
  }

  /** @param {Entry} entry */
  function stopLingering(entry) {
    wheel.cancel(entry.lingerTimer)
    entry.lingerTimer = undefined
    entry.lingering = false
  }

  /** @param {Entry} entry */
  function settle(entry) {
    if (!isWanted(entry)) fetches.abandon(entry)
    table.settle(entry)
  }

  /** @param {Entry} entry whose value is too much beside everything else that is wanted */
  function onNoRoom(entry) {
    const wishes = { watch: [...entry.watchers.keys()], fetch: [...entry.waiters.keys()] }
    entry.watchers.clear()
    entry.waiters.clear()
    for (const wish of /** @type {const} */ (['watch', 'fetch'])) {
      for (const link of wishes[wish]) {
        linkKeys.review(link, entry)
        refuse(link, entry.key, 'capacity', errorCodes.capacity, wish)
      }
    }
    stopLingering(entry)
    entry.value = undefined
    entry.problem = undefined
    entry.again = false
    schedule.end(entry)
    table.settle(entry)
  }

  /** @type {HubEvents} */
  const hubEvents = { onWatch, onUnwatch, onFetch, onCancel, onRefresh, onLinkLost, answerFor }
  return { hubEvents, fetches, origins, table }
}
