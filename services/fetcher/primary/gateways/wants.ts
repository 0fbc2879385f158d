// The wants of gateways, each by its link: whether the answer is in memory, under way, or to be fetched.
import { readViewerKey } from '@keycast/backbone'
import { errorCodes, keyProblem, namespaceOf } from '@keycast/protocol'
import { isValidFor } from '../keys/credentials.ts'
import { createEntry, sharedKeyOf } from '../keys/entry.ts'
import {
  dropValue,
  forgetTakenOver,
  invalidate,
  isAnswered,
  isFailing,
  isFresh,
  isMissing,
  isNoOlder,
  takeOver,
} from '../keys/held.ts'
import { isKept, isWanted, isWantedBy, isWatched, watcherOf } from '../keys/interest.ts'
import { isSentBefore } from '../keys/watchers.ts'
import { QUIET_REFRESH_MS_MIN } from '../timing/refreshes-under-way.ts'
import { notBeforeAtOf } from '../timing/schedule.ts'
import { takeAnswer } from './answers.ts'
import { createToldChanges } from './told-changes.ts'

/**
 * @typedef {import('@keycast/backbone').Held} GatewayHeld
 * @typedef {import('@keycast/backbone').HubEvents} HubEvents
 * @typedef {import('../keys/entry.ts').Entry} Entry
 * @typedef {import('../keys/interest.ts').Seen} Seen
 * @typedef {import('../keys/interest.ts').Want} Want
 * A key, and what the gateway holds of it. `quiet`: it understands when it is told of changes only. `credentials` come with a
 * viewer key.
 * @typedef {{ key: string, held: GatewayHeld | undefined, quiet?: boolean,
 *   credentials?: import('@keycast/backbone').Credentials }} Wanted
 */

/**
 * A plan's times may be too late by this much: they count from when it was sent, and it waits unread while a node takes
 * over hundreds of thousands of keys. Without it a change reported in that time would seem older than the last fetch.
 */
const PLAN_DELAY_MS_MAX = 10_000

const OTHER_CONFIGURATION = 'the fetcher has another configuration than the gateway'

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {Map<string, import('../origins/origins.ts').Origin>} deps.origins
 * @param {import('../keys/key-table.ts').KeyTable} deps.table
 * @param {import('../keys/interest.ts').Interest} deps.interest
 * @param {import('../fetching/fetches.ts').Fetches} deps.fetches
 * @param {import('../timing/schedule.ts').Schedule} deps.schedule
 * @param {Pick<import('../timing/refreshes-under-way.ts').Refreshes, 'lagsMs'>} deps.refreshes
 * @param {Pick<import('../origins/recovery.ts').Recovery, 'probe'>} deps.recovery
 * @param {import('../timing/in-turns.ts').InTurns} deps.inTurns
 * @param {ReturnType<typeof import('./refused-wants.ts').createRefusedWants>} deps.refused
 * @param {Pick<import('./refusals.ts').Refusals, 'refuse'>} deps.refusals
 * @param {(link: string, key: string) => void} deps.markDue the link is due the key's latest state
 * @param {import('../metrics.ts').FetchMetrics} deps.metrics
 * @param {() => number} deps.now
 * @param {() => number} deps.wallNow in milliseconds since 1970
 * @returns {HubEvents}
 */
export function createGatewayWants({
  namespaces,
  origins,
  table,
  interest,
  fetches,
  schedule,
  refreshes,
  recovery,
  inTurns,
  refused,
  refusals,
  markDue,
  metrics,
  now,
  wallNow,
}) {
  const { refuse } = refusals
  const toldChanges = createToldChanges({ now })

  /** @param {string} link @param {Wanted} wanted */
  function onWatch(link, { key, held, quiet, credentials }) {
    const entry = open(link, key, 'watch', credentials)
    if (!entry) return
    if (refused.forgive(link, key, 'watch')) onGet(link, { key, held, credentials })
    const wasKept = isKept(entry)
    // A gateway drops a user's own value when the token that fetched it is revoked.
    const wasLetGo = entry.namespace.isPerUser && !held && watcherOf(entry, link) !== undefined
    const watcher = interest.watch(link, entry, {
      version: held?.version,
      askedAt: askedAtOf(held),
      quiet,
      credentials,
    })
    if (wasLetGo) askAnew(entry)
    table.recount(entry)
    if (table.get(key) !== entry) return // it took room that other keys need, and its links were refused

    if (quiet && held?.plan && isKeptByPlan(entry, held.version, held.plan)) {
      metrics.wanted('plan')
      return interest.notify(link, entry, watcher)
    }
    if (!isAnsweredByMemory(entry, watcher, wasKept)) return ask(entry, watcher)
    metrics.wanted('memory')
    interest.notify(link, entry, watcher)
    if (wasKept) return
    schedule.begin(entry)
    if (isFailing(entry)) return recovery.probe(entry.origin)
    // A node that takes over a watched key may have missed a change. A value without periodic refresh would then stay
    // old.
    if (held || entry.namespace.refreshMs === 0) fetches.want(entry)
  }

  /**
   * A value fetched with a revoked token is sent no more: the user's other token may have fewer rights.
   *
   * @param {Entry} entry that is a user's own
   */
  function askAnew(entry) {
    // Dropped, not only marked as invalid: if the next fetch failed, the value would be sent with the failure.
    dropValue(entry)
    invalidate(entry)
    if (entry.fetch && fetches.hasOtherToken(entry.fetch)) fetches.repeat(entry)
  }

  /**
   * Whether a watch is answered from memory.
   *
   * @param {Entry} entry
   * @param {Seen} seen
   * @param {boolean} wasKept whether the key was kept fresh before
   */
  function isAnsweredByMemory(entry, seen, wasKept) {
    // A failure is sent together with the held value, if any; and the key is tried again soon.
    if (isFailing(entry) && !entry.fetch) return wasKept || isBackingOff(entry)
    if (!isAnswered(entry)) return false
    // A key that the backend never had is asked for ever more rarely. A gateway that starts to watch it has just been
    // told that it exists.
    const isRefreshed = wasKept && !isMissing(entry)
    return (isRefreshed ? !entry.held.invalid : isFresh(entry, now())) && isNoOlder(entry, seen)
  }

  /**
   * Whether a new watch of another node's key can rely on its gateway's state, until that node would have asked the
   * backend again. Otherwise each node that dies would have all its keys fetched at once.
   *
   * @param {Entry} entry that is watched
   * @param {string} version
   * @param {import('@keycast/backbone').Plan} plan
   */
  function isKeptByPlan(entry, version, { inMs, maxAgeMs, askedAgoMs }) {
    const { held, fetch, namespace } = entry
    if (held.value || held.failure || fetch || held.invalid) return false
    // Gateways that hold different versions cannot both hold the latest.
    if (held.takenOver) return held.takenOver.version === version
    const { refreshMs } = namespace
    if (refreshMs < QUIET_REFRESH_MS_MIN || inMs === 0 || inMs > refreshMs) return false
    // For a gateway that does not say when the backend was asked, one period before the next time is assumed.
    const askedAt = askedAgoMs === undefined ? now() + inMs - refreshMs : now() - askedAgoMs
    // A change that was reported to this node; the node before it may have died without hearing of it.
    if (toldChanges.mayBeSince(sharedKeyOf(entry), askedAt - PLAN_DELAY_MS_MAX)) return false
    takeOver(entry, version, maxAgeMs)
    schedule.takeOver(entry, now() + inMs)
    return true
  }

  /** @param {string} link @param {string} key */
  function onUnwatch(link, key) {
    refused.withdraw(link, key, 'watch')
    const entry = table.get(key)
    if (entry && interest.unwatch(link, entry)) afterWatch(entry)
  }

  /** @param {string} link @param {Wanted} wanted */
  function onGet(link, { key, held, credentials }) {
    const entry = open(link, key, 'get', credentials)
    if (!entry) return
    if (refused.forgive(link, key, 'get')) onWatch(link, { key, held, credentials })
    const seen = { version: held?.version, askedAt: askedAtOf(held), credentials }
    const ready = (isFresh(entry, now()) && isNoOlder(entry, seen)) || (!entry.fetch && isBackingOff(entry))
    interest.wait(link, entry, seen, { ready, needsFollowUp: entry.fetch?.again === true })
    table.recount(entry)
    if (table.get(key) !== entry) return

    if (!ready) return ask(entry, seen)
    metrics.wanted('memory')
    markDue(link, key)
  }

  /** @param {string} link @param {string} key */
  function onCancelGet(link, key) {
    refused.withdraw(link, key, 'get')
    const entry = table.get(key)
    if (entry && interest.stopWaiting(link, entry)) release(entry)
  }

  /** @param {string} key */
  function onRefresh(key) {
    toldChanges.add(key)
    const entry = table.get(key)
    // With no value and no `not_found`, nothing can be old.
    if (entry) return refreshOne(entry)
    const own = [...table.ownOf(key)]
    inTurns(() => {
      const next = own.pop()
      if (next && table.get(next.key) === next) refreshOne(next)
      return next !== undefined
    })
  }

  /** @param {Entry} entry */
  function refreshOne(entry) {
    invalidate(entry)
    schedule.forgetAbsence(entry)
    if (fetches.repeat(entry)) return
    if (notBeforeAtOf(entry) > now()) schedule.insist(entry)
    else if (isKept(entry)) fetches.want(entry)
    else schedule.forgetBackoff(entry)
  }

  /** @param {string} link */
  function onLinkLost(link) {
    const entries = interest.entriesOf(link)
    // A link that is lost never returns under its id, so its wants may end one after the other.
    inTurns(() => {
      const { done, value: entry } = entries.next()
      if (done) {
        refused.dropLink(link)
        return false
      }
      if (interest.stopWaiting(link, entry)) release(entry)
      if (interest.unwatch(link, entry)) afterWatch(entry)
      return true
    })
  }

  /** @param {string} link @param {string} key */
  function answerFor(link, key) {
    const refusal = refused.take(link, key)
    const entry = table.get(key)
    // Its other want may be due the held state, too.
    if (refusal && entry && isWantedBy(entry, link)) markDue(link, key)
    if (refusal || !entry) return refusal
    // A link that was sent a state before is sent a change now; the change is as old as its wait for credit.
    const isChange = isSentBefore(watcherOf(entry, link))
    const { value } = entry.held
    const { answer, more } = takeAnswer(interest, entry, link, now())
    if (more) markDue(link, key)
    release(entry)
    if (answer) metrics.answered(answer.type)
    if (isChange && answer?.type === 'value' && value) {
      const relayMs = now() - value.cameAt
      metrics.relayed(relayMs)
      answer.delayMs = value.waitedMs + relayMs
    }
    return answer
  }

  /**
   * The entry of a key that a link wants; `undefined` if it cannot be served, and the link is told so.
   *
   * @param {string} link
   * @param {string} key anything a gateway sent
   * @param {Want} want
   * @param {Wanted['credentials']} credentials
   */
  function open(link, key, want, credentials) {
    const opened = table.get(key)
    const viewed = readViewerKey(key)
    if (viewed && !isValidFor(viewed.viewer, credentials, wallNow())) {
      if (opened) letGo(link, opened, want)
      return refuse(link, key, 'token_expired', errorCodes.token_expired, want)
    }
    if (opened && (isWantedBy(opened, link) || (isKept(opened) && table.hasRoomForWant(opened)))) return opened
    const why = keyProblem(viewed?.key ?? key)
    if (why) return refuse(link, key, 'bad_key', why, want)
    const namespace = namespaces.get(namespaceOf(key))
    const origin = namespace && origins.get(namespace.origin)
    if (!origin) return refuse(link, key, 'unknown_namespace', errorCodes.unknown_namespace, want)
    // Without a viewer one user's value would be shown to all.
    if ((namespace.isPerUser === true) !== (viewed !== undefined)) {
      return refuse(link, key, 'unknown_namespace', OTHER_CONFIGURATION, want)
    }
    const entry = table.open(key, () => createEntry(key, namespace, origin))
    return entry ?? refuse(link, key, 'capacity', errorCodes.capacity, want)
  }

  /**
   * A link dropped a want; it may still have the other.
   *
   * @param {string} link @param {Entry} entry @param {Want} want
   */
  function letGo(link, entry, want) {
    if (want === 'get') {
      if (interest.stopWaiting(link, entry)) release(entry)
    } else if (interest.unwatch(link, entry)) afterWatch(entry)
  }

  /** The time at which the backend was asked for the gateway's state. @param {GatewayHeld | undefined} held */
  function askedAtOf(held) {
    return held ? now() - held.ageMs : Number.NEGATIVE_INFINITY
  }

  /** Whether a try now would come before its time. @param {Entry} entry */
  function isBackingOff(entry) {
    const { nextTryAt } = entry.timing
    return isFailing(entry) && nextTryAt !== undefined && nextTryAt > now()
  }

  /** Has the key fetched for a link. @param {Entry} entry @param {Seen} seen */
  function ask(entry, { askedAt }) {
    metrics.wanted(entry.fetch ? 'coalesced' : 'fetched')
    fetches.wantSince(entry, askedAt)
  }

  /** A link stopped watching. @param {Entry} entry */
  function afterWatch(entry) {
    // Without the credentials that left, a user's own value cannot be kept fresh.
    if (!isWatched(entry) && entry.namespace.isPerUser) schedule.end(entry)
    else if (!isWatched(entry)) {
      interest.linger(entry, () => {
        schedule.end(entry)
        forgetTakenOver(entry)
        release(entry)
      })
    }
    release(entry)
  }

  /** Drops an entry that nobody wants any more. @param {Entry} entry */
  function release(entry) {
    if (!isWanted(entry)) fetches.abandon(entry)
    table.recount(entry)
  }

  return {
    lagsMs: refreshes.lagsMs,
    onWatch,
    onUnwatch,
    onGet,
    onCancelGet,
    onRefresh,
    onLinkLost,
    answerFor,
  }
}
