// The versions of one key, which come whole or as a delta. A version is made of the content's SHA-256: a client can check
// whether a delta made the right bytes.
import { changed, DELTA_BYTES_MAX } from './delta.js'

/**
 * @typedef {import('./content.js').Content} Content
 * @typedef {{ digest: (name: 'SHA-256', bytes: Uint8Array<ArrayBuffer>) => Promise<ArrayBuffer> }} Subtle
 */

/** The first bytes of the hash that a version is made of. */
const VERSION_BYTES = 16

/** The type that goes into no version. Of any other a zero byte and its name are hashed after the bytes. */
const CONTENT_TYPE_DEFAULT = 'application/json'

export class Versions {
  /** The latest version whose bytes are here. The next delta is applied to it. @type {Content | undefined} */
  latest
  /** The version to show. It lags behind `latest` while the hash of a delta's result is computed. @type {Content | undefined} */
  shown
  /** Counts the versions, and notes which one is shown: a hash begun before that one no longer matters. */
  #turn = 0
  #shownTurn = 0
  /** Whether the whole value was asked for anew: deltas are of no use until it comes. */
  #awaitsWhole = false
  /** Bytes whose hash is being computed. Small deltas that come at once could make gigabytes before the first is known. */
  #uncheckedBytes = 0
  #subtle
  #publish
  #askWhole

  /**
   * @param {Subtle | undefined} subtle
   * @param {() => void} publish `shown` is another
   * @param {() => boolean} askWhole asks for the whole value; false if nobody wants it
   */
  constructor(subtle, publish, askWhole) {
    this.#subtle = subtle
    this.#publish = publish
    this.#askWhole = askWhole
  }

  /** @param {Content | undefined} content the whole of a version; undefined if the key has no value any more */
  begin(content) {
    this.latest = content
    this.shown = content
    this.#awaitsWhole = false
    this.#shownTurn = ++this.#turn
  }

  /** The gateway is wrong about this client's version. */
  doubt() {
    if (this.#awaitsWhole) return
    this.latest = undefined
    this.#shownTurn = ++this.#turn
    // It may have been dropped while its hash was computed.
    this.#awaitsWhole = this.#askWhole()
  }

  /** Shows the result of a delta once its hash is known to be right. @param {any} message @param {Uint8Array} delta */
  async change(message, delta) {
    const { latest } = this
    if (this.#awaitsWhole || latest?.version === message.version) return
    const made = this.#uncheckedBytes < DELTA_BYTES_MAX && changed(latest, message, delta)
    if (!made) return this.doubt()
    this.latest = made
    if (this.#subtle) {
      const turn = ++this.#turn
      this.#uncheckedBytes += made.bytes.length
      const isRight = await isAsNamed(made, this.#subtle)
      this.#uncheckedBytes -= made.bytes.length
      // A version that came later may have been checked sooner, or the whole value may have come.
      if (turn < this.#shownTurn) return
      if (!isRight) return this.doubt()
      this.#shownTurn = turn
    }
    this.shown = made
    this.#publish()
  }
}

/**
 * @param {{ bytes: Uint8Array, contentType: string }} content
 * @param {Subtle} subtle
 * @returns {Promise<string>} the first 16 bytes of the SHA-256 in base64url
 */
export async function versionOf({ bytes, contentType }, subtle) {
  const type = contentType === CONTENT_TYPE_DEFAULT ? '' : `\0${contentType}`
  const name = new TextEncoder().encode(type)
  const hashed = new Uint8Array(bytes.length + name.length)
  hashed.set(bytes)
  hashed.set(name, bytes.length)
  const hash = new Uint8Array(await subtle.digest('SHA-256', hashed), 0, VERSION_BYTES)
  return btoa(String.fromCharCode(...hash))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}

/**
 * @param {Content} content
 * @param {Subtle} subtle
 * @returns {Promise<boolean>} whether the bytes match their version; false if nothing can be hashed
 */
const isAsNamed = (content, subtle) =>
  versionOf(content, subtle).then(
    version => version === content.version,
    () => false,
  )
