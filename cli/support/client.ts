// Shared by commands that drive a running system: a client's connection, and checks that are printed one by one.
import { WebSocket } from 'ws'

/** Where clients connect. */
export interface Target {
  /** ws: or wss: */
  url: URL
  /** Whether any certificate is accepted; always for localhost, where the proxy makes its own. */
  insecure: boolean
  /** For whom the sessions are. */
  token?: string
}

export function readUrl(text: string, insecure: boolean): Target {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !['ws:', 'wss:'].includes(url.protocol))
    throw new Error(`--url ${text}: must begin with ws:// or wss://, as in wss://localhost`)
  return { url, insecure: insecure || ['localhost', '127.0.0.1'].includes(url.hostname) }
}

/** @returns milliseconds */
export function readTimeout(text: string): number {
  const seconds = Number(text)
  // A timer of more milliseconds than fit into 31 bits would end at once.
  if (seconds > 0 && seconds <= 2_147_483) return seconds * 1_000
  throw new Error(`--timeout ${text}: must be a number of seconds above 0, as in 20, and 2147483 at most`)
}

export function openSocket({ url, insecure, token }: Target) {
  const options = { rejectUnauthorized: !insecure, headers: bearer(token) }
  return new WebSocket(new URL('/ws', url), 'keycast.v1.json', options)
}

/** The header by which a request or an upgrade brings a token. */
export const bearer = (token?: string): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

/** @param timeoutMs for each check */
export function createChecks(timeoutMs: number) {
  let checks = 0
  let failures = 0

  const print = (mark: string, what: string, detail: string) => console.log(`${mark.padEnd(6)}  ${what}  (${detail})`)

  return {
    /**
     * Runs and prints one check.
     *
     * @param run gives a detail to print; the signal is aborted when time is up
     */
    async check(what: string, run: (signal: AbortSignal) => Promise<string | undefined>): Promise<boolean> {
      checks++
      const startedAt = performance.now()
      const late = new AbortController()
      let timer: NodeJS.Timeout | undefined
      const clock = new Promise((_, reject) => {
        timer = setTimeout(() => {
          reject(new Error(`did not happen within ${timeoutMs / 1_000} s`))
          late.abort()
        }, timeoutMs)
      })
      try {
        const detail = await Promise.race([run(late.signal), clock])
        print('ok', what, `${detail ? `${detail}, ` : ''}${Math.round(performance.now() - startedAt)} ms`)
        return true
      } catch (error) {
        failures++
        print('FAILED', what, (error as Error).message)
        return false
      } finally {
        clearTimeout(timer)
      }
    },

    /** Prints how many checks failed. @returns the exit code */
    conclude(): number {
      console.log(failures === 0 ? `all ${checks} checks passed` : `${failures} of ${checks} checks failed`)
      return failures === 0 ? 0 : 1
    },
  }
}
