// Stand-ins for what the parts of a gateway meet: a backbone that records, connections without sockets, namespaces.
import { versionOf } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/backbone').Backbone} Backbone
 * @typedef {import('@keycast/backbone').BackboneEvents} BackboneEvents
 * @typedef {import('@keycast/backbone').Format} Format
 * @typedef {import('@keycast/service').Namespace} Namespace
 * @typedef {import('@keycast/service').Namespaces} Namespaces
 */

/**
 * A backbone that asks nobody: the test reads what was asked and answers.
 *
 * @param {{ nodesAlive?: number }} [options]
 */
export function createFakeBackbone({ nodesAlive = 1 } = {}) {
  /** Every call, as in `watch tick:1`. @type {string[]} */
  const calls = []
  /** @type {Set<string>} */
  const watched = new Set()
  /** @type {BackboneEvents} */
  let events = { held: () => undefined, onAnswer() {} }
  const fake = {
    calls,
    watched,
    nodesAlive,
    /** @param {BackboneEvents} given */
    connect(given) {
      events = given
      return backbone
    },
    /** What the gateway says it holds. @param {string} key */
    held: key => events.held(key),
    /**
     * @param {string} key
     * @param {string | Buffer} body
     * @param {Partial<import('@keycast/backbone').Answer> & { format?: Format, contentType?: string }} [rest]
     * @returns {string} its version
     */
    value(key, body, rest) {
      const bytes = Buffer.from(body)
      const version = versionOf(bytes)
      events.onAnswer(
        /** @type {any} */ ({
          type: 'value',
          key,
          version,
          body: bytes,
          ...good,
          contentType: 'application/json',
          format: 'json',
          ...rest,
        }),
      )
      return version
    },
    /** @param {string} key @param {string} version @param {object} [rest] */
    current(key, version, rest) {
      events.onAnswer({ type: 'current', key, version, ...good, ...rest })
    },
    /** @param {string} key @param {import('@keycast/protocol').ErrorCode} code @param {object} [rest] */
    failed(key, code, rest) {
      events.onAnswer({ type: 'failed', key, code, message: `it was ${code}`, ageMs: 0, retryAfterMs: 500, ...rest })
    },
  }
  const good = { ageMs: 0, maxAgeMs: 1_000, store: true }
  /** @type {Backbone} */
  const backbone = {
    async start() {},
    async stop() {},
    watch(key) {
      calls.push(`watch ${key}`)
      watched.add(key)
    },
    unwatch(key) {
      calls.push(`unwatch ${key}`)
      watched.delete(key)
    },
    fetch: key => void calls.push(`fetch ${key}`),
    cancel: key => void calls.push(`cancel ${key}`),
    async refresh(keys) {
      calls.push(`refresh ${keys.join(' ')}`)
    },
    ownerOf: () => ({ node: fake.nodesAlive > 0 ? '127.0.0.1:7001:7002' : undefined, alive: fake.nodesAlive > 0 }),
    nodesAlive: () => fake.nodesAlive,
  }
  return fake
}

/**
 * @param {Record<string, Partial<Namespace>>} given by name
 * @returns {Namespaces}
 */
export function createNamespaces(given = { tick: {} }) {
  const namespaces = new Map(
    Object.entries(given).map(([name, rest]) => [
      name,
      {
        name,
        source: /** @type {const} */ ('http'),
        urlFor: (/** @type {string} */ id) => `http://127.0.0.1/${id}`,
        origin: 'http://127.0.0.1',
        headers: {},
        maxAgeMs: 1_000,
        refreshMs: 1_000,
        timeoutMs: 2_000,
        bytesMax: 4 * 1024 ** 2,
        ...rest,
      },
    ]),
  )
  return { get: name => namespaces.get(name), names: [...namespaces.keys()] }
}
