// The wants of gateways, each by its link: whether the answer is in memory, under way, or to be fetched.
import {
  type Answer,
  type Credentials,
  type Held as GatewayHeld,
  type NodeEvents,
  readViewerKey,
  type Values,
} from '@keycast/backbone'
import { errorCodes, idOf, keyProblem, namespaceOf } from '@keycast/protocol'
import { idProblem, type Namespaces, type Payer } from '@keycast/service'
import type { ChangeStream } from '../changes/changes.ts'
import type { Fetches } from '../fetching/fetches.ts'
import { createEntry, type Entry } from '../keys/entry.ts'
import {
  dropValue,
  forgetTakenOver,
  invalidate,
  isAnswered,
  isFailing,
  isFresh,
  isMissing,
  isNoOlder,
  noteOrder,
  noteRank,
} from '../keys/held.ts'
import {
  type Interest,
  isKept,
  isWanted,
  isWantedBy,
  isWatched,
  type Seen,
  type Want,
  watcherOf,
} from '../keys/interest.ts'
import type { KeyTable } from '../keys/key-table.ts'
import { isValidFor } from '../keys/viewer.ts'
import { isSentBefore } from '../keys/watchers.ts'
import type { FetcherMetrics } from '../metrics.ts'
import type { Viewers } from '../notify/viewers.ts'
import type { KeySource, KeySources } from '../origins/origins.ts'
import { absentForMs } from '../timing/absent-keys.ts'
import type { InTurns } from '../timing/in-turns.ts'
import type { Schedule } from '../timing/schedule.ts'
import { type RefusedWants, takeAnswer } from './answers.ts'
import { createPlans } from './plans.ts'
import { createMarks, MARK } from './progress-marks.ts'
import { createRefreshNotices } from './refresh-notices.ts'
import type { Refusals } from './refusals.ts'
import { createReportedChanges } from './reported-changes.ts'

/** `position`: what the gateway holds. A quiet watch hears of changes only. */
interface Wanted {
  key: string
  position: GatewayHeld | undefined
  payload?: { quiet?: boolean } & Credentials
  payer?: Payer
}

type Events = Omit<NodeEvents<Values>, 'onNotice' | 'onCommand'> & {
  /** The backend's content changed: it must be asked now. */
  onNotice: (link: string, refresh: { keys: string[]; users?: string[] }) => void
}

const NOTHING = Object.freeze({ answers: [], more: false })

const OTHER_CONFIGURATION = 'the fetcher has another configuration than the gateway'

interface Deps {
  namespaces: Namespaces
  sources: Pick<KeySources, 'get'>
  table: KeyTable
  interest: Interest
  fetches: Fetches
  schedule: Schedule
  refreshes: { lagsMs: () => Record<string, number> | undefined }
  viewers: Pick<Viewers, 'came' | 'lost' | 'left'>
  recovery: { probe: (source: KeySource) => void }
  inTurns: InTurns
  refused: RefusedWants
  refusals: { refuse: Refusals['refuse']; refuseShare: Refusals['refuseShare'] }
  /** The link is due the key's latest state. */
  markDue: (link: string, key: string) => void
  /** By the key under which gateways watch each. */
  changes: Map<string, ChangeStream>
  metrics: FetcherMetrics
  now: () => number
  wallNow: () => number
}

export function createGatewayWants({
  namespaces,
  sources,
  table,
  interest,
  fetches,
  schedule,
  refreshes,
  viewers,
  recovery,
  inTurns,
  refused,
  refusals,
  markDue,
  changes,
  metrics,
  now,
  wallNow,
}: Deps): Events {
  const { refuse, refuseShare } = refusals
  const reported = createReportedChanges({ now })
  const onNotice = createRefreshNotices({ table, fetches, schedule, inTurns, reported, now })
  const isKeptByPlan = createPlans({ schedule, interest, reported, now })
  const marks = createMarks({ tell: markDue, lagsMs: refreshes.lagsMs, now })

  function onWatch(link: string, { key, position: held, payload, payer }: Wanted) {
    const stream = changes.get(key)
    if (stream) return stream.watch(link, held)
    const quiet = payload?.quiet === true
    const credentials = credentialsIn(payload)
    const entry = open(link, key, 'watch', credentials, payer)
    if (!entry) return
    if (refused.forgive(link, key, 'watch')) onGet(link, { key, position: held, payload, payer })
    noteHeld(entry, held)
    const wasKept = isKept(entry)
    // A gateway drops a user's own value when the token that fetched it is revoked.
    const wasLetGo = entry.namespace.isPerUser && !held && watcherOf(entry, link) !== undefined
    const watcher = interest.watch(link, entry, {
      version: held?.version,
      // Rounded up it is still no later than now: what is fetched from now on is news.
      askedAt: Math.min(askedAtOf(held), now() - 1),
      quiet,
      payer: table.shared(payer),
      credentials,
    })
    if (wasLetGo) askAnew(entry)
    table.recount(entry)
    if (table.get(key) !== entry) return // it took room that other keys need, and its links were refused
    if (!wasKept) viewers.came(entry)

    if (quiet && held?.version !== undefined && held.plan && isKeptByPlan(entry, held.version, held.plan)) {
      metrics.wanted('plan')
      return interest.notify(link, entry, watcher)
    }
    if (!isAnsweredByMemory(entry, watcher, wasKept)) return ask(entry, watcher)
    metrics.wanted('memory')
    // The fetch under way may bring something older than the gateway holds, which is not sent: another follows it.
    if (entry.fetch) fetches.wantSince(entry, watcher.askedAt)
    interest.notify(link, entry, watcher)
    if (wasKept) return
    schedule.begin(entry)
    if (isFailing(entry)) return recovery.probe(entry.source)
    // A node that takes over a watched key may have missed a change. A value without periodic refresh would then stay
    // old.
    if (held || entry.namespace.refreshMs === 0) fetches.want(entry)
  }

  /**
   * A value fetched with a revoked token is sent no more: the user's other token may have fewer rights.
   *
   * @param entry that is a user's own
   */
  function askAnew(entry: Entry) {
    // Dropped, not only marked as invalid: if the next fetch failed, the value would be sent with the failure.
    dropValue(entry)
    invalidate(entry)
    if (entry.fetch && fetches.hasOtherToken(entry.fetch)) fetches.repeat(entry)
  }

  /**
   * Whether a watch is answered from memory.
   *
   * @param wasKept whether the key was kept fresh before
   */
  function isAnsweredByMemory(entry: Entry, seen: Seen, wasKept: boolean) {
    // A failure is sent together with the held value, if any; and the key is tried again soon.
    if (isFailing(entry) && !entry.fetch) return wasKept || isBackingOff(entry)
    if (!isAnswered(entry)) return false
    // A key that the backend never had is asked for ever more rarely. A gateway that starts to watch it has just been
    // told that it exists.
    const isRefreshed = wasKept && !isMissing(entry)
    return (isRefreshed ? !entry.held.invalid : isFresh(entry, now())) && isNoOlder(entry, seen)
  }

  function onUnwatch(link: string, key: string, hasLeft: boolean) {
    changes.get(key)?.drop(link)
    refused.withdraw(link, key, 'watch')
    const entry = table.get(key)
    if (!entry || !interest.unwatch(link, entry)) return
    if (!hasLeft) viewers.lost(entry)
    afterWatch(entry)
  }

  function onGet(link: string, { key, position: held, payload, payer }: Wanted) {
    const credentials = credentialsIn(payload)
    const entry = open(link, key, 'get', credentials, payer)
    if (!entry) return
    if (refused.forgive(link, key, 'get')) onWatch(link, { key, position: held, payload: credentials, payer })
    noteHeld(entry, held)
    const seen = { version: held?.version, askedAt: askedAtOf(held), payer: table.shared(payer), credentials }
    const isOld = !isFresh(entry, now()) && absentForMs(entry, seen.payer, now()) > 0
    const isReady = (isOld || isFresh(entry, now())) && isNoOlder(entry, seen)
    const ready = isReady || (!entry.fetch && isBackingOff(entry))
    interest.wait(link, entry, seen, { ready, needsFollowUp: entry.fetch?.again === true, isOld })
    table.recount(entry)
    if (table.get(key) !== entry) return

    if (!ready) return ask(entry, seen)
    metrics.wanted('memory')
    markDue(link, key)
  }

  function onCancelGet(link: string, key: string) {
    refused.withdraw(link, key, 'get')
    const entry = table.get(key)
    if (entry && interest.stopWaiting(link, entry)) release(entry)
  }

  function onLinkLost(link: string): undefined {
    marks.drop(link)
    for (const stream of changes.values()) stream.drop(link)
    const entries = interest.entriesOf(link)
    // A link that is lost never returns under its id, so its wants may end one after the other.
    inTurns(() => {
      const { done, value: entry } = entries.next()
      if (done) {
        refused.dropLink(link)
        return false
      }
      if (interest.stopWaiting(link, entry)) release(entry)
      if (interest.unwatch(link, entry)) {
        viewers.lost(entry)
        afterWatch(entry)
      }
      return true
    })
  }

  function answersFor(link: string, key: string) {
    if (key === MARK) {
      marks.pass(link)
      return NOTHING
    }
    const answer = changes.get(key)?.answerFor(link) ?? answerFor(link, key)
    return answer ? { answers: [answer], more: false } : NOTHING
  }

  function answerFor(link: string, key: string): Answer | undefined {
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
   * @param key anything a gateway sent
   */
  function open(link: string, key: string, want: Want, credentials: Credentials | undefined, payer: Payer | undefined) {
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
    const source = sources.get(namespaceOf(key))
    if (!namespace || !source) return refuse(link, key, 'unknown_namespace', errorCodes.unknown_namespace, want)
    // Without a viewer one user's value would be shown to all.
    if ((namespace.isPerUser === true) !== (viewed !== undefined)) {
      return refuse(link, key, 'unknown_namespace', OTHER_CONFIGURATION, want)
    }
    const unfit = idProblem(namespace, idOf(viewed?.key ?? key))
    if (unfit) return refuse(link, key, 'bad_key', unfit, want)
    const entry = table.open(key, payer, () => createEntry(key, namespace, source))
    if (entry === 'share') return refuseShare(link, key, want, payer)
    return entry === 'full' ? refuse(link, key, 'capacity', errorCodes.capacity, want) : entry
  }

  /** A link dropped a want; it may still have the other. */
  function letGo(link: string, entry: Entry, want: Want) {
    if (want === 'get') {
      if (interest.stopWaiting(link, entry)) release(entry)
    } else if (interest.unwatch(link, entry)) afterWatch(entry)
  }

  function noteHeld(entry: Entry, held: GatewayHeld | undefined) {
    if (!held) return
    const { version, order, rank } = held
    if (noteRank(entry, { version, rank })) invalidate(entry)
    const wallMs = wallNow() - Math.round(now() - entry.held.askedAt)
    if (noteOrder(entry, { version, order, askedAt: askedAtOf(held) }, wallMs)) interest.oweAll(entry)
  }

  /** The time at which the backend was asked for the gateway's state. */
  function askedAtOf(held: GatewayHeld | undefined) {
    return held ? now() - held.ageMs : Number.NEGATIVE_INFINITY
  }

  /** Whether a try now would come before its time. */
  function isBackingOff(entry: Entry) {
    const { nextTryAt } = entry.timing
    return isFailing(entry) && nextTryAt !== undefined && nextTryAt > now()
  }

  /** Has the key fetched for a link. */
  function ask(entry: Entry, { askedAt }: Seen) {
    metrics.wanted(entry.fetch ? 'coalesced' : 'fetched')
    fetches.wantSince(entry, askedAt)
  }

  /** A link stopped watching. */
  function afterWatch(entry: Entry) {
    // Without the credentials that left, a user's own value cannot be kept fresh.
    if (!isWatched(entry) && entry.namespace.isPerUser) schedule.end(entry)
    else if (!isWatched(entry)) {
      interest.linger(entry, () => {
        viewers.left(entry)
        schedule.end(entry)
        forgetTakenOver(entry)
        release(entry)
      })
    }
    release(entry)
  }

  /** Drops an entry that nobody wants any more. */
  function release(entry: Entry) {
    if (!isWanted(entry)) fetches.abandon(entry)
    table.recount(entry)
  }

  return {
    onWatch,
    onUnwatch,
    onGet,
    onCancelGet,
    onNotice: (_, refresh) => onNotice(refresh),
    onLinkLost,
    answersFor,
    headsFor: marks.headsFor,
  }
}

function credentialsIn({ authorization, expiresAt }: Credentials = {}) {
  return authorization === undefined ? undefined : { authorization, expiresAt }
}
