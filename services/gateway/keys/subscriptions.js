// Who watches what: ties sessions to entries, and turns each change of an entry into what its subscribers lack.
import { encodeError, errorCodes } from '@keycast/protocol'
import { CHANGED, CURRENT, TROUBLE, VALUE } from '../delivery/due.js'
import { textFrame } from '../transport/frames.js'
import { NOBODY } from './entry.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {import('./entry.js').Problem} Problem
 * @typedef {import('../sessions/session.js').Session} Session
 *
 * One session's interest in one key. There may be millions, so it is small: a place in its entry's list, and bits.
 * @typedef {object} Subscription
 * @property {Session} session
 * @property {Entry} entry
 * @property {number} index in the entry's list
 * @property {number} lacks bits of lacks.js; while there are any it stands in its session's `lacking`, or AWAITS is one
 * @property {boolean} waiting whether the first value is still to come
 * @property {string | undefined} held the version the client holds: while waiting, the one it said; of a session that
 *   speaks bytes, also the one it was last sent, from which a delta may start
 *
 * @typedef {Pick<Problem, 'code' | 'message'>} Refusal
 * @typedef {ReturnType<typeof createSubscriptions>} Subscriptions
 */

/** @type {Refusal} */
const tooManyKeys = { code: 'too_many_keys', message: errorCodes.too_many_keys }

/**
 * @param {object} deps
 * @param {import('./values.js').Values} deps.values
 * @param {import('./cache.js').Cache} deps.cache
 * @param {Pick<import('@keycast/backbone').Backbone, 'watch' | 'unwatch'>} deps.backbone
 * @param {import('../delivery/outbox.js').Outbox} deps.outbox
 * @param {Pick<import('./staleness.js').Staleness, 'judge'>} deps.staleness
 * @param {(entry: Entry) => void} deps.onFanOut a new version is on its way to every subscriber
 * @param {number} deps.keysPerSessionMax
 * @param {import('../metrics.js').Counts} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createSubscriptions({
  values,
  cache,
  backbone,
  outbox,
  staleness,
  onFanOut,
  keysPerSessionMax,
  counts,
  now,
}) {
  let count = 0
  let keys = 0

  /**
   * Subscribes a session to a key, or tells one that is subscribed where the key stands.
   *
   * @param {Session} session
   * @param {string} key as a client sent it
   * @param {string | undefined} version the client holds
   * @returns {Refusal | undefined} why it was not subscribed
   */
  function add(session, key, version) {
    const subscribed = session.subscriptions.get(key)
    if (subscribed) {
      // It may say so without having read all it was sent: a delta starts from what both agree on, or there is none.
      if (subscribed.held !== version) subscribed.held = undefined
      inform(subscribed, version)
      return undefined
    }
    const refusal = values.refusal(key)
    if (refusal) return refusal
    if (session.subscriptions.size >= keysPerSessionMax) return tooManyKeys
    // What is watched cannot be let go of: past the limit there is room only for those who join.
    if (!cache.get(key)?.subscriptions.length && cache.isFull()) return values.noRoom()

    const entry = values.open(key)
    if (entry.subscriptions.length === 0) begin(entry)
    const subscription = {
      session,
      entry,
      index: entry.subscriptions.length,
      lacks: 0,
      waiting: false,
      held: session.bytes ? version : undefined,
    }
    entry.subscriptions.push(subscription)
    // Under the entry's own string: the one parsed from this message would be held once per session.
    session.subscriptions.set(entry.key, subscription)
    count++
    inform(subscription, version)
    if (entry.subscriptions.length === 1) {
      cache.settle(entry)
      backbone.watch(key)
      judge(entry)
    }
    return undefined
  }

  /** @param {Entry} entry nobody subscribed to until now */
  function begin(entry) {
    keys++
    entry.subscriptions = []
    entry.watchedAtMs = now()
    entry.answered = false
    // That the backend has nothing is an answer, good for its time. Any other trouble is that of an earlier try.
    if (entry.problem?.code === 'not_found' && now() - entry.askedAtMs <= entry.maxAgeMs) entry.told = 'not_found'
    else entry.problem = undefined
  }

  /**
   * Gives one subscription the key's state, or lets it wait for that.
   *
   * @param {Subscription} subscription
   * @param {string | undefined} version
   */
  function inform(subscription, version) {
    const { entry } = subscription
    const { value } = entry
    // A watched key is kept fresh by the fetcher; one nobody watched may be old, unless its age says otherwise.
    if (value && (entry.answered || now() - entry.askedAtMs <= entry.maxAgeMs)) {
      counts.subscribeHits++
      stopWaiting(subscription)
      return outbox.lack(subscription, value.version === version ? CURRENT : VALUE)
    }
    counts.subscribeMisses++
    if (!subscription.waiting) entry.waitingSubscriptions++
    subscription.waiting = true
    // Told that there is none, a client is sent the value whole when there is one again.
    subscription.held = entry.problem?.code === 'not_found' ? undefined : version
    if (!value && entry.problem) outbox.lack(subscription, TROUBLE)
  }

  /** @param {Subscription} subscription */
  function stopWaiting(subscription) {
    if (!subscription.waiting) return
    subscription.waiting = false
    if (!subscription.session.bytes) subscription.held = undefined
    subscription.entry.waitingSubscriptions--
  }

  /**
   * Ends a session's subscription to a key: nothing of it is written after.
   *
   * @param {Session} session
   * @param {string} key
   */
  function remove(session, key) {
    const subscription = session.subscriptions.get(key)
    if (!subscription) return
    session.subscriptions.delete(key)
    end(subscription)
  }

  /** @param {Session} session that ended */
  function drop(session) {
    for (const subscription of session.subscriptions.values()) end(subscription)
    session.subscriptions.clear()
  }

  /** @param {Subscription} subscription */
  function end(subscription) {
    stopWaiting(subscription)
    outbox.forget(subscription)
    count--
    const { entry, index } = subscription
    const last = /** @type {Subscription} */ (entry.subscriptions.pop())
    if (last !== subscription) {
      entry.subscriptions[index] = last
      last.index = index
    }
    if (entry.subscriptions.length === 0) finish(entry)
  }

  /** @param {Entry} entry nobody subscribes to any more */
  function finish(entry) {
    keys--
    entry.subscriptions = NOBODY
    entry.answered = false
    endTrouble(entry)
    backbone.unwatch(entry.key)
    cache.settle(entry)
  }

  /**
   * Makes known to subscribers what has become of an entry.
   *
   * @param {Entry} entry
   * @param {import('./apply-answer.js').Change} change
   */
  function changed(entry, change) {
    if (entry.subscriptions.length === 0) return
    switch (change) {
      case 'value':
        endTrouble(entry)
        tell(entry, VALUE | CHANGED)
        onFanOut(entry)
        break
      case 'confirmed': {
        const wasStale = entry.stale
        endTrouble(entry)
        tell(entry, wasStale ? CURRENT : 0)
        break
      }
      case 'failed':
        // Whoever waits for a value that is held, though old, has it now: what is wrong follows.
        if (entry.value) tell(entry, 0)
        break
      case 'gone':
        // Nobody holds a version any more: when the backend has the key again, all are sent it whole.
        entry.stale = false
        for (const subscription of entry.subscriptions) subscription.held = undefined
        break
      case 'refused':
        return refuse(entry, /** @type {Problem} */ (entry.problem))
    }
    judge(entry)
  }

  /**
   * Tells subscribers of a trouble where it is time. To be called when an entry's deadline is over.
   *
   * @param {Entry} entry
   */
  function judge(entry) {
    if (staleness.judge(entry)) tell(entry, TROUBLE)
  }

  /**
   * Notes what subscribers lack: the given bit, or the value for those who still wait for one if it is there.
   *
   * @param {Entry} entry
   * @param {number} bit 0 where only those who wait are told
   */
  function tell(entry, bit) {
    const { subscriptions, value } = entry
    if (bit === 0 && entry.waitingSubscriptions === 0) return
    // The loop every fan-out runs once per subscriber: no iterator, no closure.
    for (let index = 0; index < subscriptions.length; index++) {
      const subscription = subscriptions[index]
      if (subscription.waiting && value) {
        outbox.lack(subscription, subscription.held === value.version ? CURRENT : VALUE)
        stopWaiting(subscription)
      } else if (bit !== 0) {
        outbox.lack(subscription, bit)
      }
    }
  }

  /**
   * The key will have no value here, or not now: its subscriptions end with the reason.
   *
   * @param {Entry} entry
   * @param {Problem} problem
   */
  function refuse(entry, { code, message }) {
    const { frame } = textFrame(encodeError({ key: entry.key, code, message }))
    for (const { session } of [...entry.subscriptions]) {
      remove(session, entry.key)
      counts.sent.error++
      counts.errors[code]++
      outbox.sendFrame(session, frame)
    }
  }

  return { add, remove, drop, changed, judge, stats: () => ({ subscriptions: count, keys }) }
}

/** @param {Entry} entry */
function endTrouble(entry) {
  entry.told = undefined
  entry.stale = false
  entry.troubleFrame = undefined
}
