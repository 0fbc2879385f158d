// One key as this client holds it, shared by all handles of the key.
import { endOf } from '../errors.js'
import { createListeners } from '../listeners.js'
import { Versions } from './version.js'

/**
 * @typedef {import('../errors.js').KeycastError} KeycastError
 */

/**
 * A value is stale while the backend cannot be asked. `askedAt` is when it was last asked with success, in milliseconds
 * since 1970.
 *
 * @typedef {{ code: import('../connection/codes.js').ErrorCode, askedAt: number }} Stale
 */

/**
 * The state of a key. The object stays the same until something of it changes.
 *
 * @template [T=any]
 * @typedef {object} ValueState
 * @property {T | undefined} value JSON parsed, text as a string, anything else as a Uint8Array; undefined before the first
 *   and after `not_found`
 * @property {string | undefined} version of the value
 * @property {string | undefined} contentType of the value
 * @property {number | undefined} sizeBytes of the value as the backend gave it
 * @property {Stale | false} stale
 * @property {import('../errors.js').Health} health how `value` stands; with `loading` one that was kept is not confirmed yet
 * @property {KeycastError | undefined} error if `subscribed`, it heals by itself; else the subscription has ended
 * @property {number | undefined} changedAt when `version` last changed, in milliseconds since 1970
 */

/** A key of which nothing is known: absent fields are undefined. @type {ValueState} */
export const nothing = /** @type {any} */ ({ stale: false, health: 'loading' })

export class Entry {
  /** Only `publish` makes another. @type {ValueState} */
  state = nothing
  /** The latest state that changed more than the health: loops are given it. @type {ValueState | undefined} */
  news
  listeners = createListeners(() => (this.state === nothing ? undefined : this.state))
  /** The number of handles that share it. */
  handles = 0
  /** The session in which the gateway said how the key stands. @type {object | undefined} */
  answered
  /** The number of the value that came last: with it no gateway sends an older one. @type {number | undefined} */
  order
  /** How often the key was refused, one time after the other. */
  tries = 0
  /** @type {Stale | false} */
  stale = false
  /** @type {KeycastError | undefined} */
  error

  /**
   * @param {string} key
   * @param {import('../client.js').PartDeps} deps
   * @param {(key: string) => void} want subscribes, or asks for the state again
   */
  constructor(key, { environment: { date, subtle }, createAlarm, link }, want) {
    this.key = key
    this.date = date
    this.link = link
    /** For the end of its time without a handle, or for the next try. */
    this.alarm = createAlarm()
    this.versions = new Versions(
      subtle,
      () => this.publish(),
      () => {
        if (this.handles) want(key)
        return this.handles > 0
      },
    )
  }

  /** Whether it is not asked for again by itself. */
  get ended() {
    return this.health === 'ended'
  }

  /** @returns {import('../errors.js').Health} */
  get health() {
    const { error, link } = this
    const end = endOf(error)
    if (end) return end
    if (link.isOffline) return 'offline'
    if (this.answered !== link.session) return 'loading'
    // That there is no value is the truth about a key, too.
    if (error?.code === 'not_found') return 'live'
    if (!this.versions.shown) return 'loading'
    return error || this.stale ? 'stale' : 'live'
  }

  /** Makes a new state where anything differs, and tells it to everybody. */
  publish() {
    const {
      versions: { shown },
      stale,
      health,
      error,
      state,
    } = this
    const isNew = shown?.version !== state.version
    const isNews = isNew || stale !== state.stale || error !== state.error
    if (!isNews && health === state.health) return
    this.state = {
      // Parsed on access: a value that nobody shows is never parsed.
      get value() {
        return shown?.read()
      },
      version: shown?.version,
      contentType: shown?.contentType,
      sizeBytes: shown?.bytes.length,
      stale,
      health,
      error,
      changedAt: isNew ? this.date() : state.changedAt,
    }
    if (isNews) this.news = this.state
    this.listeners.tell(this.state)
  }
}
