// A version names content: the same bytes of the same type have the same version on every node and across restarts.
import { createHash, hash } from 'node:crypto'

/** Its name goes into no version. */
const CONTENT_TYPE_DEFAULT = 'application/json'

/**
 * The version of some content: 128 bits of its SHA-256 in base64url (RFC 4648 section 5), 22 characters. The hash is of the
 * content; and, for any type but `application/json`, of a zero byte and the type after it, or viewers who hold the bytes
 * would never hear that their type changed.
 * With 128 bits two contents of one key have no realistic chance of the same version.
 *
 * @param {Uint8Array} content
 * @param {string} [contentType]
 */
export function versionOf(content, contentType = CONTENT_TYPE_DEFAULT) {
  return digestOf(content, contentType).toString('base64url', 0, 16)
}

/** @param {Uint8Array} content @param {string} contentType */
function digestOf(content, contentType) {
  // At once, which takes half the time.
  if (contentType === CONTENT_TYPE_DEFAULT) return hash('sha256', content, 'buffer')
  return createHash('sha256').update(content).update(`\0${contentType}`).digest()
}

/** Longest version a client may send. Ours have 22 characters; without a bound clients could fill memory with longer ones. */
export const VERSION_CHARACTERS_MAX = 64
