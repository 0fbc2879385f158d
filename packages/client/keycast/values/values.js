// The keys that somebody watches: takes what the gateway says of them, applies deltas, and doubts what does not fit.
import { KeycastError } from '../errors.js'
import { badKey, keyGrammar } from '../requests.js'
import { createContent } from './content.js'
import { applyDelta } from './delta.js'
import { Entry, nothing } from './entry.js'
import { createHandle } from './handle.js'
import { createSubscriber } from './subscriber.js'
import { versionOf } from './version.js'

/**
 * @typedef {import('../connection/connection.js').Limits} Limits
 * @typedef {import('./content.js').Content} Content
 */

/**
 * @param {object} deps
 * @param {import('../environment.js').Environment} deps.environment
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {() => import('../timers.js').Alarm} deps.createAlarm
 * @param {import('../calls.js').Calls} deps.calls
 */
export function createValues({ environment: { date, sha256 }, send, nextId, createAlarm, calls }) {
  /** @type {Map<string, Entry>} */
  const entries = new Map()
  const subscriber = createSubscriber({
    send,
    nextId,
    alarm: createAlarm(),
    entryOf(key) {
      const version = entries.get(key)?.held?.version
      return version === undefined ? key : { key, version }
    },
    onRefused: (key, error) => fail(key, error),
    onForgotten(key) {
      if (entries.get(key)?.handles === 0) entries.delete(key)
    },
  })
  /** Once nothing is asked of the gateway any more. @type {KeycastError | undefined} */
  let closed

  /** @param {string} key @param {{ code: any, message: string, retryAfterMs?: number, subscribed?: boolean }} error */
  function fail(key, { code, message, retryAfterMs, subscribed = retryAfterMs !== undefined }) {
    const entry = entries.get(key)
    if (!entry) return
    entry.error = new KeycastError({ code, message, key, retryAfterMs, subscribed })
    entry.ended = !subscribed
    // There is no value any more. After any other error what is held is the latest there is.
    if (code === 'not_found') {
      entry.begin(undefined)
      entry.stale = false
    }
    if (entry.ended) subscriber.ended(key)
    entry.publish()
  }

  /** Asks for the whole value: the gateway thinks this client holds something else than it does. @param {Entry} entry */
  function doubt(entry) {
    if (entry.awaitsWhole) return
    entry.held = undefined
    entry.lineage += 1
    // It may have been let go of while its hash was made.
    if (entry.handles === 0) return
    entry.awaitsWhole = true
    subscriber.want(entry.key)
  }

  /** @param {Entry} entry @param {any} message @param {Uint8Array} bytes of the delta */
  function change(entry, { from, version, contentType }, bytes) {
    const { held } = entry
    if (entry.awaitsWhole || held?.version === version) return
    if (!held || held.version !== from) return doubt(entry)
    let made
    try {
      made = createContent({ version, contentType, bytes: applyDelta(held.bytes, bytes) })
    } catch {
      return doubt(entry)
    }
    entry.held = made
    if (sha256) check(entry, made, sha256)
    else entry.shown = made
  }

  /**
   * Shows what a delta made once its hash is known to be right.
   *
   * @param {Entry} entry
   * @param {Content} made
   * @param {NonNullable<import('../environment.js').Environment['sha256']>} sha256
   */
  async function check(entry, made, sha256) {
    const { lineage } = entry
    const turn = ++entry.turn
    const isRight = await versionOf(made, sha256).then(
      version => version === made.version,
      () => false,
    )
    if (entry.lineage !== lineage) return
    if (!isRight) return doubt(entry)
    // A version that came later may have been checked sooner.
    if (turn < entry.shownTurn) return
    entry.shownTurn = turn
    entry.shown = made
    entry.publish()
  }

  return {
    /** @param {string} key */
    value(key) {
      const known = entries.get(key)
      const entry = known ?? new Entry(key, date)
      // A key that nobody wanted for a moment may have missed a delta meanwhile.
      const isInDoubt = entry.handles === 0 && !entry.held
      entry.handles += 1
      if (!known) entries.set(key, entry)
      if (closed) {
        entry.error = closed
        entry.ended = true
        entry.publish()
      } else if (!keyGrammar.test(key)) fail(key, badKey(key))
      else if (entry.ended) {
        entry.ended = false
        entry.error = undefined
        entry.publish()
        subscriber.want(key)
      } else if (isInDoubt) subscriber.want(key)
      else subscriber.keep(key)
      return createHandle(entry, () => {
        entry.handles -= 1
        if (entry.handles === 0) subscriber.drop(key)
      })
    },

    /** @param {string} key */
    peek: key => entries.get(key)?.state ?? nothing,

    /** @param {string} key @param {AbortSignal} [signal] */
    async get(key, signal) {
      if (closed) throw closed
      if (!keyGrammar.test(key)) throw new KeycastError(badKey(key))
      /** What the gateway need not send. @type {Content | undefined} */
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
      const wanted = [...entries.values()].filter(({ ended }) => !ended)
      subscriber.opened(
        limits,
        wanted.map(({ key }) => key),
      )
    },

    lost() {
      for (const entry of entries.values()) entry.awaitsWhole = false
      subscriber.lost()
    },

    /** @param {any} message @param {Uint8Array} [bytes] @returns {boolean} whether it was about a value */
    receive(message, bytes) {
      if (subscriber.answered(message)) return true
      const { type, key, version } = message
      const entry = entries.get(key)
      if (!entry || !subscriber.isSubscribed(key)) return false
      if (type === 'error') fail(key, message)
      else if (type === 'stale') entry.stale = { code: message.code, askedAt: date() - message.sinceMs }
      else {
        entry.stale = false
        entry.error = undefined
        if (type === 'value' && bytes) entry.begin(createContent({ ...message, bytes }))
        else if (type === 'delta' && bytes) change(entry, message, bytes)
        else if (type === 'current' && entry.held?.version !== version) doubt(entry)
      }
      entry.publish()
      return true
    },

    /** Nothing is asked of the gateway any more. @param {KeycastError} error @param {boolean} byApplication */
    end(error, byApplication) {
      closed = error
      for (const entry of entries.values()) {
        entry.error = error
        entry.ended = true
        entry.wasClosed = byApplication
        entry.publish()
      }
    },

    /** A person insists: what the end of the connection ended goes on. */
    revive() {
      for (const entry of entries.values()) {
        if (entry.error !== closed) continue
        entry.error = undefined
        entry.ended = false
        entry.publish()
      }
      closed = undefined
    },
  }
}
