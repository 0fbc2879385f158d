// For backends: calls to a gateway's internal listener (docs/http-api.md), repeated where that is safe, and the check of
// Keycast's calls to a backend. For Node: no page loads it, for no page may have the token.
import { CallError, createGateway } from './backend/gateway.js'
import { createRefreshes } from './backend/refreshes.js'
import { randomText } from './keycast/random.js'

export { isFromKeycast } from './backend/signature.js'
export { CallError }

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
 */

/**
 * @param {string | URL} url of the internal listener of any gateway, such as `http://127.0.0.1:8081`
 * @param {Options} options
 * @throws {TypeError} for a URL that is none
 */
export function createBackend(url, { token, environment }) {
  const { setTimeout, clearTimeout } = globalThis
  const world = { random: Math.random, setTimeout, clearTimeout, ...environment }
  const gateway = createGateway(url, token, world)
  const refreshes = createRefreshes({ gateway, follow, environment: world })
  /** @type {Set<Promise<unknown>>} */
  const underWay = new Set()
  let isClosed = false

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

  /** @param {Outgoing & { messageId: string }} message @returns {Promise<Kept>} */
  async function publishOne(message) {
    try {
      return { ...(await gateway.post('/v1/publish', message)), messageId: message.messageId }
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
    return call(() => gateway.call(order !== undefined, method, path, { headers, body }))
  }

  return {
    /**
     * Has keys fetched now. Keys named within 30 ms leave in one request.
     *
     * @param {string | Iterable<string>} keys
     * @param {Iterable<string>} [users] of keys that have a value per user: theirs alone
     * @returns {Promise<void>} ends when every node was told
     */
    refresh: (keys, users) => call(() => refreshes.ask(keys, users)),

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
        gateway.call(
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
    revoke: whom => call(() => gateway.post('/v1/revoke', whom)),

    /**
     * Says who may use a key, and by which rule.
     *
     * @param {{ key: string, token?: string, sub?: string, keys?: object }} question
     * @returns {Promise<Record<string, any>>}
     */
    access: question => call(() => gateway.post('/v1/access', question)),

    /**
     * Says that the backend decides otherwise about a user, a key or both: it is asked again.
     *
     * @param {{ user?: string, key?: string }} about
     * @returns {Promise<{ user?: string, key?: string, decisions: number, reach: string }>}
     */
    askAgain: about => call(() => gateway.post('/v1/access', { ask: about })),

    /** Sends what was collected, and ends when each call has ended. */
    async close() {
      isClosed = true
      refreshes.sendAll()
      await Promise.all(underWay)
    },
  }
}
