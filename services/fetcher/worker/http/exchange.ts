// One request and its whole response, within a deadline and a limit of bytes.
import type { Headers } from '@keycast/service'

interface Head {
  status: number
  headers: Headers
}

export type Response = Head & { body: Buffer }

interface Connection {
  destroy: () => void
  release: () => void
  isBroken: boolean
}

/** Of these a response has one, and a second is not believed (as Node's HTTP client has it). Others are lists. */
const singleHeaders = new Set(['age', 'content-type', 'date', 'etag', 'expires', 'last-modified', 'retry-after'])

/**
 * Space at the end is no part of a value (RFC 9112 section 5), but undici leaves it. Not by a pattern: one takes a third of a
 * second for 16 KB of spaces in the middle.
 */
function trimmed(value: string) {
  let end = value.length
  while (value[end - 1] === ' ' || value[end - 1] === '\t') end--
  return value.slice(0, end)
}

/** More than a body has that comes in chunks of a usual size. */
const CHUNKS_MAX = 64

const INVALID_RESPONSE = 'HPE_INVALID_RESPONSE'

/** Node's codes for undici's; any other of those stands for a connection that ended. Messages to clients carry them. */
const codes = {
  ERR_ASSERTION: INVALID_RESPONSE, // such as a status below 100
  UND_ERR_HEADERS_OVERFLOW: 'HPE_HEADER_OVERFLOW',
  UND_ERR_INVALID_ARG: 'ERR_INVALID_CHAR',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: INVALID_RESPONSE,
} as Record<string, string>

/**
 * Why there is no whole response. `head`: of the response, where that much came. It holds nothing of the request, whose
 * headers are secrets.
 */
export class ExchangeError extends Error {
  readonly why: 'deadline' | 'too_large' | 'encoding' | 'connection' | 'unread'
  readonly code: string | undefined
  readonly head: Head | undefined

  /** @param details `code`: Node's */
  constructor(why: ExchangeError['why'], { code, head }: { code?: string; head?: Head } = {}) {
    super(why)
    this.name = 'ExchangeError'
    this.why = why
    this.code = code
    this.head = head
  }
}

interface What {
  /** Absolute. */
  url: string
  method?: 'GET' | 'HEAD' | 'POST'
  body?: Buffer
  headers: Record<string, string>
  /** For the whole exchange. */
  timeoutMs: number
  /** Of the body as it is sent. */
  bytesMax: number
  /** Of a request that the backend answers once there is news: what had come by this time, by the host's clock, was read. */
  readAt?: () => number
}

/**
 * The request, and the handler that undici calls as the response comes: one object, as an exchange is made a thousand
 * times a second. A class also because axios copies plain objects of its configuration property by property.
 */
export class Exchange {
  readonly url: string
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly body: Buffer | undefined
  readonly headers: Record<string, string>
  readonly timeoutMs: number
  readonly bytesMax: number

  /**
   * When the request was sent, by the host's clock; `undefined` before. From a backend that waited: the last time at which
   * the response had not come.
   */
  askedAt: number | undefined
  readonly #readAt: (() => number) | undefined
  /** Until it is over. */
  #connection: Connection | undefined
  #resolve: (response: Response) => void = () => {}
  #reject: (error: ExchangeError) => void = () => {}
  #cancelDeadline = () => {}
  #hostNow: () => number = () => 0
  #head: Head | undefined
  #chunks: Buffer[] = []
  /** Of the chunks, those at the start that are joined ones. */
  #joined = 0
  #bytes = 0

  constructor({ url, method = 'GET', body, headers, timeoutMs, bytesMax, readAt }: What) {
    this.url = url
    this.method = method
    this.body = body
    this.headers = headers
    this.timeoutMs = timeoutMs
    this.bytesMax = bytesMax
    this.#readAt = readAt
  }

  /**
   * @param connection for this exchange alone, until that releases or destroys it
   * @param cancelDeadline keeps it from failing when its time is over
   */
  begin(
    connection: Connection,
    resolve: (response: Response) => void,
    reject: (error: ExchangeError) => void,
    cancelDeadline: () => void,
    hostNow: () => number,
  ) {
    this.#connection = connection
    this.#resolve = resolve
    this.#reject = reject
    this.#cancelDeadline = cancelDeadline
    this.#hostNow = hostNow
  }

  onRequestStart() {
    this.askedAt = this.#hostNow()
  }

  onResponseStart(_: unknown, status: number, headers: Record<string, string | string[] | undefined>) {
    if (status < 200) return // such as 103: the response itself follows
    if (this.#readAt) this.askedAt = Math.max(this.askedAt ?? 0, this.#readAt())
    this.#head = { status, headers: oneValueEach(headers) }
  }

  onResponseData(_: unknown, chunk: Buffer) {
    this.#bytes += chunk.length
    if (this.#bytes > this.bytesMax) return this.fail('too_large')
    this.#chunks.push(chunk)
    if (this.#chunks.length === this.#joined + CHUNKS_MAX) this.#joinChunks()
  }

  /**
   * A chunk takes 150 bytes beside its own, and holds on to all that was read with it. A body in chunks of one byte would
   * take a hundred times `bytesMax`.
   */
  #joinChunks() {
    this.#chunks.push(Buffer.concat(this.#chunks.splice(this.#joined)))
    this.#joined += 1
  }

  onResponseEnd() {
    if (!this.#connection) return
    if (this.#connection.isBroken) return this.fail('connection')
    if (this.#mayBodyFollow()) this.#connection.destroy()
    else this.#connection.release()
    this.#succeed()
  }

  /**
   * The response to a HEAD ends with its head (RFC 9112 section 6.3), but some servers send the body as well. It may come
   * once the connection carries the next question, and would be read as that one's response: another viewer would be
   * admitted by bytes of a document. RFC 9112 section 9.2 has such a connection closed; here, before that can happen.
   */
  #mayBodyFollow() {
    if (this.method !== 'HEAD') return false
    const { status, headers } = this.#head as Head
    if (headers['transfer-encoding'] !== undefined) return true
    const length = headers['content-length']
    return length === undefined ? status !== 204 : length !== '0'
  }

  onResponseError(_: unknown, error: NodeJS.ErrnoException) {
    // These have no body, though a server may declare the length of the omitted one, which undici misses then.
    if (this.#head?.status === 304 || this.#head?.status === 204) {
      this.#connection?.destroy()
      this.#succeed()
    } else this.fail('connection', codeOf(error))
  }

  fail(why: ExchangeError['why'], code?: string) {
    if (!this.#connection) return
    const connection = this.#connection
    this.#end()
    connection.destroy()
    this.#reject(new ExchangeError(why, { code, head: this.#head }))
  }

  #succeed() {
    if (!this.#connection) return
    this.#end()
    const body = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
    const { status, headers } = this.#head as Head
    this.#resolve({ status, headers, body })
  }

  #end() {
    this.#connection = undefined
    this.#cancelDeadline()
  }
}

function codeOf({ name, code }: NodeJS.ErrnoException) {
  if (code === undefined) return name === 'HTTPParserError' ? INVALID_RESPONSE : undefined
  return codes[code] ?? (code.startsWith('UND_') ? 'ECONNRESET' : code)
}

/** @param headers names in lower case */
function oneValueEach(headers: Record<string, string | string[] | undefined>): Headers {
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) {
      headers[name] = trimmed(typeof value === 'string' ? value : singleHeaders.has(name) ? value[0] : value.join(', '))
    }
  }
  return headers as Headers
}
