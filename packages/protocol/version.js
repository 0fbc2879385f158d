// A version names content: the same bytes have the same version on every node and across restarts.
import { createHash } from 'node:crypto'

/**
 * The version of some content: 128 bits of its SHA-256 in base64url (RFC 4648 section 5), 22 characters.
 * 128 bits leave no realistic chance of two contents of one key sharing a version.
 *
 * @param {Uint8Array} content
 */
export function versionOf(content) {
  return createHash('sha256').update(content).digest().toString('base64url', 0, 16)
}

/** Longest version a client may send: ours have 22 characters, a stranger's guess need not be stored at length. */
export const VERSION_CHARACTERS_MAX = 64
