// A body that was compressed, as it was before.
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { ExchangeError, type Response } from './exchange.ts'

type Inflater = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

/** By the name that a backend gives. Not a plain object, in which any backend would also find `constructor`. */
const inflaters = new Map<string, Inflater>([
  ['gzip', promisify(zlib.gunzip)],
  ['x-gzip', promisify(zlib.gunzip)],
  ['br', promisify(zlib.brotliDecompress)],
  ['deflate', inflateDeflate],
])

/** Many servers leave out zlib's header (RFC 9110 section 8.4.1.2). */
function inflateDeflate(bytes: Parameters<Inflater>[0], options: Parameters<Inflater>[1]): ReturnType<Inflater> {
  const hasHeader = (bytes[0] & 0x0f) === 8
  return hasHeader ? promisify(zlib.inflate)(bytes, options) : promisify(zlib.inflateRaw)(bytes, options)
}

/**
 * @param bytesMax of the body, inflated
 * @returns the same, where it is in no encoding that is known here. Rejects with an {@link ExchangeError}
 */
export function inflate(response: Response, bytesMax: number): Response | Promise<Response> {
  const { status, headers, body } = response
  const inflater = inflaters.get((headers['content-encoding'] ?? '').toLowerCase())
  if (!inflater) return response
  const head = { status, headers: { ...headers, 'content-encoding': undefined } }
  if (body.length === 0) return { ...head, body }
  return inflater(body, { maxOutputLength: bytesMax }).then(
    inflated => ({ ...head, body: inflated }),
    ({ code }) => {
      throw new ExchangeError(code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'encoding', { head })
    },
  )
}
