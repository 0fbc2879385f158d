// The keys that an application watches: takes the gateway's messages, applies deltas, and asks again after doubts.
import { KeycastError } from '../errors.js'
import { badKey } from '../requests.js'
import { createSubscriber } from '../subscriber.js'
import { createContent } from './content.js'
import { changed } from './delta.js'
import { Entry, nothing } from './entry.js'
import { createHandle } from './handle.js'
import { isAsNamed } from './version.js'

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
 * @param {number} [deps.keepMs] time that a value is kept after nobody watches it
 */
export function createValues({ environment, send, nextId, createAlarm, calls, keepMs = KEEP_MS }) {
  const { date, sha256 } = environment
  /** @type {Map<string, Entry>} */
  const entries = new Map()
  const subscriber = createSubscriber({
    send,
    nextId,
    createAlarm,
    entryOf(key) {
      const version = entries.get(key)?.latest?.version
      return version ? { key, version } : key
    },
    fail,
    forget(key) {
      const entry = entries.get(key)
      if (entry?.handles !== 0) return
      if (!keepMs || !entry.shown || entry.ended) return letGo(key)
      retake(key)
      kept.set(key, createAlarm())
      kept.get(key)?.set(() => letGo(key), keepMs)
      entry.held = true
      entry.publish()
      if (kept.size > KEPT_MAX) letGo([...kept.keys()][0])
    },
  })
  /** The entries without a handle, in the order in which they were closed, with what ends their time. */
  /** @type {Map<string, import('../timers.js').Alarm>} */
  const kept = new Map()
  /** Set once nothing is asked of the gateway any more. @type {KeycastError | undefined} */
  let closed

  /** @param {string} key that nobody watches any more */
  function letGo(key) {
    retake(key)
    entries.delete(key)
  }

  /** @param {string} key that is kept no longer */
  function retake(key) {
    kept.get(key)?.clear()
    kept.delete(key)
  }

  /** @param {string} key @param {{ code: any, message: string, retryAfterMs?: number, subscribed?: boolean }} error */
  function fail(key, error) {
    const entry = entries.get(key)
    if (!entry) return
    entry.error = new KeycastError({ ...error, key })
    // There is no value any more. After any other error the value here is the latest there is.
    if (error.code === 'not_found') {
      entry.begin(undefined)
      entry.stale = false
    }
    if (entry.ended) subscriber.ended(key)
    entry.publish()
  }

  /** @param {string} key a room's @returns {boolean} whether the gateway was asked for it as a value */
  function failAsRoom(key) {
    const wasSubscribed = subscriber.isSubscribed(key)
    if (!entries.get(key)?.ended) fail(key, { code: 'not_a_value', message: 'this key is a room' })
    return wasSubscribed
  }

  /** Asks for the whole value: the gateway is wrong about this client's version. @param {Entry} entry */
  function doubt(entry) {
    if (entry.awaitsWhole) return
    entry.latest = undefined
    entry.shownTurn = ++entry.turn
    // It may have been dropped while its hash was computed.
    if (!entry.handles) return
    entry.awaitsWhole = true
    subscriber.want(entry.key)
  }

  /** @param {Entry} entry @param {any} message @param {Uint8Array} bytes of the delta */
  function change(entry, message, bytes) {
    const { latest } = entry
    if (entry.awaitsWhole || latest?.version === message.version) return
    const made = changed(latest, message, bytes)
    if (!made) return doubt(entry)
    entry.latest = made
    if (sha256) check(entry, made, sha256)
    else entry.shown = made
  }

  /**
   * Shows the result of a delta once its hash is known to be right.
   *
   * @param {Entry} entry
   * @param {Content} made
   * @param {NonNullable<import('../environment.js').Environment['sha256']>} sha256
   */
  async function check(entry, made, sha256) {
    const turn = ++entry.turn
    const isRight = await isAsNamed(made, sha256)
    // A version that came later may have been checked sooner, or the whole value may have come.
    if (turn < entry.shownTurn) return
    if (!isRight) return doubt(entry)
    entry.shownTurn = turn
    entry.shown = made
    entry.publish()
  }

  return {
    failAsRoom,
    isSubscribed: subscriber.isSubscribed,

    /** @param {string} key */
    value(key) {
      const entry = entries.get(key) ?? new Entry(key, date)
      // A key that nobody wanted for a moment may have missed a delta meanwhile.
      const isInDoubt = !subscriber.isSubscribed(key) || (entry.handles === 0 && (entry.held || !entry.latest))
      retake(key)
      entry.handles += 1
      entries.set(key, entry)
      const refused = closed ?? badKey(key)
      if (refused || entry.ended) entry.error = refused
      if (!refused) {
        if (isInDoubt) subscriber.want(key)
        else subscriber.keep(key)
      }
      entry.publish()
      return createHandle(entry, () => {
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
          held = entries.get(key)?.shown
          return { type: 'get', key, version: held?.version }
        },
        (message, bytes) => (bytes ? createContent({ ...message, bytes }) : held)?.read(),
        signal,
      )
    },

    /** @param {Limits} limits */
    opened(limits) {
      subscriber.opened(
        limits,
        [...entries.values()].filter(({ ended, handles }) => handles && !ended),
      )
    },

    lost: subscriber.lost,

    /** @param {any} message @param {Uint8Array} [bytes] @returns {boolean} whether it was about a value */
    receive(message, bytes) {
      const { type, key, version, keys = [] } = message
      for (const begun of keys) {
        // Only messages about a room have an epoch. A client with rooms has handled them already.
        if (begun.epoch && failAsRoom(begun.key)) send({ type: 'unsubscribe', id: nextId(), keys: [begun.key] })
      }
      if (subscriber.answered(message)) return true
      const entry = entries.get(key)
      if (!entry || !subscriber.isSubscribed(key)) return false
      // A kept value has missed changes: it is in doubt until it is asked for again.
      if (entry.handles) entry.held = false
      if (type === 'error') fail(key, message)
      else if (type === 'stale') entry.stale = { code: message.code, askedAt: date() - message.sinceMs }
      else {
        if (type === 'value' && bytes) entry.begin(createContent({ ...message, bytes }))
        else if (type === 'delta' && bytes) change(entry, message, bytes)
        else if (type !== 'current') return false
        else if (entry.latest?.version !== version) doubt(entry)
        entry.stale = false
        entry.error = undefined
      }
      entry.publish()
      return true
    },

    /** Nothing more is asked of the gateway. @param {KeycastError} error @param {boolean} byApplication */
    end(error, byApplication) {
      closed = error
      // The next user must not see it, and its timers would keep a program from ending.
      for (const key of kept.keys()) letGo(key)
      for (const entry of entries.values()) {
        entry.error = error
        entry.wasClosed = byApplication
        entry.publish()
      }
    },

    /** Resumes everything that the end of the connection ended, on `reconnect()`. */
    revive() {
      closed = undefined
      for (const entry of entries.values()) {
        // A listener may close the client, which ends all of them again.
        if (!closed) entry.error = undefined
        entry.publish()
      }
    },
  }
}
