// Subscriptions of sessions to keys: ties sessions to entries, and makes each change of an entry due to its
// subscribers.
import type { Backbone } from '@keycast/backbone'
import { encode, errorMessage, type Problem } from '@keycast/protocol'
import type { Counts } from '../counts.ts'
import { CHANGED, CURRENT, PROBLEM, VALUE } from '../delivery/due.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Admitted, Gate } from '../gate/gate.ts'
import type { Session } from '../sessions/session.ts'
import { askedAtOf, endRefreshes } from './age.ts'
import type { Change } from './apply-answer.ts'
import type { Cache } from './cache.ts'
import { type Entry, NOBODY } from './entry.ts'
import type { Failure } from './problem.ts'
import type { Staleness } from './staleness.ts'
import type { Values } from './values.ts'

/** One session's interest in one key. There may be millions, so it is small: a place in its entry's list, and bits. */
export interface Subscription {
  session: Session
  entry: Entry
  /** In the entry's list. */
  index: number
  /** Bits of due.ts. While any is set the subscription is in its session's `due`, unless WAITS is among them. */
  due: number
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
  values: Pick<Values, 'open'>
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

export function createSubscriptions({ values, gate, cache, backbone, outbox, staleness, onFanOut, counts, now }: Deps) {
  let keys = 0

  /**
   * Subscribes a session to a key. One that is subscribed is sent the key's state again.
   *
   * @param admitted to a key, which the session holds
   * @param version the client holds
   * @returns why it was not subscribed
   */
  function add(
    session: Session,
    { key, wireKey }: Pick<Admitted, 'key' | 'wireKey'>,
    version: string | undefined,
  ): Problem | undefined {
    const subscribed = session.subscriptions.get(key) as Subscription | undefined
    if (subscribed) {
      // The client may not have read all it was sent. A delta therefore starts from a version that both sides name, or
      // is not sent.
      if (subscribed.clientVersion !== version) subscribed.clientVersion = undefined
      inform(subscribed, version)
      return undefined
    }
    // Watched keys cannot be dropped. Past the limit only keys that are watched already fit.
    if (!cache.get(wireKey)?.subscriptions.length && cache.isFull()) return { code: 'capacity' }

    const entry = values.open(wireKey)
    if (entry.subscriptions.length === 0) begin(entry)
    const subscription = {
      session,
      entry,
      index: entry.subscriptions.length,
      due: 0,
      isPending: false,
      clientVersion: session.encoding.delta ? version : undefined,
    }
    entry.subscriptions.push(subscription)
    // Uses the entry's own string: the string of this message would be in memory once per session.
    session.subscriptions.set(entry.key, subscription)
    inform(subscription, version)
    if (entry.subscriptions.length === 1) {
      cache.update(entry)
      backbone.watch(wireKey)
      check(entry)
    }
    return undefined
  }

  /** @param entry without subscriptions until now */
  function begin(entry: Entry) {
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
  function inform(subscription: Subscription, version: string | undefined) {
    const { entry } = subscription
    const { value } = entry
    // The fetcher keeps a watched key fresh. A key that was not watched may be old, unless its age says otherwise.
    if (value && (entry.isWatchAnswered || now() - askedAtOf(entry) <= entry.maxAgeMs)) {
      counts.subscribeHits++
      endPending(subscription)
      return outbox.owe(subscription, value.version === version ? CURRENT : VALUE)
    }
    counts.subscribeMisses++
    if (!subscription.isPending) entry.pendingSubscriptions++
    subscription.isPending = true
    // A client that is told `not_found` is sent the whole value when the key has one again.
    subscription.clientVersion = entry.failure?.problem.code === 'not_found' ? undefined : version
    if (!value && entry.failure) outbox.owe(subscription, PROBLEM)
  }

  function endPending(subscription: Subscription) {
    if (!subscription.isPending) return
    subscription.isPending = false
    if (!subscription.session.encoding.delta) subscription.clientVersion = undefined
    subscription.entry.pendingSubscriptions--
  }

  /** Ends a subscription: nothing of its key is written after. */
  function end(subscription: Subscription) {
    const { session, entry, index } = subscription
    session.subscriptions.delete(entry.key)
    endPending(subscription)
    outbox.forget(subscription)
    const last = entry.subscriptions.pop() as Subscription
    if (last !== subscription) {
      entry.subscriptions[index] = last
      last.index = index
    }
    if (entry.subscriptions.length === 0) finish(entry)
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
        outbox.owe(subscription, subscription.clientVersion === value.version ? CURRENT : VALUE)
        endPending(subscription)
      } else if (bits !== 0) {
        outbox.owe(subscription, bits)
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

  return { add, end, changed, check, stats: () => ({ keys }) }
}

function clearProblem(entry: Entry) {
  entry.announcedCode = undefined
  entry.stale = false
  entry.problemFrames = undefined
}
