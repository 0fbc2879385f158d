// One version of a key's value: its bytes as they came, and their meaning, parsed once on first access.
import { utf8 } from '../connection/frames.js'

/**
 * @typedef {object} Content
 * @property {string} version
 * @property {string} contentType
 * @property {Uint8Array} bytes must not be changed: the next delta is applied to them
 * @property {() => unknown} read JSON parsed, text as a string, anything else as bytes
 */

/**
 * @param {{ version: string, contentType: string, bytes: Uint8Array }} received
 * @returns {Content}
 */
export function createContent(received) {
  /** @type {[unknown] | undefined} */
  let read
  return {
    ...received,
    read() {
      read ??= [readAs(received)]
      return read[0]
    },
  }
}

const json = /^[^;]*[/+]json(;|$)/i
// Gateways send text on in UTF-8 and say so. Text in a character set that they cannot read has another one here.
const text = /charset=utf-8/i

/** @param {{ contentType: string, bytes: Uint8Array }} received */
function readAs({ contentType, bytes }) {
  if (json.test(contentType)) return JSON.parse(utf8.decode(bytes))
  if (text.test(contentType)) {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    } catch {
      // It is no UTF-8 after all: the bytes are all that can be given.
    }
  }
  // A copy: the receiver may write to it, and the next delta needs the bytes as they came.
  return new Uint8Array(bytes)
}
