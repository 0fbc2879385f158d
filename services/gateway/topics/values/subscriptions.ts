// The kind of topic that values are: ties sessions to entries, and makes each change of an entry due to its subscribers.
import type { Backbone } from '@keycast/backbone'
import { encode, errorMessage, type Problem } from '@keycast/protocol'
import type { Counts } from '../../counts.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { Gate } from '../../gate/gate.ts'
import type { Session } from '../../sessions/session.ts'
import type { Piece } from '../../transport/transport.ts'
import { attach, detach, FROM_NOTHING, type Kind, type Start, type Subscription } from '../topic.ts'
import { askedAtOf, endRefreshes } from './age.ts'
import type { Change } from './apply-answer.ts'
import type { Cache } from './cache.ts'
import { addDueFrames, CHANGED, CURRENT, mustWait, PROBLEM, VALUE } from './due-values.ts'
import { type Entry, NOBODY } from './entry.ts'
import type { Failure } from './failure.ts'
import type { Staleness } from './staleness.ts'

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

export type Subscriptions = ReturnType<typeof createSubscriptions>

interface Deps {
  gate: Pick<Gate, 'release'>
  cache: Cache
  backbone: Pick<Backbone, 'watch' | 'unwatch'>
  outbox: Pick<Outbox, 'owe' | 'forget' | 'sendText'>
  staleness: Pick<Staleness, 'check'>
  /** A new version is on its way to every subscriber. */
  onFanOut: (entry: Entry) => void
  counts: Counts
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createSubscriptions({ gate, cache, backbone, outbox, staleness, onFanOut, counts, now }: Deps) {
  let keys = 0

  function join(session: Session, entry: Entry, { version }: Start) {
    const isFirst = entry.subscriptions.length === 0
    if (isFirst) awake(entry)
    const subscription: ValueSubscription = {
      session,
      topic: entry,
      index: 0,
      due: 0,
      isPending: false,
      clientVersion: session.encoding.delta ? version : undefined,
    }
    attach(subscription)
    inform(subscription, version)
    if (!isFirst) return
    cache.update(entry)
    backbone.watch(entry.wireKey)
    check(entry)
  }

  function begin(subscription: ValueSubscription, { version }: Start) {
    // The client may not have read all it was sent. A delta therefore starts from a version that both sides name, or is
    // not sent.
    if (subscription.clientVersion !== version) subscription.clientVersion = undefined
    inform(subscription, version)
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
  function inform(subscription: ValueSubscription, version: string | undefined) {
    const { topic: entry } = subscription
    const { value } = entry
    // The fetcher keeps a watched key fresh. A key that was not watched may be old, unless its age says otherwise.
    if (value && (entry.isWatchAnswered || now() - askedAtOf(entry) <= entry.maxAgeMs)) {
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
  }

  function endPending(subscription: ValueSubscription) {
    if (!subscription.isPending) return
    subscription.isPending = false
    if (!subscription.session.encoding.delta) subscription.clientVersion = undefined
    subscription.topic.pendingSubscriptions--
  }

  /** The session is sent the latest state at the time of writing, however often it changed until then. */
  function owe(subscription: ValueSubscription, bits: number) {
    if (subscription.due & bits) counts.conflated++
    outbox.owe(subscription, bits)
  }

  function write(subscription: ValueSubscription, pieces: Piece[], _: number, nowMs: number) {
    if (mustWait(subscription)) return 0
    const bytes = addDueFrames(pieces, subscription, counts, nowMs)
    subscription.due = 0
    return bytes
  }

  function end(subscription: ValueSubscription) {
    const { topic } = subscription
    endPending(subscription)
    outbox.forget(subscription)
    detach(subscription)
    if (topic.subscriptions.length === 0) finish(topic)
  }

  /** @param entry whose last subscription ended */
  function finish(entry: Entry) {
    keys--
    entry.subscriptions = NOBODY
    entry.isWatchAnswered = false
    endRefreshes(entry)
    clearProblem(entry)
    backbone.unwatch(entry.wireKey)
    cache.update(entry)
  }

  /** Makes a change of an entry due to its subscribers. */
  function changed(entry: Entry, change: Change) {
    if (entry.subscriptions.length === 0) return
    switch (change) {
      case 'value':
        clearProblem(entry)
        oweAll(entry, VALUE | CHANGED)
        onFanOut(entry)
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

  /**
   * Makes a problem, or its end, due to subscribers if it is time for that. Must be called when an entry comes up in
   * the calendar.
   */
  function check(entry: Entry) {
    const word = staleness.check(entry)
    if (word === 'over') clearProblem(entry)
    if (word) oweAll(entry, word === 'over' ? CURRENT : PROBLEM)
  }

  /**
   * Makes the given bits due to every subscriber; those still pending get the value instead, if there is one.
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
        owe(subscription, subscription.clientVersion === value.version ? CURRENT : VALUE)
        endPending(subscription)
      } else if (bits !== 0) {
        owe(subscription, bits)
      }
    }
  }

  /** The key will have no value here, or not now: its subscriptions end with the reason. */
  function refuse(entry: Entry, { code, message }: Problem) {
    const text = encode(errorMessage({ code, message }, { key: entry.key, subscribed: false }))
    for (const subscription of [...entry.subscriptions]) {
      const { session } = subscription
      end(subscription)
      gate.release(session, 'subscribe', entry.key)
      counts.errors[code]++
      outbox.sendText(session, 'error', text)
    }
  }

  // A value paused is sent whole: what the client holds by then is not known.
  const kind: Kind = { name: 'value', join, begin, position: () => FROM_NOTHING, write, end }

  return { kind, changed, check, stats: () => ({ keys }) }
}

function clearProblem(entry: Entry) {
  entry.announcedCode = undefined
  entry.stale = false
  entry.problemFrames = undefined
}
