// One stream of a backend's events (HTML, "Server-sent events"), kept open: opened again after a pause that grows, and
// gone on with where it broke off (Last-Event-ID). The library parses; the bounds are here.
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { backoffMs, http, retryAfterMsOf, type World, workTurn } from '@keycast/service'
import { createParser } from 'eventsource-parser'

/** The pause before a stream is opened again, where the backend sends no `retry:`. */
const RETRY_MS = 1_000

/** A backend that asks for a shorter one. */
const RETRY_MS_MIN = 100

/** The pause doubles up to this while the stream cannot be opened. A backend that asks for more gets it. */
const RETRY_MS_MAX = 30_000

/**
 * A stream without ids costs a request for each watched key whenever it is opened. Where it ends sooner than this, the pause
 * grows as if it could not be opened: some proxies end each response at once.
 */
const LASTS_MS = RETRY_MS_MAX

/** A backend that asks for a longer pause is asked again after this. */
const PATIENCE_MS_MAX = 300_000

/** A backend that hangs looks like one in which nothing changes. SSE servers send comments each 15 s or so for that. */
export const SILENT_MS = 60_000

/** Of one event: it names a few keys, or a thousand, or carries a value, whose text may be twice as long as the value. */
export const EVENT_CHARACTERS_MAX = 2 ** 21

/** Ids are held by each gateway, and go into a header. */
const ID_CHARACTERS_MAX = 1_024

/**
 * The parser is given so many characters at a time: what it does with a line may take as long as all that it was given,
 * and a backend that floods must not keep the keys of all others waiting.
 */
const PIECE_CHARACTERS = 1_024

/** TCP finds a host that vanished this long after its last byte, and ten seconds more. */
const PROBE_MS = 10_000

/** Some servers begin every response with it. */
const BOM = '\uFEFF'

/** `id`: the last one that the stream had. */
interface StreamEvent {
  id: string | undefined
  data: string
}

/** Why a stream is down: for the log, with nothing of the request, whose headers are secrets. */
class StreamError extends Error {
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined

  constructor(message: string, { status, retryAfterMs }: { status?: number; retryAfterMs?: number } = {}) {
    super(message)
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

export interface StreamOptions {
  url: string
  /** For the head of the response. */
  timeoutMs: number
  /** With the credentials, looked up each time; `undefined` while there are none. */
  headersOf: () => Record<string, string> | undefined
  /** Where a stream of another node broke off. */
  lastEventId: string | undefined
  /** `isResumed`: the backend was told where the last one broke off, and goes on there. */
  onUp: (isResumed: boolean) => void
  onEvent: (event: StreamEvent) => void
  onDown: (why: string, status: number | undefined) => void
  after: World['after']
  turn: World['turn']
  now: () => number
  wallNow: () => number
}

/** @returns what closes it for good */
export function openEventStream(options: StreamOptions): () => void {
  const { url, timeoutMs, headersOf, onUp, onEvent, onDown, after, turn, now, wallNow } = options
  let lastEventId = options.lastEventId
  let retryMs = RETRY_MS
  let failures = 0
  let isClosed = false
  let endConnection = () => {}
  let endWait = () => {}

  /** @throws {Error} always: a stream has no good end */
  async function follow() {
    const headers = headersOf()
    if (!headers) throw new StreamError('there is no token for it yet')
    const abort = new AbortController()
    let why: string | undefined
    const end = (because: string) => {
      why = because
      abort.abort()
    }
    endConnection = () => abort.abort()
    let upAt: number | undefined
    let endLimit = after(timeoutMs, () => end(`no answer within ${timeoutMs} ms`))
    const limitSilence = () => {
      endLimit()
      endLimit = after(SILENT_MS, () => end(`nothing came for ${SILENT_MS / 1_000} s, not even a comment`))
    }
    try {
      const isResumed = lastEventId !== undefined
      const response = await request(url, withLastEventId(headers, lastEventId), abort.signal)
      checkHead(response, wallNow())
      limitSilence()
      upAt = now()
      onUp(isResumed)
      const parser = createParser({
        maxBufferSize: EVENT_CHARACTERS_MAX,
        onEvent({ id, data }) {
          if (id !== undefined) lastEventId = isPlace(id) ? id : undefined
          onEvent({ id: lastEventId, data })
        },
        onRetry(ms) {
          retryMs = Math.max(RETRY_MS_MIN, Math.min(ms, PATIENCE_MS_MAX))
        },
        onError(error) {
          // All else is to be passed over.
          if (error.type !== 'max-buffer-size-exceeded') return
          // From where it broke off it would begin with the same event again.
          lastEventId = undefined
          throw new StreamError('an event is too long')
        },
      })
      response.setEncoding('utf8')
      let isFirst = true
      for await (const text of response) {
        limitSilence()
        // The parser looks for the bytes of the mark, and would pass over the first line.
        let at = isFirst && text.startsWith(BOM) ? 1 : 0
        isFirst = false
        const feedNext = () => {
          parser.feed(text.slice(at, at + PIECE_CHARACTERS))
          at += PIECE_CHARACTERS
          return at < text.length && !abort.signal.aborted
        }
        while (workTurn(now, feedNext)) await new Promise<void>(turn)
      }
      throw new StreamError('the backend ended it')
    } catch (error) {
      if (error instanceof StreamError) throw error
      throw new StreamError(why ?? `the connection failed (${(error as NodeJS.ErrnoException).code})`)
    } finally {
      endLimit()
      abort.abort()
      if (upAt !== undefined && (lastEventId !== undefined || now() - upAt >= LASTS_MS)) failures = 0
    }
  }

  async function keepOpen() {
    const { message, status, retryAfterMs = 0 } = (await follow().catch(error => error)) as StreamError
    if (isClosed) return
    failures++
    const backoff = backoffMs(failures, { firstMs: retryMs, maxMs: RETRY_MS_MAX })
    const pauseMs = Math.max(retryMs, backoff, retryAfterMs)
    endWait = after(Math.min(pauseMs, PATIENCE_MS_MAX), () => void keepOpen())
    onDown(message, status)
  }

  void keepOpen()

  return () => {
    isClosed = true
    endWait()
    endConnection()
  }
}

/** @returns the response, of which the head is there */
function request(url: string, headers: Record<string, string>, signal: AbortSignal) {
  const { get } = url.startsWith('https:') ? https : http
  return new Promise<IncomingMessage>((resolve, reject) => {
    // Without an agent: no other request may wait for this connection, or get it.
    const sent = get(url, { headers, signal, agent: false }, resolve)
    sent.setSocketKeepAlive(true, PROBE_MS)
    sent.on('error', reject)
  })
}

function withLastEventId(headers: Record<string, string>, lastEventId: string | undefined) {
  return {
    'user-agent': 'keycast-fetcher',
    ...headers,
    accept: 'text/event-stream',
    'accept-encoding': 'identity',
    'cache-control': 'no-store',
    // UTF-8, as its bytes: Node takes a character of a header for a byte.
    ...(lastEventId !== undefined && { 'last-event-id': Buffer.from(lastEventId).toString('latin1') }),
  }
}

/** @throws {StreamError} for a response that is no stream */
function checkHead({ statusCode: status, headers }: IncomingMessage, now: number) {
  if (status !== 200) {
    const retryAfterMs = retryAfterMsOf({ 'retry-after': headers['retry-after'], date: headers.date }, now)
    throw new StreamError(`the backend answered ${status}`, { status, retryAfterMs })
  }
  const type = (headers['content-type'] ?? '').split(';')[0].trim().toLowerCase()
  if (type !== 'text/event-stream')
    throw new StreamError('the backend answered with another type than text/event-stream')
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') throw new StreamError('the events are in an encoding that was not asked for')
}

/** Of version 4 (RFC 9562 section 5.4). Libraries make one up for each event that is given no id (better-sse). */
const randomUuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i

/** Whether a stream can go on there. An empty id takes the last one back, as the standard has it. */
const isPlace = (id: string) => id.length <= ID_CHARACTERS_MAX && /^\P{Cc}+$/u.test(id) && !randomUuid.test(id)
