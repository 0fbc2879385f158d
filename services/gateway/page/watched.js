// What the page knows of one key, and how each message of the gateway changes that. Nothing here draws.
import { errorCodes } from './protocol-codes.js'

/**
 * @typedef {{ format: 'json', data: unknown }
 *   | { format: 'text', contentType: string, text: string }
 *   | { format: 'base64', contentType: string, base64: string }} Content
 *
 * @typedef {object} Watched times are local and in milliseconds
 * @property {string} key
 * @property {Content | undefined} content
 * @property {string | undefined} version
 * @property {number} bytes of the content as it crossed the wire
 * @property {number} changes versions seen after the first
 * @property {number | undefined} changedAtMs when the page first saw this version
 * @property {number[]} activity the newest changes' times, for the chart
 * @property {{ sinceMs: number, code: string, text: string } | undefined} stale
 * @property {{ code: string, text: string, subscribed: boolean, retryAtMs: number | undefined } | undefined} error
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
 * Takes in one message about the key.
 *
 * @param {Watched} watched changed in place
 * @param {any} message
 * @param {{ text: string, nowMs: number }} received the message as it came, and when
 */
export function take(watched, message, { text, nowMs }) {
  switch (message.type) {
    case 'value':
      watched.error = undefined
      watched.stale = undefined
      if (message.version === watched.version) return
      if (watched.version !== undefined) {
        watched.changes += 1
        watched.activity.push(nowMs)
      }
      watched.content = contentOf(message)
      watched.bytes = bodyBytesOf(watched.content, text)
      watched.version = message.version
      watched.changedAtMs = nowMs
      return
    case 'current':
      watched.error = undefined
      watched.stale = undefined
      return
    case 'stale':
      watched.stale = { sinceMs: nowMs - message.sinceMs, code: message.code, text: adviceOf(message.code) }
      return
    case 'error':
      if (message.code === 'not_found') forget(watched)
      watched.error = {
        code: message.code,
        text: message.message || adviceOf(message.code),
        subscribed: message.subscribed,
        retryAtMs: message.retryAfterMs === undefined ? undefined : nowMs + message.retryAfterMs,
      }
  }
}

/** The backend has nothing under the key any more. @param {Watched} watched */
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

/** @param {any} message @returns {Content} */
function contentOf({ data, contentType, text, base64 }) {
  if (text !== undefined) return { format: 'text', contentType, text }
  if (base64 !== undefined) return { format: 'base64', contentType, base64 }
  return { format: 'json', data }
}

/** @param {Content} content @param {string} message the whole message */
function bodyBytesOf(content, message) {
  if (content.format === 'base64') {
    const padding = content.base64.endsWith('==') ? 2 : content.base64.endsWith('=') ? 1 : 0
    return (content.base64.length / 4) * 3 - padding
  }
  // A JSON body stands in the message as the backend wrote it, between `"data":` and the closing brace.
  const body = content.format === 'text' ? content.text : message.slice(message.indexOf('"data":') + 7, -1)
  return new TextEncoder().encode(body).length
}

/** @param {string} code */
function adviceOf(code) {
  return /** @type {Record<string, string>} */ (errorCodes)[code] ?? code
}
