// The keys that an application watches: takes the gateway's messages, applies deltas, and asks again after doubts.
import { backoffMs } from '../connection/backoff.js'
import { endOf, KeycastError } from '../errors.js'
import { badKey } from '../requests.js'
import { createSubscriber } from '../subscriber.js'
import { createContent } from './content.js'
import { Entry, nothing } from './entry.js'
import { createHandle } from './handle.js'

/**
 * @typedef {import('../connection/connection.js').Limits} Limits
 * @typedef {import('./content.js').Content} Content
 * @typedef {ReturnType<typeof createValues>} Values
 */

/** A page that scrolls, or filters, returns to keys that it closed: they are kept this long, and at most so many. */
const KEEP_MS = 10_000
const KEPT_MAX = 100

/**
 * @param {object} deps
 * @param {import('../environment.js').Environment} deps.environment
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {() => import('../timers.js').Alarm} deps.createAlarm
 * @param {import('../calls.js').Calls} deps.calls
 * @param {import('../client.js').Link} deps.link
 * @param {number} [deps.keepMs] time that a value is kept after nobody watches it
 * @param {boolean} [deps.keepForbidden] whether a value stays when its user may see it no more
 */
export function createValues(deps) {
  const { environment, send, nextId, link, calls, keepMs = KEEP_MS, keepForbidden } = deps
  const { date, random } = environment
  /** @type {Map<string, Entry>} */
  const entries = new Map()
  const subscriber = createSubscriber({
    ...deps,
    entryOf(key) {
      const entry = entries.get(key)
      const version = entry?.versions.latest?.version
      // Also without that version's bytes, which only deltas need: nothing older may come after what was shown.
      return version || entry?.order ? { key, version, order: entry?.order } : key
    },
    fail,
    forget(key) {
      const entry = entries.get(key)
      if (entry?.handles !== 0) return
      if (!keepMs || !entry.versions.shown || entry.ended) return letGo(entry)
      kept.add(entry)
      entry.answered = undefined
      entry.publish()
      entry.alarm.set(() => letGo(entry), keepMs)
      if (kept.size > KEPT_MAX) letGo([...kept][0])
    },
  })
  /** The entries without a handle, in the order in which they were closed. @type {Set<Entry>} */
  const kept = new Set()
  /** Set once nothing is asked of the gateway any more. @type {KeycastError | undefined} */
  let closed

  /** @param {Entry} entry that nobody watches any more */
  function letGo(entry) {
    retake(entry)
    entries.delete(entry.key)
  }

  /** @param {Entry} entry that is kept no longer */
  function retake(entry) {
    entry.alarm.clear()
    kept.delete(entry)
  }

  /** @param {string} key @param {{ code: any, message: string, type?: string, retryAfterMs?: number, subscribed?: boolean }} error */
  function fail(key, error) {
    const entry = entries.get(key)
    if (!entry) return
    entry.error = new KeycastError({ ...error, key })
    const isForbidden = entry.health === 'forbidden'
    // There is no value any more. After any other error the value here is the latest there is.
    if (error.code === 'not_found' || (isForbidden && !keepForbidden)) {
      entry.versions.begin(undefined)
      entry.stale = false
    }
    if (isForbidden) entry.alarm.set(() => retry(entry), backoffMs(random, entry.tries++))
    // Nobody may want it any more: then the alarm is another's.
    if (!error.subscribed) subscriber.ended(key, error.type)
    entry.publish()
  }

  /** @param {string} key a room's @returns {boolean} whether the gateway was asked for it as a value */
  function failAsRoom(key) {
    const wasSubscribed = subscriber.isSubscribed(key)
    if (!entries.get(key)?.ended) fail(key, { code: 'not_a_value', message: 'a room' })
    return wasSubscribed
  }

  /** Asks how a key stands. @param {Entry} entry */
  function ask(entry) {
    const refused = closed ?? badKey(entry.key)
    if (refused || entry.ended) entry.error = refused
    if (!refused && entry.handles) subscriber.want(entry.key)
    entry.publish()
  }

  /** Asks again for a key whose subscription has ended. @param {Entry} entry */
  const retry = entry => endOf(entry.error) && ask(entry)

  /** @param {Entry} entry */
  const publish = entry => entry.publish()

  return {
    failAsRoom,
    isSubscribed: subscriber.isSubscribed,

    /** @param {string} key @param {number} [order] of a value that another client has shown */
    value(key, order) {
      const entry = entries.get(key) ?? new Entry(key, deps, subscriber.want)
      // Nothing older than what that client has shown is right before a gateway says so.
      const isBehind = (order ?? 0) > (entry.order ?? 0)
      if (isBehind) {
        entry.order = order
        entry.answered = undefined
      }
      // A key that nobody wanted for a moment may have missed a delta meanwhile.
      const isInDoubt =
        isBehind || !subscriber.isSubscribed(key) || !(entry.handles || (entry.answered && entry.versions.latest))
      retake(entry)
      entry.handles += 1
      entries.set(key, entry)
      if (isInDoubt) ask(entry)
      else subscriber.keep(key)
      return createHandle(entry, ask, () => {
        entry.handles -= 1
        if (!entry.handles) subscriber.drop(key)
      })
    },

    /** @param {string} key */
    peek: key => entries.get(key)?.state ?? nothing,

    /** @param {string} key @param {{ signal?: AbortSignal }} [options] */
    async get(key, { signal } = {}) {
      const refused = closed ?? badKey(key)
      if (refused) throw refused
      /** The version that the gateway need not send. @type {Content | undefined} */
      let held
      return calls.ask(
        () => {
          held = entries.get(key)?.versions.shown
          return { type: 'get', key, version: held?.version }
        },
        (message, bytes) => (bytes ? createContent({ ...message, bytes }) : held)?.read(),
        signal,
      )
    },

    /** @param {Limits} limits */
    opened(limits) {
      entries.forEach(publish)
      subscriber.opened(
        limits,
        [...entries.values()].filter(({ ended, handles }) => handles && !ended),
      )
    },

    lost() {
      subscriber.lost()
      entries.forEach(publish)
    },

    /** @param {any} message @param {Uint8Array} [bytes] @returns {boolean} whether it was about a value */
    receive(message, bytes) {
      const { type, key, version, order, keys = [] } = message
      for (const begun of keys) {
        // Only messages about a room have an epoch. A client with rooms has handled them already.
        if (begun.epoch && failAsRoom(begun.key)) send({ type: 'unsubscribe', id: nextId(), keys: [begun.key] })
      }
      if (subscriber.answered(message)) return true
      const entry = entries.get(key)
      if (!entry || !subscriber.isSubscribed(key)) return false
      // A kept value has missed changes: it is in doubt until it is asked for again.
      if (entry.handles) entry.answered = link.session
      if (type === 'error') fail(key, message)
      else if (type === 'stale') entry.stale = { code: message.code, askedAt: date() - message.sinceMs }
      else {
        if (type === 'value' && bytes) entry.versions.begin(createContent({ ...message, bytes }))
        else if (type === 'delta' && bytes) entry.versions.change(message, bytes)
        else if (type !== 'current') return false
        else if (entry.versions.latest?.version !== version) entry.versions.doubt()
        entry.order = order
        entry.stale = false
        entry.error = undefined
        entry.tries = 0
      }
      entry.publish()
      return true
    },

    /** Nothing more is asked of the gateway. @param {KeycastError} error */
    end(error) {
      closed = error
      // The next user must not see it, and its timers would keep a program from ending.
      kept.forEach(letGo)
      entries.forEach(ask)
    },

    /** A listener that hears of it may close the client, which ends all keys again. */
    revive() {
      closed = undefined
      entries.forEach(retry)
    },
  }
}
