// One lease, one request (and those it is redirected to), one result, whatever happens. A worker retries nothing: the primary does.

import type { World } from '@keycast/service'
import { axios } from '@keycast/service/axios'
import type { AxiosResponse, InternalAxiosRequestConfig } from 'axios'
import type { FailedResult, Lease } from '../worker-messages.ts'
import type { Connections } from './http/connections.ts'
import { Exchange, ExchangeError, type Response } from './http/exchange.ts'
import { inflate, inflateHere } from './http/inflate.ts'
import { createReadClock } from './http/read-clock.ts'
import { createReadingPlaces } from './http/reading-places.ts'
import { failureOfHead, type Pulled, resultOf } from './response.ts'

export type Puller = ReturnType<typeof createPuller>

/** Such a body takes a millisecond to be checked and hashed. */
const LARGE_BYTES = 2 ** 18

/** So many large bodies are read at a time. They are inflated by four threads, which look up all backends' hosts as well. */
const READ_AT_ONCE = 2

/**
 * A body whose turn does not come so long after the end of its request is not read. The lease of one that waited on would be
 * taken for lost, and the worker killed, with the leases of all backends.
 */
const UNREAD_MS = 5_000

/** More than any chain that ends. */
const REDIRECTS_MAX = 5

/** axios takes headers of its own class as they are, and copies any others: nobody reads those of its responses here. */
const noHeaders = new axios.AxiosHeaders()

type Config = InternalAxiosRequestConfig & { exchange: Exchange }

interface Options extends Pick<World, 'now' | 'hostNow' | 'wallNow' | 'random' | 'after' | 'every' | 'turn'> {
  connections: Connections
}

export function createPuller({ connections, ...world }: Options) {
  const { now, wallNow, random, turn } = world
  const readClock = createReadClock(world)
  const places = createReadingPlaces(READ_AT_ONCE, world)
  /** Large bodies take turns: a beat, or another backend's response, comes between two of them. */
  let last: Promise<void> = Promise.resolve()
  const turnOfLarge = () => (last = last.then(() => new Promise<void>(turn)))

  /** Needs no place: a small body is soon read. @returns `undefined` where the body is large, as it was sent or inflated */
  async function inflateSmall(received: Response, { bytesMax }: Exchange): Promise<Response | undefined> {
    if (received.body.length > LARGE_BYTES) return undefined
    try {
      return await inflate(received, Math.min(bytesMax, LARGE_BYTES))
    } catch (error) {
      if (bytesMax > LARGE_BYTES && error instanceof ExchangeError && error.why === 'too_large') return undefined
      throw error
    }
  }

  /** axios's way to the network. */
  async function adapter(config: Config): Promise<AxiosResponse<Response>> {
    const { exchange } = config
    const readBy = now() + exchange.timeoutMs + UNREAD_MS
    const received = await connections.send(exchange)
    const isEncoded = received.headers['content-encoding'] !== undefined
    let data = isEncoded
      ? (inflateHere(received, exchange.bytesMax) ?? (await inflateSmall(received, exchange)))
      : received
    if (!data || data.body.length > LARGE_BYTES) {
      const hasPlace = await places.take(new URL(exchange.url).origin, readBy - now())
      if (!hasPlace) throw new ExchangeError('unread', { head: received })
      try {
        data ??= await inflate(received, exchange.bytesMax)
        if (data.body.length > LARGE_BYTES) await turnOfLarge()
      } finally {
        places.giveBack()
      }
    }
    return { status: data.status, statusText: '', headers: noHeaders, data, config }
  }

  // Not `axios.create`, whose defaults are merged anew for each request and say nothing here.
  const client = new axios.Axios({ adapter: config => adapter(config as Config), validateStatus: null })

  function exchangeOf(lease: Lease, body: Buffer | undefined, traceparent: string, url: string, timeoutMs: number) {
    const { bytesMax, waitSeconds } = lease
    const method = body ? 'POST' : 'GET'
    const readAt = waitSeconds === undefined ? undefined : readClock.readAt
    return new Exchange({ url, method, body, headers: headersOf(lease, traceparent), timeoutMs, bytesMax, readAt })
  }

  const send = async (exchange: Exchange) => (await client.request<Response>({ exchange } as Config)).data

  return {
    /** @param body of a POST @returns never rejects, whatever a backend or a network does */
    async pull(lease: Lease, body?: Buffer): Promise<Pulled> {
      const traceparent = newTraceparent(random)
      const endsAt = now() + lease.timeoutMs
      let asked = lease
      let exchange = exchangeOf(asked, body, traceparent, lease.url, lease.timeoutMs)
      const isWait = lease.waitSeconds !== undefined
      if (isWait) readClock.use()
      try {
        let response = await send(exchange)
        let url = redirectOf(lease, lease.url, response)
        for (let followed = 0; url !== undefined && followed < REDIRECTS_MAX; followed++) {
          // Validators are of the URL that gave them (RFC 9110 section 8.8): by those of one that this key led to before, a
          // backend would say of another that nothing changed.
          asked = { ...lease, etag: undefined, lastModified: undefined }
          exchange = exchangeOf(asked, body, traceparent, url, Math.max(1, endsAt - now()))
          const { headers, ...rest } = await send(exchange)
          response = { ...rest, headers: { ...headers, etag: undefined, 'last-modified': undefined } }
          url = redirectOf(lease, url, response)
        }
        const pulled = resultOf(asked, response, wallNow())
        if (pulled.result.kind === 'failed') pulled.result.traceparent = traceparent
        return { ...pulled, askedAt: exchange.askedAt }
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error
        return { result: { ...failureOf(lease, error, wallNow()), traceparent }, askedAt: exchange.askedAt }
      } finally {
        if (isWait) readClock.release()
      }
    },
  }
}

/** By byte: a number's own way to hexadecimal takes half a microsecond, and each trace needs four. */
const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * A trace of its own (W3C Trace Context, section 3.2), by which a failure here is found in the backend's log. Sampled: a
 * backend whose tracing goes by its parent would record nothing of these requests otherwise.
 */
function newTraceparent(random: () => number): string {
  const word = () => {
    const bits = random() * 2 ** 32
    return hex[bits >>> 24] + hex[(bits >>> 16) & 255] + hex[(bits >>> 8) & 255] + hex[bits & 255]
  }
  const parent = word() + word()
  return `00-${word()}${word()}${parent}-${parent}-01`
}

/**
 * Where a response leads that is to be followed. Never to another origin: the headers are secrets of this one.
 *
 * @param from the URL that gave it
 */
function redirectOf({ redirects, hasBody }: Lease, from: string, { status, headers }: Response): string | undefined {
  // The others turn a POST into a GET (RFC 9110 section 15.4).
  const isFollowed = status === 307 || status === 308 || (!hasBody && [301, 302, 303].includes(status))
  if (!redirects || !isFollowed || headers.location === undefined) return undefined
  const to = URL.parse(headers.location, from)
  if (!to || to.origin !== new URL(from).origin || to.username || to.password) return undefined
  to.hash = ''
  return to.href
}

function headersOf({ headers, hasBody, etag, lastModified, waitSeconds }: Lease, traceparent: string) {
  const sent: Record<string, string> = {
    accept: 'application/json, */*;q=0.5',
    'user-agent': 'keycast-fetcher',
    ...(hasBody && { 'content-type': 'application/json' }),
    ...headers,
    traceparent,
    'accept-encoding': 'gzip, br',
  }
  if (waitSeconds !== undefined) sent.prefer = `wait=${waitSeconds}`
  // One of them: a backend that gets both could answer by the coarser (RFC 9110 section 13.2.2).
  if (etag !== undefined) sent['if-none-match'] = etag
  else if (lastModified !== undefined) sent['if-modified-since'] = lastModified
  return sent
}

/**
 * The meaning of an exchange that did not end with a whole response. Messages reach clients: nothing of the error but
 * its code goes into them, for Node's errors carry the backend's address.
 */
function failureOf({ timeoutMs, bytesMax }: Lease, { why, code, head }: ExchangeError, now: number): FailedResult {
  // The head may have come whole before the body failed, and mostly it says enough: a 404 with a huge page is a 404.
  const byHead = head && failureOfHead(head.status, head.headers, now)
  if (byHead) return byHead

  const status = head?.status
  switch (why) {
    case 'deadline':
      return { kind: 'failed', code: 'backend_timeout', message: `no whole answer within ${timeoutMs} ms`, status }
    case 'too_large':
      return { kind: 'failed', code: 'too_large', message: `the content is over ${bytesMax} bytes`, status }
    case 'encoding':
      return { kind: 'failed', code: 'invalid_content', message: 'the compressed content is damaged', status }
    case 'unread':
      return {
        kind: 'failed',
        code: 'fetcher_timeout',
        message: 'the content came, and the fetcher had too many large ones to read',
        status,
      }
    case 'connection': {
      const message = head ? 'the connection failed within the body' : `the connection failed (${code})`
      return { kind: 'failed', code: 'backend_unreachable', message, status }
    }
  }
}
