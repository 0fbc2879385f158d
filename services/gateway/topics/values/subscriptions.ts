// The kind of topic that values are: opens entries, ties sessions to them, and makes each change of an entry due to its subscribers.
import { type Backbone, readViewerKey } from '@keycast/backbone'
import {
  type ErrorMessage,
  encode,
  errorMessage,
  excerpt,
  keyProblem,
  namespaceOf,
  type Problem,
} from '@keycast/protocol'
import { ANSWER_GRACE_MS, type Calendar, type Payer, SHARE_TAKEN, type ValueNamespaces } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Lasting } from '../../gate/gate.ts'
import type { Session } from '../../sessions/session.ts'
import type { Piece } from '../../transport/transport.ts'
import { attach, detach, FROM_NOTHING, type Kind, type Start, type Subscription } from '../topics.ts'
import type { Change } from './answers.ts'
import { type Cache, createEntry, type Entry, type Lag, NOBODY } from './cache.ts'
import { addDueFrames, CHANGED, CURRENT, mustWait, PROBLEM, VALUE } from './due-values.ts'
import { type Failure, problemNow, silentOwner } from './failure.ts'
import { candidates, leastLoaded, share } from './payer-choice.ts'
import { askedAtOf, endRefreshes, type Staleness } from './staleness.ts'
import { hasReached } from './value.ts'

/** A subscription to a value. Its `due` has bits of due-values.ts. */
export interface ValueSubscription extends Subscription {
  readonly topic: Entry
  /** Whether the first value is still to come. */
  isPending: boolean
  /**
   * The client's version: the one it named while pending; later the last one it was sent, from which a delta may start.
   * Only for encodings with deltas.
   */
  clientVersion: string | undefined
}

/**
 * A client's number is believed until so many gets were answered. The first may have been under way when the client came; or
 * its node took the key for its own while another gateway asked another node, which was sent something newer. For the
 * second the node asks the backend.
 */
const ANSWERS = 2

interface Deps {
  namespaces: ValueNamespaces
  gate: { release(session: Session, act: Lasting, key: string): void }
  cache: Cache
  calendar: Pick<Calendar<Entry>, 'schedule'>
  backbone: Pick<Backbone, 'watch' | 'unwatch' | 'renewWatch' | 'get' | 'nodesAlive'>
  outbox: {
    owe(subscription: Subscription, bits: number): void
    forget(subscription: Subscription): void
    sendError(session: Session, message: ErrorMessage, text: string): void
    fence(reached: () => void): void
  }
  staleness: Staleness
  onOpened: (entry: Entry) => void
  counts: Counts
  now: () => number
}

export function createSubscriptions({
  namespaces,
  gate,
  cache,
  calendar,
  backbone,
  outbox,
  staleness,
  onOpened,
  counts,
  now,
}: Deps) {
  let keys = 0

  /**
   * The entry of a key, made if there is none. It must be wanted (subscribed to or waited for) before the cache's
   * `update` sees it, or it is dropped again.
   *
   * @param wireKey of a key that passed the gate
   */
  function open(wireKey: string): Entry {
    const known = cache.get(wireKey)
    if (known) return known
    const namespace = namespaces.get(namespaceOf(wireKey))
    // A caller that forgot to check would let a stranger choose the URLs that the fetcher asks the backend for. One
    // that forgot the viewer would show one user's value to all.
    const isOwn = namespace?.isPerUser === true
    const key = isOwn ? readViewerKey(wireKey)?.key : wireKey
    if (!namespace || key === undefined || keyProblem(key)) {
      throw new Error(`opened ${excerpt(wireKey)}, which nobody checked`)
    }
    const entry = createEntry(wireKey, namespace, kind)
    cache.add(entry)
    if (entry.viewer !== undefined) onOpened(entry)
    return entry
  }

  /** The same for a subscription. Watched keys cannot be dropped: past the limit only those fit that are watched already. */
  function openWatched(wireKey: string, payer: Payer | undefined): Entry | Problem {
    const known = cache.get(wireKey)
    const problem = known?.subscriptions.length ? undefined : cache.refusal(payer, known)
    return problem ?? open(wireKey)
  }

  function join(session: Session, entry: Entry, start: Start) {
    const isFirst = entry.subscriptions.length === 0
    if (isFirst) awake(entry)
    const subscription: ValueSubscription = {
      session,
      topic: entry,
      index: 0,
      due: 0,
      isPending: false,
      clientVersion: session.encoding.delta ? start.version : undefined,
    }
    attach(subscription)
    inform(subscription, start)
    if (!isFirst) {
      if (share(entry, session, cache.mayPay)) tellPayer(entry)
      return
    }
    entry.paying = session
    cache.update(entry)
    backbone.watch(entry.wireKey)
    check(entry)
  }

  function begin(subscription: ValueSubscription, start: Start) {
    // The client may not have read all it was sent. A delta therefore starts from a version that both sides name, or is
    // not sent.
    if (subscription.clientVersion !== start.version) subscription.clientVersion = undefined
    inform(subscription, start)
  }

  /** @param entry without subscriptions until now */
  function awake(entry: Entry) {
    keys++
    entry.subscriptions = []
    entry.watchedAtMs = now()
    entry.isWatchAnswered = false
    // `not_found` is an answer, good for its time. Any other problem is one of an earlier try.
    if (entry.failure?.problem.code === 'not_found' && now() - askedAtOf(entry) <= entry.maxAgeMs)
      entry.announcedCode = 'not_found'
    else entry.failure = undefined
  }

  /** Makes the key's state due to one subscription, or lets it wait for the first value. */
  function inform(subscription: ValueSubscription, { version, order }: Start) {
    const { topic: entry } = subscription
    const { value } = entry
    // The fetcher keeps a watched key fresh. A key that was not watched may be old, unless its age says otherwise.
    const isKnown = value && (entry.isWatchAnswered || entry.stale || now() - askedAtOf(entry) <= entry.maxAgeMs)
    // A gateway that sent the client its version may have heard of a change a moment before this one, also where the version
    // is the same: it may have come back.
    if (isKnown && hasReached(value, order)) {
      counts.subscribeHits++
      endPending(subscription)
      return owe(subscription, value.version === version ? CURRENT : VALUE)
    }
    counts.subscribeMisses++
    if (!subscription.isPending) entry.pendingSubscriptions++
    subscription.isPending = true
    // A client that is told `not_found` is sent the whole value when the key has one again.
    subscription.clientVersion = entry.failure?.problem.code === 'not_found' ? undefined : version
    if (!value && entry.failure) owe(subscription, PROBLEM)
    if (order !== undefined) awaitOrder(subscription, order)
    if (isKnown) {
      counts.asked++
      backbone.get(entry.wireKey)
    }
  }

  /** The subscription is sent no value before the one with that number, unless the fetcher says that there is none. */
  function awaitOrder(subscription: ValueSubscription, order: number) {
    const { topic: entry } = subscription
    entry.lag ??= { waiting: new Map(), isDoubted: false, untilMs: Number.POSITIVE_INFINITY }
    const { waiting, untilMs } = entry.lag
    waiting.set(subscription, { order, answers: ANSWERS, isTold: false })
    entry.lag.untilMs = Math.min(untilMs, now() + entry.namespace.timeoutMs + ANSWER_GRACE_MS)
    calendar.schedule(entry, entry.lag.untilMs)
  }

  /** @param isLatest of the answer: whether it is that of a get; a watch's may be older than a client's value */
  function catchUp(entry: Entry, change: Change, isLatest: boolean) {
    const { lag, value } = entry
    if (!lag) return
    if (change === 'failed') {
      // It says nothing of what is the latest. The fetcher tries again by itself.
      if (isLatest) lag.untilMs = now()
      return
    }
    for (const [subscription, waits] of lag.waiting) {
      if (isLatest) waits.answers--
      if (waits.answers === 0 || (value && hasReached(value, waits.order))) trust(subscription)
    }
    if (!entry.lag) return
    entry.lag.isDoubted ||= isLatest
    backbone.get(entry.wireKey)
  }

  /** What is known of its key is no older than what its client holds. */
  function trust(subscription: ValueSubscription) {
    const { topic } = subscription
    topic.lag?.waiting.delete(subscription)
    if (topic.lag?.waiting.size === 0) topic.lag = undefined
  }

  function endPending(subscription: ValueSubscription) {
    if (!subscription.isPending) return
    subscription.isPending = false
    if (!subscription.session.encoding.delta) subscription.clientVersion = undefined
    subscription.topic.pendingSubscriptions--
    trust(subscription)
  }

  /** The session is sent the latest state at the time of writing, however often it changed until then. */
  function owe(subscription: ValueSubscription, bits: number) {
    if (subscription.due & bits) counts.conflated++
    outbox.owe(subscription, bits)
  }

  function write(subscription: ValueSubscription, pieces: Piece[], _: number, nowMs: number) {
    if (mustWait(subscription)) return 0
    const { value, lag } = subscription.topic
    // Of what it was due before it named a later version nothing is written, either.
    const isBehind = value && lag?.waiting.has(subscription)
    const bytes = isBehind ? 0 : addDueFrames(pieces, subscription, counts, nowMs)
    subscription.due = 0
    return bytes
  }

  function end(subscription: ValueSubscription) {
    const { topic } = subscription
    endPending(subscription)
    outbox.forget(subscription)
    detach(subscription)
    if (topic.subscriptions.length === 0) finish(topic)
    else if (topic.paying === subscription.session) passOn(topic)
  }

  /**
   * The one who paid wants the key no more, and another pays. Whoever would then hold more than they could alone is
   * refused it: else two could open keys for each other until one holds all there is.
   */
  function passOn(entry: Entry) {
    entry.paying = undefined
    while (!entry.paying && entry.subscriptions.length > 0) {
      entry.paying = leastLoaded(entry, cache.mayPay)
      if (!entry.paying) refuse(entry, { code: 'capacity', message: SHARE_TAKEN }, candidates(entry))
    }
    if (entry.subscriptions.length === 0) entry.paying = entry.waiters[0]
    else if (entry.paying?.payer !== entry.holder?.payer) tellPayer(entry)
  }

  /** The session has another payer: whether that one may pay in its place is another question. */
  function payerChanged(session: Session) {
    for (const { topic } of [...session.subscriptions.values()]) {
      if (topic.kind === kind && (topic as Entry).paying === session) passOn(topic as Entry)
    }
  }

  /** Another pays for a watched key from now on. */
  function tellPayer(entry: Entry) {
    cache.update(entry)
    backbone.renewWatch(entry.wireKey)
  }

  /** @param entry whose last subscription ended */
  function finish(entry: Entry) {
    keys--
    entry.subscriptions = NOBODY
    entry.paying = entry.waiters[0]
    entry.isWatchAnswered = false
    endRefreshes(entry)
    clearProblem(entry)
    backbone.unwatch(entry.wireKey)
    cache.update(entry)
  }

  /**
   * Makes a change of an entry due to its subscribers.
   *
   * @param isLatest of an answer: whether it is that of the key's get, and not only of its watch
   */
  function changed(entry: Entry, change: Change, isLatest = true) {
    if (entry.subscriptions.length === 0) return
    catchUp(entry, change, isLatest)
    switch (change) {
      case 'value':
        clearProblem(entry)
        oweAll(entry, VALUE | CHANGED)
        measureFanOut(entry)
        break
      case 'confirmed': {
        const wasStale = entry.stale
        clearProblem(entry)
        oweAll(entry, wasStale ? CURRENT : 0)
        break
      }
      case 'kept':
        oweAll(entry, 0)
        break
      case 'failed':
        // A pending subscription is sent the present value, though old: `stale` follows.
        if (entry.value) oweAll(entry, 0)
        break
      case 'gone':
        // No client has a version any more: when the backend has the key again, all are sent the whole value.
        entry.stale = false
        for (const subscription of entry.subscriptions) subscription.clientVersion = undefined
        break
      case 'refused':
        return refuse(entry, (entry.failure as Failure).problem)
    }
    check(entry)
  }

  function measureFanOut({ value, askedAtMs }: Entry) {
    const startMs = now()
    if (value) value.receivedAtMs = startMs
    outbox.fence(() => {
      const endMs = now()
      counts.fanOuts.observe(endMs - startMs)
      counts.valueAges.observe(Math.max(0, endMs - askedAtMs))
      if (value?.delayMs !== undefined) counts.changeDelays.observe(value.delayMs + endMs - startMs)
    })
  }

  /**
   * Makes a problem, or its end, due to subscribers if it is time for that. Must be called when an entry comes up in
   * the calendar.
   */
  function check(entry: Entry) {
    if (entry.value && entry.lag && now() >= entry.lag.untilMs) tellLate(entry, entry.lag)
    if (entry.lag) calendar.schedule(entry, entry.lag.untilMs)
    const due = staleness.check(entry)
    if (due === 'over') clearProblem(entry)
    if (due) oweAll(entry, due === 'over' ? CURRENT : PROBLEM)
  }

  /**
   * The fetcher has not said in time what is the latest, or could not. Only those hear of it who came with a later version,
   * each once, and wait on.
   */
  function tellLate({ key, wireKey, namespace, failure }: Entry, lag: Lag) {
    lag.untilMs = Number.POSITIVE_INFINITY
    const problem = failure ? problemNow(failure, now()) : silentOwner(namespace, backbone.nodesAlive(wireKey))
    const error = errorMessage(problem, { key, subscribed: true })
    const text = encode(error)
    for (const [{ session }, waits] of lag.waiting) {
      if (waits.isTold) continue
      waits.isTold = true
      outbox.sendError(session, error, text)
    }
  }

  /**
   * Makes the given bits due to every subscriber; those still pending get the value instead, if there is one that they may
   * be sent.
   *
   * @param bits 0 to reach only the pending ones
   */
  function oweAll(entry: Entry, bits: number) {
    const { subscriptions, value } = entry
    if (bits === 0 && entry.pendingSubscriptions === 0) return
    // The loop every fan-out runs once per subscriber: no iterator, no closure.
    for (let index = 0; index < subscriptions.length; index++) {
      const subscription = subscriptions[index]
      if (subscription.isPending && value) {
        if (entry.lag?.waiting.has(subscription)) continue
        owe(subscription, subscription.clientVersion === value.version ? CURRENT : VALUE)
        endPending(subscription)
      } else if (bits !== 0) {
        owe(subscription, bits)
      }
    }
  }

  /**
   * The key will have no value here, or not now: its subscriptions end with the reason.
   *
   * @param subscriptions all, or some: where that of the one who pays is among them, {@link passOn} is to follow
   */
  function refuse(
    entry: Entry,
    { code, message, retryAfterMs }: Problem,
    subscriptions: readonly ValueSubscription[] = [...entry.subscriptions],
  ) {
    const error = errorMessage({ code, message, retryAfterMs }, { key: entry.key, subscribed: false })
    const text = encode(error)
    // Or each that ends would pass on to the next.
    if (subscriptions.some(({ session }) => session === entry.paying)) entry.paying = undefined
    for (const subscription of subscriptions) {
      const { session } = subscription
      // What was sent to another has ended it.
      if (subscription.index < 0) continue
      end(subscription)
      gate.release(session, 'subscribe', entry.key)
      outbox.sendError(session, error, text)
    }
  }

  // A value paused is sent whole: what the client holds by then is not known.
  const kind: Kind = { name: 'value', join, begin, position: () => FROM_NOTHING, write, end }

  return { open, openWatched, changed, check, refuse, passOn, payerChanged, stats: () => ({ keys }) }
}

function clearProblem(entry: Entry) {
  entry.announcedCode = undefined
  entry.stale = false
  entry.problemFrames = undefined
}
