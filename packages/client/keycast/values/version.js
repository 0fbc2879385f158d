// A version is made of the content's SHA-256: a client can check whether a delta made the right bytes.

/** The first bytes of the hash that a version is made of. */
const VERSION_BYTES = 16

/** The type that goes into no version. Of any other a zero byte and its name are hashed after the bytes. */
const CONTENT_TYPE_DEFAULT = 'application/json'

/**
 * @param {{ bytes: Uint8Array, contentType: string }} content
 * @param {(bytes: Uint8Array) => Promise<ArrayBuffer>} sha256
 * @returns {Promise<string>} the first 16 bytes of the SHA-256 in base64url
 */
export async function versionOf({ bytes, contentType }, sha256) {
  const type = contentType === CONTENT_TYPE_DEFAULT ? '' : `\0${contentType}`
  const name = new TextEncoder().encode(type)
  const hashed = new Uint8Array(bytes.length + name.length)
  hashed.set(bytes)
  hashed.set(name, bytes.length)
  const hash = new Uint8Array(await sha256(hashed), 0, VERSION_BYTES)
  return btoa(String.fromCharCode(...hash))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}

/**
 * @param {import('./content.js').Content} content
 * @param {(bytes: Uint8Array) => Promise<ArrayBuffer>} sha256
 * @returns {Promise<boolean>} whether the bytes match their version; false if nothing can be hashed
 */
export const isAsNamed = (content, sha256) =>
  versionOf(content, sha256).then(
    version => version === content.version,
    () => false,
  )
