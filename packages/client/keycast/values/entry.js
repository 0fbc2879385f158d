// One key as this client holds it, shared by all handles of the key.
import { createListeners } from '../listeners.js'

/**
 * @typedef {import('../errors.js').KeycastError} KeycastError
 * @typedef {import('./content.js').Content} Content
 *
 * A value is stale while the backend cannot be asked. `askedAt` is when it was last asked with success, in milliseconds
 * since 1970.
 * @typedef {{ code: import('../connection/codes.js').ErrorCode, askedAt: number }} Stale
 */

/**
 * How a key stands. The object stays the same until something of it changes.
 *
 * @template [T=any]
 * @typedef {object} ValueState
 * @property {T | undefined} value JSON parsed, text as a string, anything else as a Uint8Array; undefined before the first
 *   and after `not_found`
 * @property {string | undefined} version of the value
 * @property {string | undefined} contentType of the value
 * @property {number | undefined} sizeBytes of the value as the backend gave it
 * @property {Stale | false} stale
 * @property {KeycastError | undefined} error where `subscribed` it heals by itself; else the subscription has ended
 * @property {number | undefined} changedAt when `version` became what it is, in milliseconds since 1970
 */

/** A key of which nothing is known. @type {ValueState} */
export const nothing = Object.freeze({
  value: undefined,
  version: undefined,
  contentType: undefined,
  sizeBytes: undefined,
  stale: /** @type {const} */ (false),
  error: undefined,
  changedAt: undefined,
})

export class Entry {
  /** @type {ValueState} */
  #state = nothing
  #date

  /** @param {string} key @param {() => number} date */
  constructor(key, date) {
    this.key = key
    this.#date = date
    this.listeners = createListeners(() => (this.#state === nothing ? undefined : this.#state))
    /** How many handles share it. */
    this.handles = 0
    /** Whether an error has ended the subscription. */
    this.ended = false
    /** Whether the application ended it itself, by closing the client. */
    this.wasClosed = false
    /** The latest version whose bytes are here. The next delta is applied to it. @type {Content | undefined} */
    this.held = undefined
    /** The version to show. It lags behind `held` while the hash of a delta's result is computed. @type {Content | undefined} */
    this.shown = undefined
    /** Counts up where `held` does not follow from what it was: a hash begun before tells nothing about it. */
    this.lineage = 0
    /** Counts the versions that deltas made, and the newest of them that was shown. */
    this.turn = 0
    this.shownTurn = 0
    /** Whether the whole value was asked for anew: deltas are of no use until it comes. */
    this.awaitsWhole = false
    /** @type {Stale | false} */
    this.stale = false
    /** @type {KeycastError | undefined} */
    this.error = undefined
  }

  get state() {
    return this.#state
  }

  /** @param {Content | undefined} content the whole of a version, or nothing where there is none any more */
  begin(content) {
    this.held = content
    this.shown = content
    this.awaitsWhole = false
    this.lineage += 1
  }

  /** Makes a new state where anything differs, and tells it to everybody. */
  publish() {
    const { shown, stale, error } = this
    const state = this.#state
    const isNew = shown?.version !== state.version
    if (!isNew && stale === state.stale && error === state.error) return
    this.#state = {
      // Read when somebody looks: a value that nobody shows is never parsed.
      get value() {
        return shown?.read()
      },
      version: shown?.version,
      contentType: shown?.contentType,
      sizeBytes: shown?.bytes.length,
      stale,
      error,
      changedAt: isNew ? this.#date() : state.changedAt,
    }
    this.listeners.tell(this.#state)
  }
}
