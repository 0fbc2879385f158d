// Lists the encodings, and chooses a session's. A new one is a file of its own and a line in `makers`.
import { createBytes } from './bytes.ts'
import { createCompressed } from './compressed-encoding.ts'
import { createCompression } from './compression-queue.ts'
import { createJson } from './json.ts'

/**
 * @typedef {import('./encoding.ts').Encoding} Encoding
 * @typedef {import('../keys/value.ts').Value} Value
 * @typedef {ReturnType<typeof createEncodings>} Encodings
 */

/** The first is spoken with clients that offer no subprotocol. */
const makers = [createJson, createBytes]

export const plainEncodings = makers.map((make, slot) => make(slot))

/** The subprotocols that a client may offer. @type {readonly string[]} */
export const subprotocols = plainEncodings.map(({ subprotocol }) => subprotocol)

/**
 * The subprotocol spoken with a client: the first it offers of those known, for it names the one it prefers first
 * (RFC 6455 section 4.1).
 *
 * @param {Iterable<string>} offered
 */
export function chooseSubprotocol(offered) {
  for (const name of offered) if (subprotocols.includes(name)) return name
  return undefined
}

/** @param {Omit<Parameters<typeof createCompression>[0], 'counts'> & { counts: import('../counts.ts').Counts }} deps */
export function createEncodings(deps) {
  const compression = createCompression(deps)
  const { counts } = deps
  const compressedEncodings = plainEncodings.map((plain, index) =>
    createCompressed(plain, plainEncodings.length + index, { compression, counts }),
  )

  /**
   * The encoding for a connection.
   *
   * @param {Pick<import('../transport/transport.ts').Transport, 'subprotocol' | 'isCompressed'>} transport
   * @returns {Encoding}
   */
  function forTransport({ subprotocol, isCompressed }) {
    /** @type {Encoding[]} */
    const candidates = isCompressed ? compressedEncodings : plainEncodings
    return candidates.find(each => each.subprotocol === subprotocol) ?? candidates[0]
  }

  return { forTransport }
}

/**
 * The bytes that a value counts as in the cache: its body, its form in each plain encoding, whether made yet or not,
 * and the compressed forms there are.
 *
 * @param {Value} value
 */
export function valueBytes(value) {
  let bytes = value.body.length + value.compressedBytes
  for (const { bytesOf } of plainEncodings) bytes += bytesOf(value)
  return bytes
}
