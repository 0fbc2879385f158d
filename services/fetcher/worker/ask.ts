// One lease whose status alone is wanted: asks a backend whether a viewer may read. The body is thrown away.
import type { Lease, Result } from '../work/messages.ts'
import type { Connections } from './http/connections.ts'
import { Exchange, ExchangeError } from './http/exchange.ts'
import { retryAfterMsOf } from './response-headers.ts'

export type Asker = ReturnType<typeof createAsker>

/** A body up to this is read, so that its connection serves the next request; with a longer one it is closed. */
const BODY_BYTES_MAX = 65_536

interface Options {
  connections: Connections
  wallNow: () => number
}

export function createAsker({ connections, wallNow }: Options) {
  return {
    /** @returns never rejects, whatever a backend or a network does */
    async ask({ url, headers, statusOf, timeoutMs }: Lease): Promise<Result> {
      const sent = { accept: '*/*', 'user-agent': 'keycast-fetcher', ...headers }
      const exchange = new Exchange({ url, method: statusOf, headers: sent, timeoutMs, bytesMax: BODY_BYTES_MAX })
      let head
      try {
        head = await connections.send(exchange)
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error
        if (!error.head) return failureOf(error, timeoutMs)
        head = error.head // however the body ends, the status stands
      }
      return { kind: 'status', status: head.status, retryAfterMs: retryAfterMsOf(head.headers, wallNow()) }
    },
  }
}

/** Nothing of the error but its code: Node's messages name the backend's address. */
function failureOf({ why, code }: ExchangeError, timeoutMs: number): Result {
  if (why === 'deadline')
    return {
      kind: 'failed',
      code: 'backend_timeout',
      message: `the backend did not say within ${timeoutMs} ms whether this may be read`,
    }
  const message = `the connection failed (${code}) when the backend was asked whether this may be read`
  return { kind: 'failed', code: 'backend_unreachable', message }
}
