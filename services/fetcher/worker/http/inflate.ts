// A body that was compressed, as it was before.
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { ExchangeError, type Response } from './exchange.ts'

type Options = { maxOutputLength: number }

interface Inflater {
  here?: (bytes: Buffer, options: Options) => Buffer
  /** In another thread. */
  elsewhere: (bytes: Buffer, options: Options) => Promise<Buffer>
}

/** A way through another thread costs 40 µs, more than such a body does here. */
const HERE_BYTES_MAX = 4_096

/** So much is inflated here at most: a bomb takes a thousand times its size, and the others' time with it. */
const HERE_INFLATED_BYTES_MAX = 65_536

const gzip: Inflater = { here: zlib.gunzipSync, elsewhere: promisify(zlib.gunzip) }

/** By the name that a backend gives. Not a plain object, in which any backend would also find `constructor`. */
const inflaters = new Map<string, Inflater>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['br', { here: zlib.brotliDecompressSync, elsewhere: promisify(zlib.brotliDecompress) }],
  ['deflate', { elsewhere: inflateDeflate }],
])

/** Many servers leave out zlib's header (RFC 9110 section 8.4.1.2). */
function inflateDeflate(bytes: Buffer, options: Options): Promise<Buffer> {
  const hasHeader = (bytes[0] & 0x0f) === 8
  return hasHeader ? promisify(zlib.inflate)(bytes, options) : promisify(zlib.inflateRaw)(bytes, options)
}

const inflaterOf = ({ headers }: Response) => inflaters.get((headers['content-encoding'] ?? '').toLowerCase())

const inflated = ({ status, headers }: Response, body: Buffer): Response => ({
  status,
  headers: { ...headers, 'content-encoding': undefined },
  body,
})

/**
 * @param bytesMax of the body, inflated
 * @returns the same, where it is in no encoding that is known here; `undefined` where that is more than a moment's work
 */
export function inflateHere(response: Response, bytesMax: number): Response | undefined {
  const { body } = response
  const inflater = inflaterOf(response)
  if (!inflater) return response
  if (body.length === 0) return inflated(response, body)
  if (body.length > HERE_BYTES_MAX || !inflater.here) return undefined
  try {
    return inflated(response, inflater.here(body, { maxOutputLength: Math.min(bytesMax, HERE_INFLATED_BYTES_MAX) }))
  } catch {
    return undefined
  }
}

/** Where {@link inflateHere} did not. Rejects with an {@link ExchangeError}. */
export async function inflate(response: Response, bytesMax: number): Promise<Response> {
  const { elsewhere } = inflaterOf(response) as Inflater
  try {
    return inflated(response, await elsewhere(response.body, { maxOutputLength: bytesMax }))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'encoding'
    throw new ExchangeError(why, { head: inflated(response, response.body) })
  }
}
