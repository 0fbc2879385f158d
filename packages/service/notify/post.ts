// One call of a backend: signed, bounded, and never followed elsewhere.
import { Agent as HttpsAgent } from 'node:https'
import type { Readable } from 'node:stream'
import { type Headers, retryAfterMsOf } from '../http-times.ts'
import type { Notify } from '../namespaces/notify-schema.ts'
import { http } from '../node-http.ts'
import type { Secrets } from './secrets.ts'
import { signatureOf } from './signature.ts'

/**
 * What a backend made of a call. `refused`: it will not take this one, however often it is made. `failed`: it may take
 * it later.
 */
export type Outcome =
  | { kind: 'taken' }
  | { kind: 'refused'; why: string }
  | { kind: 'failed'; why: string; retryAfterMs?: number }

export type Post = (notify: Notify, body: string) => Promise<Outcome>

/** A body up to this is read, so that its connection serves the next call; with a longer one it is closed. */
const BODY_BYTES_MAX = 64 * 1_024

/** A backend that says more is asked again after so long. */
const RETRY_AFTER_MS_MAX = 3_600_000

/** Statuses that a later call may change (RFC 9110 section 15.5.9, RFC 6585 section 4). */
const PASSING = new Set([408, 429])

interface Deps {
  secrets: Secrets
  wallNow: () => number
}

export function createPost({ secrets, wallNow }: Deps): Post & { close: () => void } {
  const httpAgent = new http.Agent({ keepAlive: true })
  const httpsAgent = new HttpsAgent({ keepAlive: true })

  /** @returns never rejects */
  const post: Post = async ({ url, secretFiles, timeoutMs }, body) => {
    const { origin } = new URL(url) // the rest may be secret, and errors are logged
    try {
      const signature = signatureOf(body, await secrets.of(secretFiles), Math.floor(wallNow() / 1_000))
      // A process that tells nobody does not load it.
      const { axios } = await import('../axios.ts')
      const { status, headers, data } = await axios.post<Readable>(url, body, {
        headers: { 'content-type': 'application/json', 'keycast-signature': signature },
        timeout: timeoutMs,
        signal: AbortSignal.timeout(timeoutMs), // axios's own is none for a body that drips
        maxRedirects: 0, // the signature is for no other place
        proxy: false,
        httpAgent,
        httpsAgent,
        responseType: 'stream',
        decompress: false,
        transformRequest: given => given,
        validateStatus: null,
      })
      // However the body ends, the status stands.
      await endOf(data)
      if (status >= 200 && status < 300) return { kind: 'taken' }
      const why = `${origin} answered ${status}`
      if (status >= 400 && status < 500 && !PASSING.has(status)) return { kind: 'refused', why }
      const retryAfterMs = retryAfterMsOf(headers as Headers, wallNow())
      return { kind: 'failed', why, retryAfterMs: retryAfterMs && Math.min(RETRY_AFTER_MS_MAX, retryAfterMs) }
    } catch (error) {
      // axios's own error carries the request.
      const { isAxiosError, code, name, message } = error as { isAxiosError?: boolean } & NodeJS.ErrnoException
      return { kind: 'failed', why: isAxiosError ? `${origin}: no answer (${code ?? name})` : message }
    }
  }

  return Object.assign(post, {
    close() {
      httpAgent.destroy()
      httpsAgent.destroy()
    },
  })
}

/** @returns resolves once the body is over, or cut */
function endOf(body: Readable): Promise<void> {
  let left = BODY_BYTES_MAX
  return new Promise(resolve => {
    body.on('close', resolve).on('error', () => resolve())
    body.on('data', ({ length }: Buffer) => {
      left -= length
      if (left < 0) body.destroy()
    })
  })
}
