// A backend's calls to a gateway's internal listener (docs/http-api.md), collected, and repeated where that is safe.
// For Node: no page loads it, for no page may have the token. And the check of Keycast's calls to a backend.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { backoffMs } from './keycast/connection/backoff.js'
import { randomText } from './keycast/random.js'

/** A call is made anew, and signed anew, each time: an older one was recorded by somebody, or clocks differ by more. */
const SIGNED_SECONDS_MAX = 300

/** As many keys, and as many users, as `POST /v1/refresh` takes. */
const KEYS_MAX = 5_000
const USERS_MAX = 1_000

/** A backend names all keys of one change within this time. */
const COLLECT_MS = 30

/** Above the 5 s in which a gateway answers each of these calls, so that its own error comes first. */
const TIMEOUT_MS = 10_000

/** With the waits between them a call ends within 70 s, but for what `Retry-After` adds. */
const TRIES_MAX = 5

/** A longer wait is the caller's to decide: the error says how long. */
const RETRY_AFTER_MAX_MS = 30_000

/** Answers of a gateway, or of what stands before it, that a later try may change (RFC 9110 section 15). */
const PASSING = new Set([408, 429, 502, 503, 504])

/** A batch publishes into so many rooms at a time. */
const ROOMS_MAX = 8

/**
 * @typedef {object} Options
 * @property {string} token one of the gateway's `API_TOKENS`, with the scopes of the calls that are made
 * @property {Partial<Pick<import('./keycast/environment.js').Environment, 'random' | 'setTimeout' | 'clearTimeout'>>} [environment]
 *   timers and chance, for tests of the library itself
 *
 * A message to publish.
 * @typedef {object} Outgoing
 * @property {string} key the room
 * @property {any} data any JSON
 * @property {string} [from] the user whom readers are told
 * @property {string} [messageId] made unless given: the same one is kept once
 *
 * Where a message is kept.
 * @typedef {{ key: string, epoch: string, seq: number, at: number, duplicate?: boolean, messageId: string }} Kept
 *
 * One key's value now, or that it has none.
 * @typedef {{ key: string, value?: any, delete?: true, contentType?: string, order?: number }} Line
 *
 * The outcome for a value: `taken` is false where one of a higher `order` was taken before.
 * @typedef {{ key: string, taken: boolean, version?: string, order?: number }} HandedOver
 *
 * A call of `refresh`, or a part of it.
 * @typedef {{ keys: string[], resolve: () => void, reject: (error: unknown) => void }} Refresh
 */

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
    /** Of `publish` and `publishAll`: those that are not known to be kept, with their ids, to be published again. @type {Outgoing[] | undefined} */
    this.messages = undefined
  }
}

/**
 * @param {string | URL} url of the internal listener of any gateway, such as `http://127.0.0.1:8081`
 * @param {Options} options
 * @throws {TypeError} for a URL that is none
 */
export function createBackend(url, { token, environment }) {
  const base = new URL(url).href.replace(/\/$/, '')
  const {
    random = Math.random,
    setTimeout = globalThis.setTimeout,
    clearTimeout = globalThis.clearTimeout,
  } = environment ?? {}
  /** Refreshes that are collected: those for the same users under the same name. @type {Map<string, { users?: string[], calls: Refresh[], keys: Set<string> }>} */
  const collected = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  /** @type {Set<Promise<unknown>>} */
  const underWay = new Set()
  let isClosed = false

  /** One try. @param {string} method @param {string} path @param {{ headers?: Record<string, string>, body?: any }} request */
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

  /** @param {Parameters<typeof ask>} request */
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

  /** @param {boolean} mayRepeat whether twice is as good as once @param {Parameters<typeof ask>} request */
  async function askUntil(mayRepeat, ...request) {
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

  /** Makes a call, which `close` waits for. @template T @param {() => Promise<T>} make @returns {Promise<T>} */
  async function call(make) {
    if (isClosed) throw new CallError({ code: 'closed', message: 'close() was called' })
    const promise = make()
    follow(promise)
    return await promise
  }

  /** @param {Promise<unknown>} promise */
  function follow(promise) {
    /** @type {Promise<unknown>} */
    const ended = promise.catch(() => {}).then(() => underWay.delete(ended))
    underWay.add(ended)
  }

  /** @param {string} path @param {object} body @returns {Parameters<typeof ask>} */
  const post = (path, body) => [
    'POST',
    path,
    { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
  ]

  /** @param {string[]} keys of one request at most @param {string[] | undefined} users @returns {Promise<void>} */
  function collect(keys, users) {
    const name = JSON.stringify(users)
    let batch = collected.get(name)
    if (batch && batch.keys.size + keys.length > KEYS_MAX) {
      send(name)
      batch = undefined
    }
    if (!batch) {
      batch = { users, calls: [], keys: new Set() }
      collected.set(name, batch)
    }
    for (const key of keys) batch.keys.add(key)
    timer ??= setTimeout(sendAll, COLLECT_MS)
    const { calls } = batch
    return new Promise((resolve, reject) => calls.push({ keys, resolve, reject }))
  }

  /** @param {string} name of what was collected for the same users */
  function send(name) {
    const batch = collected.get(name)
    collected.delete(name)
    if (batch) follow(refreshAll(batch.calls, batch.users))
  }

  function sendAll() {
    clearTimeout(timer)
    timer = undefined
    for (const name of [...collected.keys()]) send(name)
  }

  /**
   * A gateway refuses all keys of a request for one that is wrong: then each half of the calls has a request of its own,
   * so that the wrong one fails alone.
   *
   * @param {Refresh[]} calls @param {string[] | undefined} users @returns {Promise<void>}
   */
  async function refreshAll(calls, users) {
    const keys = [...new Set(calls.flatMap(({ keys }) => keys))]
    try {
      await askUntil(true, ...post('/v1/refresh', { keys, users }))
      for (const { resolve } of calls) resolve()
    } catch (error) {
      if (/** @type {CallError} */ (error).status === 400 && calls.length > 1) {
        const half = calls.length >> 1
        await Promise.all([refreshAll(calls.slice(0, half), users), refreshAll(calls.slice(half), users)])
      } else for (const { reject } of calls) reject(error)
    }
  }

  /** @param {Outgoing & { messageId: string }} message @returns {Promise<Kept>} */
  async function publishOne(message) {
    try {
      return { ...(await askUntil(true, ...post('/v1/publish', message))), messageId: message.messageId }
    } catch (error) {
      throw Object.assign(/** @type {CallError} */ (error), { messages: [message] })
    }
  }

  /** @param {Outgoing[]} messages @returns {Promise<Kept[]>} */
  async function publishMany(messages) {
    /** @type {Kept[]} */
    const kept = []
    /** @type {Map<string, { index: number, message: Outgoing & { messageId: string } }[]>} */
    const rooms = new Map()
    for (const [index, { messageId = randomText(), ...message }] of messages.entries()) {
      const room = rooms.get(message.key) ?? []
      rooms.set(message.key, room)
      room.push({ index, message: { ...message, messageId } })
    }
    /** @type {CallError | undefined} */
    let failure
    const waiting = rooms.values()
    const publishRooms = async () => {
      for (const room of waiting) {
        try {
          for (const { index, message } of room) kept[index] = await publishOne(message)
        } catch (error) {
          // The room's next message would come before the one that failed.
          failure ??= /** @type {CallError} */ (error)
        }
      }
    }
    await Promise.all(Array.from({ length: ROOMS_MAX }, publishRooms))
    if (!failure) return kept
    const left = [...rooms.values()].flat().filter(({ index }) => !kept[index])
    throw Object.assign(failure, { messages: left.sort((a, b) => a.index - b.index).map(({ message }) => message) })
  }

  /**
   * @param {string} method @param {string} key @param {number | undefined} order
   * @param {string} [contentType] @param {any} [body]
   * @returns {Promise<HandedOver>}
   */
  function handOver(method, key, order, contentType, body) {
    /** @type {Record<string, string>} */
    const headers = {}
    if (contentType) headers['content-type'] = contentType
    if (order !== undefined) headers['keycast-order'] = String(order)
    const path = `/v1/values/${encodeURIComponent(key)}`
    return call(() => askUntil(order !== undefined, method, path, { headers, body }))
  }

  return {
    /**
     * Has keys fetched now. Keys named within 30 ms leave in one request.
     *
     * @param {string | Iterable<string>} keys
     * @param {Iterable<string>} [users] of keys that have a value per user: theirs alone
     * @returns {Promise<void>} ends when every node was told
     */
    refresh(keys, users) {
      const parts = partsOf(typeof keys === 'string' ? [keys] : keys, KEYS_MAX)
      const groups = users ? partsOf([...users].sort(), USERS_MAX) : [undefined]
      return call(async () => {
        await Promise.all(groups.flatMap(group => parts.map(part => collect(part, group))))
      })
    },

    /**
     * Publishes into a room. A try that got no answer is repeated with the same id, which is kept once.
     *
     * @param {string} key @param {any} data any JSON
     * @param {Pick<Outgoing, 'from' | 'messageId'>} [options]
     */
    publish: (key, data, { from, messageId = randomText() } = {}) =>
      call(() => publishOne({ key, data, from, messageId })),

    /**
     * Publishes many: those of one room one after the other, in the order given.
     *
     * @param {Outgoing[]} messages
     */
    publishAll: messages => call(() => publishMany(messages)),

    /**
     * Hands over a key's value. Only with an `order` is it repeated: else it could come after a newer one.
     *
     * @param {string} key @param {any} value any JSON; with a `contentType` a text or bytes, sent as they are
     * @param {{ contentType?: string, order?: number }} [options]
     */
    put: (key, value, { contentType, order } = {}) =>
      contentType
        ? handOver('PUT', key, order, contentType, value)
        : handOver('PUT', key, order, 'application/json', JSON.stringify(value)),

    /** Says that a key has no value now. @param {string} key @param {{ order?: number }} [options] */
    delete: (key, { order } = {}) => handOver('DELETE', key, order),

    /**
     * `put` and `delete` for many keys, 10,000 at most. Repeated only where each line has an `order`.
     *
     * @param {Line[]} lines
     * @returns {Promise<{ taken: number, older: { line: number, order: number }[] }>}
     */
    putAll: lines =>
      call(() =>
        askUntil(
          lines.every(({ order }) => order !== undefined),
          'POST',
          '/v1/values',
          { body: lines.map(line => `${JSON.stringify(line)}\n`).join('') },
        ),
      ),

    /**
     * Signs a user out, or refuses one token.
     *
     * @param {{ sub: string, before?: number } | { jti: string }} whom `before` in Unix seconds
     * @returns {Promise<{ sub?: string, before?: number, jti?: string, sessionsEnded: number, reach: string }>}
     */
    revoke: whom => call(() => askUntil(true, ...post('/v1/revoke', whom))),

    /**
     * Says who may use a key, and by which rule.
     *
     * @param {{ key: string, token?: string, sub?: string, keys?: object }} question
     * @returns {Promise<Record<string, any>>}
     */
    access: question => call(() => askUntil(true, ...post('/v1/access', question))),

    /**
     * Says that the backend decides otherwise about a user, a key or both: it is asked again.
     *
     * @param {{ user?: string, key?: string }} about
     * @returns {Promise<{ user?: string, key?: string, decisions: number, reach: string }>}
     */
    askAgain: about => call(() => askUntil(true, ...post('/v1/access', { ask: about }))),

    /** Sends what was collected, and ends when each call has ended. */
    async close() {
      isClosed = true
      sendAll()
      await Promise.all(underWay)
    },
  }
}

/**
 * Whether a call to this backend (`notify` in keycast.yaml) is Keycast's, and of now.
 *
 * @param {string | string[] | null | undefined} signature the header `Keycast-Signature`
 * @param {string | Uint8Array} body as it came, before anything parsed it
 * @param {string | string[]} secrets any of them may have signed
 * @param {{ maxAgeSeconds?: number, now?: () => number }} [options] `now`: milliseconds since 1970
 */
export function isFromKeycast(
  signature,
  body,
  secrets,
  { maxAgeSeconds = SIGNED_SECONDS_MAX, now = () => Date.now() } = {},
) {
  const [first, ...signed] = String(signature ?? '').split(',')
  const [, seconds] = /^t=(\d{1,12})$/.exec(first) ?? []
  if (seconds === undefined || Math.abs(now() / 1_000 - Number(seconds)) > maxAgeSeconds) return false
  return [secrets].flat().some(secret => {
    const expected = createHmac('sha256', secret).update(`${seconds}.`).update(body).digest()
    return signed.some(each => {
      const given = /^v1=([0-9a-f]{64})$/.exec(each)
      return given !== null && timingSafeEqual(Buffer.from(given[1], 'hex'), expected)
    })
  })
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

/** @param {Iterable<string>} names @param {number} max @returns {string[][]} each name once, so many in a part */
function partsOf(names, max) {
  const all = [...new Set(names)]
  return Array.from({ length: Math.ceil(all.length / max) }, (_, part) => all.slice(part * max, (part + 1) * max))
}
