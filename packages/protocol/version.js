// A version names content: the same bytes have the same version on every node and across restarts.
import { createHash } from 'node:crypto'

/**
 * The version of some content: 128 bits of its SHA-256 in base64url (RFC 4648 section 5), 22 characters.
 * With 128 bits two contents of one key have no realistic chance of the same version.
 *
 * @param {Uint8Array} content
 */
export function versionOf(content) {
  return createHash('sha256').update(content).digest().toString('base64url', 0, 16)
}

/** Longest version a client may send. Ours have 22 characters; without a bound clients could fill memory with longer ones. */
export const VERSION_CHARACTERS_MAX = 64
