// One lease that asks: a backend, whether a viewer may read, or publish a message. The status is the answer. To the former
// the body is thrown away, to the latter it says more.
import { retryAfterMsOf } from '@keycast/service'
import type { Lease } from '../worker-messages.ts'
import type { Connections } from './http/connections.ts'
import { Exchange, ExchangeError, type Response } from './http/exchange.ts'
import type { Pulled } from './response.ts'

export type Asker = ReturnType<typeof createAsker>

/** A body up to this is read, so that its connection serves the next request; with a longer one it is closed. */
const BODY_BYTES_MAX = 65_536

interface Options {
  connections: Connections
  wallNow: () => number
}

export function createAsker({ connections, wallNow }: Options) {
  return {
    /** @param body of a POST @returns never rejects, whatever a backend or a network does */
    async ask({ url, headers, statusOf, timeoutMs, bytesMax }: Lease, body?: Buffer): Promise<Pulled> {
      const json = body && { accept: 'application/json', 'content-type': 'application/json' }
      const sent = { accept: '*/*', 'user-agent': 'keycast-fetcher', ...headers, ...json }
      const limits = { timeoutMs, bytesMax: Math.max(bytesMax, BODY_BYTES_MAX) }
      const exchange = new Exchange({ url, method: statusOf, body, headers: sent, ...limits })
      let head: Partial<Response> & Pick<Response, 'status' | 'headers'>
      try {
        head = await connections.send(exchange)
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error
        if (!error.head) return { result: failureOf(error, timeoutMs, body ? 'published' : 'read') }
        head = error.head // however the body ends, the status stands
      }
      const told = body ? head.body : undefined
      const retryAfterMs = retryAfterMsOf(head.headers, wallNow())
      return { result: { kind: 'status', status: head.status, retryAfterMs, hasBody: told && true }, body: told }
    },
  }
}

/** Nothing of the error but its code: Node's messages name the backend's address. */
function failureOf({ why, code }: ExchangeError, timeoutMs: number, what: 'read' | 'published'): Pulled['result'] {
  if (why === 'deadline')
    return {
      kind: 'failed',
      code: 'backend_timeout',
      message: `the backend did not say within ${timeoutMs} ms whether this may be ${what}`,
    }
  const message = `the connection failed (${code}) when the backend was asked whether this may be ${what}`
  return { kind: 'failed', code: 'backend_unreachable', message }
}
