// One key as this client holds it, shared by all handles of the key.
import { createListeners } from '../listeners.js'

/**
 * @typedef {import('../errors.js').KeycastError} KeycastError
 * @typedef {import('./content.js').Content} Content
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
 * @property {boolean} held whether `value` is from before the key was closed: the gateway has not confirmed it since
 * @property {KeycastError | undefined} error if `subscribed`, it heals by itself; else the subscription has ended
 * @property {number | undefined} changedAt when `version` last changed, in milliseconds since 1970
 */

/** A key of which nothing is known: absent fields are undefined. @type {ValueState} */
export const nothing = /** @type {any} */ ({ stale: false, held: false })

export class Entry {
  /** Only `publish` makes another. @type {ValueState} */
  state = nothing
  listeners = createListeners(() => (this.state === nothing ? undefined : this.state))
  /** The number of handles that share it. */
  handles = 0
  /** Whether the application ended it itself, by closing the client. */
  wasClosed = false
  /** The latest version whose bytes are here. The next delta is applied to it. @type {Content | undefined} */
  latest
  /** The version to show. It lags behind `latest` while the hash of a delta's result is computed. @type {Content | undefined} */
  shown
  /** Counts the versions, and notes which one is shown: a hash begun before that one no longer matters. */
  turn = 0
  shownTurn = 0
  /** Whether the whole value was asked for anew: deltas are of no use until it comes. */
  awaitsWhole = false
  /** Whether it was closed, and the gateway has not confirmed it since. */
  held = false
  /** @type {Stale | false} */
  stale = false
  /** @type {KeycastError | undefined} */
  error

  /** @param {string} key @param {() => number} date */
  constructor(key, date) {
    this.key = key
    this.date = date
  }

  /** Whether an error has ended the subscription. */
  get ended() {
    return this.error && !this.error.subscribed
  }

  /** @param {Content | undefined} content the whole of a version; undefined if the key has no value any more */
  begin(content) {
    this.latest = content
    this.shown = content
    this.awaitsWhole = false
    this.shownTurn = ++this.turn
  }

  /** Makes a new state where anything differs, and tells it to everybody. */
  publish() {
    const { shown, stale, held, error, state } = this
    const isNew = shown?.version !== state.version
    if (!isNew && stale === state.stale && held === state.held && error === state.error) return
    this.state = {
      // Parsed on access: a value that nobody shows is never parsed.
      get value() {
        return shown?.read()
      },
      version: shown?.version,
      contentType: shown?.contentType,
      sizeBytes: shown?.bytes.length,
      stale,
      held,
      error,
      changedAt: isNew ? this.date() : state.changedAt,
    }
    this.listeners.tell(this.state)
  }
}
