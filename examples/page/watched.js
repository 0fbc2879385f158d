// The page's record of one key, and how each state from the client library changes it. Nothing here draws.
import { errorCodes } from './protocol-codes.js'

/**
 * @typedef {{ format: 'json', data: unknown }
 *   | { format: 'text', contentType: string, text: string }
 *   | { format: 'bytes', contentType: string, bytes: Uint8Array<ArrayBuffer> }} Content
 *
 * @typedef {object} Watched times are in milliseconds since 1970
 * @property {string} key
 * @property {Content | undefined} content
 * @property {string | undefined} version
 * @property {number} bytes of the content as the backend gave it
 * @property {number} changes versions seen after the first
 * @property {number | undefined} changedAtMs when the page first saw this version
 * @property {number[]} activity the newest changes' times, for the chart
 * @property {{ sinceMs: number, code: string, text: string } | undefined} stale
 * @property {{ cause: unknown, code: string, text: string, subscribed: boolean, retryAtMs: number | undefined } |
 *   undefined} error
 */

/** As long as the chart is wide. */
const ACTIVITY_MS = 60_000

/** @param {string} key @returns {Watched} */
export function createWatched(key) {
  return {
    key,
    content: undefined,
    version: undefined,
    bytes: 0,
    changes: 0,
    changedAtMs: undefined,
    activity: [],
    stale: undefined,
    error: undefined,
  }
}

/**
 * Takes in how the key stands now.
 *
 * @param {Watched} watched changed in place
 * @param {import('/keycast.js').ValueState} state
 * @param {number} nowMs
 */
export function take(watched, { value, version, contentType = '', sizeBytes = 0, stale, error, changedAt }, nowMs) {
  if (version !== undefined && version !== watched.version) {
    if (watched.version !== undefined) {
      watched.changes += 1
      watched.activity.push(nowMs)
    }
    watched.content = contentOf(value, contentType)
    watched.bytes = sizeBytes
    watched.version = version
    watched.changedAtMs = changedAt
  }
  if (version === undefined) forget(watched)
  watched.stale = stale ? { sinceMs: stale.askedAt, code: stale.code, text: adviceOf(stale.code) } : undefined
  // The same error keeps the time it came at: how soon it heals counts from then.
  if (error === watched.error?.cause) return
  watched.error = error && {
    cause: error,
    code: error.code,
    text: error.message || adviceOf(error.code),
    subscribed: error.subscribed === true,
    retryAtMs: error.retryAfterMs === undefined ? undefined : nowMs + error.retryAfterMs,
  }
}

/** There is nothing under the key any more, or the user may not see it. @param {Watched} watched */
function forget(watched) {
  watched.content = undefined
  watched.version = undefined
  watched.bytes = 0
  watched.changedAtMs = undefined
  watched.stale = undefined
}

/**
 * The changes of the last minute in equal parts, the newest last; older ones are forgotten.
 *
 * @param {Watched} watched
 * @param {number} nowMs
 * @param {number} parts
 */
export function activityOf(watched, nowMs, parts) {
  const kept = watched.activity.findIndex(atMs => nowMs - atMs < ACTIVITY_MS)
  watched.activity.splice(0, kept === -1 ? watched.activity.length : kept)
  const counts = new Array(parts).fill(0)
  for (const atMs of watched.activity) {
    const age = Math.min(parts - 1, Math.floor(((nowMs - atMs) / ACTIVITY_MS) * parts))
    counts[parts - 1 - Math.max(0, age)] += 1
  }
  return counts
}

const json = /^((application|text)\/|[^;]*\+)json(;|$)/i

/** @param {unknown} value @param {string} contentType @returns {Content} */
function contentOf(value, contentType) {
  if (value instanceof Uint8Array) return { format: 'bytes', contentType, bytes: new Uint8Array(value) }
  if (typeof value === 'string' && !json.test(contentType)) return { format: 'text', contentType, text: value }
  return { format: 'json', data: value }
}

/** @param {string} code */
function adviceOf(code) {
  return /** @type {Record<string, string>} */ (errorCodes)[code] ?? code
}
