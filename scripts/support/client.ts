// Shared by commands that drive a running system: a client's connection, and checks that are printed one by one.
import { WebSocket } from 'ws'

/**
 * @typedef {object} Target where clients connect
 * @property {URL} url ws: or wss:
 * @property {boolean} insecure whether any certificate is accepted; always for localhost, where the proxy makes its own
 * @property {string} [token] for whom the sessions are
 */

/**
 * @param {string} text
 * @param {boolean} insecure
 * @returns {Target}
 */
export function readUrl(text, insecure) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !['ws:', 'wss:'].includes(url.protocol))
    throw new Error(`--url ${text}: must begin with ws:// or wss://, as in wss://localhost`)
  return { url, insecure: insecure || ['localhost', '127.0.0.1'].includes(url.hostname) }
}

/**
 * @param {string} text
 * @returns {number} milliseconds
 */
export function readTimeout(text) {
  const seconds = Number(text)
  if (!(seconds > 0)) throw new Error(`--timeout ${text}: must be a number of seconds above 0, as in 20`)
  return seconds * 1_000
}

/** @param {Target} target */
export function openSocket({ url, insecure, token }) {
  const options = { rejectUnauthorized: !insecure, headers: bearer(token) }
  return new WebSocket(new URL('/ws', url), 'keycast.v1.json', options)
}

/** The header by which a request or an upgrade brings a token. @param {string} [token] @returns {Record<string, string>} */
export const bearer = token => (token === undefined ? {} : { authorization: `Bearer ${token}` })

/** @param {number} timeoutMs for each check */
export function createChecks(timeoutMs) {
  let checks = 0
  let failures = 0

  /** @param {string} mark @param {string} what @param {string} detail */
  const print = (mark, what, detail) => console.log(`${mark.padEnd(6)}  ${what}  (${detail})`)

  return {
    /**
     * Runs and prints one check.
     *
     * @param {string} what
     * @param {(signal: AbortSignal) => Promise<string | undefined>} run gives a detail to print; the signal is aborted
     *   when time is up
     * @returns {Promise<boolean>}
     */
    async check(what, run) {
      checks++
      const startedAt = performance.now()
      const late = new AbortController()
      /** @type {NodeJS.Timeout | undefined} */
      let timer
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
        print('FAILED', what, /** @type {Error} */ (error).message)
        return false
      } finally {
        clearTimeout(timer)
      }
    },

    /** Prints how many checks failed. @returns {number} the exit code */
    conclude() {
      console.log(failures === 0 ? `all ${checks} checks passed` : `${failures} of ${checks} checks failed`)
      return failures === 0 ? 0 : 1
    },
  }
}
