// The gateway that is called, over HTTP: one call, and when it is made again.
import { backoffMs } from '../keycast/connection/backoff.js'

/** Above the 5 s in which a gateway answers each of these calls, so that its own error comes first. */
const TIMEOUT_MS = 10_000

/** With the waits between them a call ends within 70 s, but for what `Retry-After` adds. */
const TRIES_MAX = 5

/** A longer wait is the caller's to decide: the error says how long. */
const RETRY_AFTER_MAX_MS = 30_000

/** Answers of a gateway, or of what stands before it, that a later try may change (RFC 9110 section 15). */
const PASSING = new Set([408, 429, 502, 503, 504])

/** The error that a call rejects with. */
export class CallError extends Error {
  /** @param {{ code: string, message: string, status?: number, retryAfterMs?: number, problems?: string[], lines?: number[] }} error */
  constructor({ code, message, status, retryAfterMs, problems, lines }) {
    super(message)
    this.name = 'CallError'
    /** The gateway's; `no_answer` where none came from one, so that the call was perhaps carried out; or `closed`. */
    this.code = code
    /** The status of the answer, if one came. */
    this.status = status
    /** If given, a new try makes sense after this time. */
    this.retryAfterMs = retryAfterMs
    /** Each thing that is wrong with a call that names many, ten at most. */
    this.problems = problems
    /** Of `putAll`: the lines that were not taken, or perhaps were, counted from 1. */
    this.lines = lines
    /** Of `publish` and `publishAll`: those that are not known to be kept, with their ids, to be published again. @type {import('../backend.js').Outgoing[] | undefined} */
    this.messages = undefined
  }
}

/** @typedef {ReturnType<typeof createGateway>} Gateway */

/**
 * @param {string | URL} url of the internal listener of any gateway
 * @param {string} token
 * @param {Pick<import('../keycast/environment.js').Environment, 'random' | 'setTimeout' | 'clearTimeout'>} environment
 * @throws {TypeError} for a URL that is none
 */
export function createGateway(url, token, { random, setTimeout, clearTimeout }) {
  const base = new URL(url).href.replace(/\/$/, '')

  /** @param {string} method @param {string} path @param {{ headers?: Record<string, string>, body?: any }} request */
  async function ask(method, path, { headers, body }) {
    const abort = new AbortController()
    const timeout = setTimeout(() => abort.abort(new Error(`nothing within ${TIMEOUT_MS} ms`)), TIMEOUT_MS)
    try {
      const response = await fetch(base + path, {
        method,
        headers: { authorization: `Bearer ${token}`, ...headers },
        body,
        redirect: 'manual', // the token is for no other place
        signal: abort.signal,
      })
      return { response, text: await response.text() }
    } catch (error) {
      const { message, cause } = /** @type {Error} */ (error)
      const reason = /** @type {Error | undefined} */ (cause)?.message || message
      throw new CallError({ code: 'no_answer', message: `${method} ${base}${path}: ${reason}` })
    } finally {
      clearTimeout(timeout)
    }
  }

  /** One try. @param {Parameters<typeof ask>} request */
  async function askOnce(...request) {
    const { response, text } = await ask(...request)
    const answer = objectOf(text)
    if (response.ok && answer) return answer
    const [method, path] = request
    throw new CallError({
      code: 'no_answer',
      message: `${method} ${base}${path}: ${response.status}, not from a gateway`,
      retryAfterMs: retryAfterMsOf(response.headers.get('retry-after')),
      ...answer,
      status: response.status,
    })
  }

  /**
   * @param {boolean} mayRepeat whether twice is as good as once
   * @param {[method: string, path: string, request: { headers?: Record<string, string>, body?: any }]} request
   * @returns {Promise<any>}
   */
  async function call(mayRepeat, ...request) {
    for (let failures = 0; ; failures++) {
      try {
        return await askOnce(...request)
      } catch (error) {
        const { status, retryAfterMs = 0 } = /** @type {CallError} */ (error)
        const isPassing = status === undefined || PASSING.has(status)
        if (!mayRepeat || !isPassing || failures === TRIES_MAX - 1 || retryAfterMs > RETRY_AFTER_MAX_MS) throw error
        await new Promise(resolve => setTimeout(() => resolve(undefined), retryAfterMs + backoffMs(random, failures)))
      }
    }
  }

  return {
    call,
    /** A call that may be repeated. @param {string} path @param {object} body */
    post: (path, body) =>
      call(true, 'POST', path, { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  }
}

/** @param {string} text @returns {any} undefined where it is no object */
function objectOf(text) {
  try {
    const read = JSON.parse(text)
    return typeof read === 'object' && read !== null ? read : undefined
  } catch {
    return undefined
  }
}

/** Of seconds alone: a gateway and its proxy send no date. @param {string | null} header */
const retryAfterMsOf = header => (header && /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : undefined)
