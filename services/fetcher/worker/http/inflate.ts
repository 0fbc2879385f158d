// A body that was compressed, as it was before.
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { ExchangeError, type Response } from './exchange.ts'

type Options = { maxOutputLength: number }
type Inflater = (bytes: Buffer, options: Options) => Promise<Buffer> | Buffer

/** A way through another thread costs 40 µs, more than such a body does here. */
const HERE_BYTES_MAX = 4_096

/** So much is inflated here at most: a bomb takes a thousand times its size, and the others' time with it. */
const HERE_INFLATED_BYTES_MAX = 65_536

/** By the name that a backend gives. Not a plain object, in which any backend would also find `constructor`. */
const inflaters = new Map<string, Inflater>([
  ['gzip', hereOrElsewhere(zlib.gunzipSync, promisify(zlib.gunzip))],
  ['x-gzip', hereOrElsewhere(zlib.gunzipSync, promisify(zlib.gunzip))],
  ['br', hereOrElsewhere(zlib.brotliDecompressSync, promisify(zlib.brotliDecompress))],
  ['deflate', inflateDeflate],
])

function hereOrElsewhere(here: (bytes: Buffer, options: Options) => Buffer, elsewhere: Inflater): Inflater {
  return (bytes, { maxOutputLength }) => {
    if (bytes.length > HERE_BYTES_MAX) return elsewhere(bytes, { maxOutputLength })
    try {
      return here(bytes, { maxOutputLength: Math.min(maxOutputLength, HERE_INFLATED_BYTES_MAX) })
    } catch {
      return elsewhere(bytes, { maxOutputLength })
    }
  }
}

/** Many servers leave out zlib's header (RFC 9110 section 8.4.1.2). */
function inflateDeflate(bytes: Parameters<Inflater>[0], options: Parameters<Inflater>[1]): ReturnType<Inflater> {
  const hasHeader = (bytes[0] & 0x0f) === 8
  return hasHeader ? promisify(zlib.inflate)(bytes, options) : promisify(zlib.inflateRaw)(bytes, options)
}

/**
 * @param bytesMax of the body, inflated
 * @returns the same, where it is in no encoding that is known here. Rejects with an {@link ExchangeError}
 */
export async function inflate(response: Response, bytesMax: number): Promise<Response> {
  const { status, headers, body } = response
  const inflater = inflaters.get((headers['content-encoding'] ?? '').toLowerCase())
  if (!inflater) return response
  const head = { status, headers: { ...headers, 'content-encoding': undefined } }
  if (body.length === 0) return { ...head, body }
  try {
    return { ...head, body: await inflater(body, { maxOutputLength: bytesMax }) }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ExchangeError(code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'encoding', { head })
  }
}
