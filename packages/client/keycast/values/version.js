// The version of some content is made of its SHA-256: whether a delta made the right bytes can be checked.

/** The first bytes of the hash that a version is made of. */
const VERSION_BYTES = 16

/**
 * @param {Uint8Array} bytes
 * @param {(bytes: Uint8Array) => Promise<ArrayBuffer>} sha256
 * @returns {Promise<string>} the first 16 bytes of the SHA-256 in base64url
 */
export async function versionOf(bytes, sha256) {
  const hash = new Uint8Array(await sha256(bytes), 0, VERSION_BYTES)
  return btoa(String.fromCharCode(...hash))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}
