// Lists the encodings, and chooses a session's. A new one is a file of its own and a line in `makers`.
import type { Counts } from '../counts.ts'
import type { Transport } from '../transport/transport.ts'
import { createBytes } from './bytes.ts'
import { createCodings } from './codings.ts'
import { createCompressed } from './compressed-encoding.ts'
import { createCompression } from './compression-queue.ts'
import type { Encoding } from './encoding.ts'
import { createJson } from './json.ts'

export type { Value } from '../topics/values/value.ts'
export type { Encoding } from './encoding.ts'
export type Encodings = ReturnType<typeof createEncodings>

/** The first is spoken with clients that offer no subprotocol. */
const makers = [createJson, createBytes]

export const plainEncodings = makers.map((make, slot) => make(slot))

/** The subprotocols that a client may offer. */
export const subprotocols: readonly string[] = plainEncodings.map(({ subprotocol }) => subprotocol)

/**
 * The subprotocol spoken with a client: the first it offers of those known, for it names the one it prefers first
 * (RFC 6455 section 4.1).
 */
export function chooseSubprotocol(offered: Iterable<string>) {
  for (const name of offered) if (subprotocols.includes(name)) return name
  return undefined
}

export function createEncodings(deps: Omit<Parameters<typeof createCompression>[0], 'counts'> & { counts: Counts }) {
  const compression = createCompression(deps)
  const { counts } = deps
  const compressedEncodings = plainEncodings.map((plain, index) =>
    createCompressed(plain, plainEncodings.length + index, { compression, counts }),
  )

  /** The encoding for a connection. */
  function forTransport({ subprotocol, isCompressed }: Pick<Transport, 'subprotocol' | 'isCompressed'>): Encoding {
    const candidates: Encoding[] = isCompressed ? compressedEncodings : plainEncodings
    return candidates.find(each => each.subprotocol === subprotocol) ?? candidates[0]
  }

  return { forTransport, coded: createCodings(compression) }
}
