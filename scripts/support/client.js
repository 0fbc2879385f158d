// What scripts that drive a running system share: a client's connection, and checks that are printed one by one.
import { once } from 'node:events'
import { WebSocket } from 'ws'

/**
 * @typedef {object} Target where clients connect
 * @property {URL} url ws: or wss:
 * @property {boolean} insecure whether any certificate is accepted: also where it was made by the proxy itself, for localhost
 */

/**
 * @param {string} text
 * @param {boolean} insecure
 * @returns {Target}
 */
export function readUrl(text, insecure) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !['ws:', 'wss:'].includes(url.protocol)) throw new Error(`--url ${text}: must be ws:// or wss://`)
  return { url, insecure: insecure || ['localhost', '127.0.0.1'].includes(url.hostname) }
}

/**
 * @param {string} text
 * @returns {number} milliseconds
 */
export function readTimeout(text) {
  const seconds = Number(text)
  if (!(seconds > 0)) throw new Error(`--timeout ${text}: must be a number of seconds above 0`)
  return seconds * 1_000
}

/** @param {Target} target */
export function openSocket({ url, insecure }) {
  return new WebSocket(new URL('/ws', url), 'keycast.v1.json', { rejectUnauthorized: !insecure })
}

/** @param {Target} target */
export async function connect(target) {
  const ws = openSocket(target)
  /** @type {any[]} */
  const received = []
  let wake = () => {}
  ws.on('message', data => {
    const bytes = /** @type {Buffer} */ (data)
    received.push({ ...JSON.parse(bytes.toString()), bytes: bytes.length })
    wake()
  })
  await once(ws, 'open')
  return {
    send: (/** @type {object} */ message) => ws.send(JSON.stringify(message)),
    close: () => ws.close(),
    /** The next message that fits; those before it are passed over. @param {(message: any) => boolean} fits */
    async next(fits) {
      for (;;) {
        while (received.length > 0) {
          const message = received.shift()
          if (fits(message)) return message
        }
        await new Promise(resolve => {
          wake = () => resolve(undefined)
        })
      }
    },
  }
}

/** @param {number} timeoutMs for each check */
export function createChecks(timeoutMs) {
  let failures = 0

  /** @param {string} mark @param {string} what @param {string} detail */
  const print = (mark, what, detail) => console.log(`${mark.padEnd(6)}  ${what}  (${detail})`)

  return {
    /**
     * Runs and prints one check.
     *
     * @param {string} what
     * @param {(signal: AbortSignal) => Promise<string | undefined>} run gives a detail to print; the signal says that time is up
     * @returns {Promise<boolean>}
     */
    async check(what, run) {
      const startedAt = performance.now()
      const late = new AbortController()
      /** @type {NodeJS.Timeout | undefined} */
      let timer
      const clock = new Promise((_, reject) => {
        timer = setTimeout(() => {
          reject(new Error(`not within ${timeoutMs / 1_000} s`))
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

    /** Says how it ended. @returns {number} the exit code */
    conclude() {
      console.log(failures === 0 ? 'all is well' : `${failures} checks failed`)
      return failures === 0 ? 0 : 1
    },
  }
}
