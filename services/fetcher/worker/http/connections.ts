// The connections to backends: kept open and used again, for as long as each backend says it keeps them. They are
// undici's, Node's own HTTP client without what makes `node:http` cost twice as much: docs/decisions, 14.
import { createRequire } from 'node:module'
import { createLookups } from './lookups.ts'

const require = createRequire(import.meta.url)
// Not from the package's index, which also loads fetch, WebSockets and caches: 100 ms of CPU and 9 MB for each worker.
const Client = /** @type {typeof import('undici').Client} */ (require('undici/lib/dispatcher/client.js'))
const buildConnector = /** @type {typeof import('undici').buildConnector} */ (require('undici/lib/core/connect.js'))

/**
 * @typedef {import('./exchange.ts').Exchange} Exchange
 * @typedef {import('./exchange.ts').ExchangeError} ExchangeError
 * @typedef {import('./exchange.ts').Response} Response
 * @typedef {ReturnType<typeof createConnections>} Connections
 */

/**
 * A request on a connection that the server is just giving up fails. So an idle one is closed from this side first:
 * before the 2 s of gunicorn, the shortest in common use, and not on a whole second, where refreshes and servers'
 * timeouts meet.
 */
const IDLE_MS = 1_500

/** A server that says how long it keeps an idle connection (`Keep-Alive: timeout=5`) is believed, less this. */
const ANNOUNCED_LESS_MS = 1_000

/** Longer is of no use: a connection that idles for so long carries a request a minute. */
const IDLE_MS_MAX = 60_000

/** When TCP's own probes begin. */
const PROBE_MS = 60_000

const clientOptions = {
  keepAliveTimeout: IDLE_MS,
  keepAliveTimeoutThreshold: ANNOUNCED_LESS_MS,
  keepAliveMaxTimeout: IDLE_MS_MAX,
  // An exchange has a deadline of its own, over all of it.
  headersTimeout: 0,
  bodyTimeout: 0,
}

/**
 * Connections are as many as exchanges under way at one time, and the leases bound those. Nothing waits here for a
 * connection: it would use up its deadline, behind others that are still connecting.
 *
 * @param {object} [options]
 * @param {import('./lookups.ts').Lookup} [options.lookup]
 */
export function createConnections({ lookup = createLookups() } = {}) {
  // One for all, as it keeps the TLS sessions. No time-out: an exchange that meets its deadline ends the connecting.
  const connector = buildConnector({ allowH2: false, timeout: 0, keepAliveInitialDelay: PROBE_MS, lookup })
  /** By origin, and the one used last at the end: the others may be closed. @type {Map<string, Connection[]>} */
  const idle = new Map()
  /** @type {Set<Connection>} */
  const all = new Set()
  /** Since sockets were read last. @type {Connection[]} */
  let released = []

  /** Holds one connection of TCP, and opens another where the server has closed that. */
  class Connection {
    /** @param {string} origin @param {Connection[]} idlers of that origin and Host */
    constructor(origin, idlers) {
      this.idlers = idlers
      /** @type {import('node:net').Socket | undefined} */
      this.socket = undefined
      /** Its server may have closed it, and nobody has looked yet. */
      this.isUnproven = false
      /** Waits for that look. @type {{ exchange: Exchange, path: string } | undefined} */
      this.next = undefined
      this.client = new Client(origin, {
        ...clientOptions,
        connect: (options, callback) => {
          this.socket = /** @type {import('node:net').Socket} */ (/** @type {unknown} */ (connector(options, callback)))
        },
      })
      this.client.on('disconnect', () => this.#disconnected())
      all.add(this)
    }

    /** @param {Exchange} exchange @param {string} path */
    carry(exchange, path) {
      if (this.isUnproven) this.next = { exchange, path }
      else this.#dispatch(exchange, path)
    }

    /** @param {Exchange} exchange @param {string} path */
    #dispatch(exchange, path) {
      const { method, headers } = exchange
      // Without `reset` undici closes a connection after every HEAD: the exchange does where it has to.
      this.client.dispatch({ path, method, headers, reset: false }, exchange)
    }

    /** A body without a declared length ends with its connection: undici takes a reset for such an end, too. */
    get isBroken() {
      return Boolean(this.socket?.errored)
    }

    /**
     * Gives the connection to the next exchange. A server may close it together with its response and not say so (RFC 9112
     * section 9.5), and the next request would be lost. So that is sent only when sockets were read once more: it is given
     * to undici when this turn of the event loop ends, and undici itself keeps it until the end of the next one.
     */
    release() {
      this.isUnproven = true
      this.idlers.push(this)
      if (released.push(this) === 1) setImmediate(proveReleased)
    }

    /** If the server has closed the connection, undici opens another for the exchange that waits. */
    prove() {
      this.isUnproven = false
      if (!this.next) return
      const { exchange, path } = this.next
      this.next = undefined
      this.#dispatch(exchange, path)
    }

    /** Closes the connection of an exchange that failed: what comes over it later belongs to that one. */
    destroy() {
      all.delete(this)
      this.next = undefined
      this.client.destroy(null, () => {})
      this.socket?.destroy() // the client does not end what is still connecting
    }

    #disconnected() {
      const at = this.idlers.indexOf(this)
      if (at === -1) return // in use: its exchange fails, or undici connects anew for it
      this.idlers.splice(at, 1)
      all.delete(this)
    }
  }

  function proveReleased() {
    const proven = released
    released = []
    for (const connection of proven) connection.prove()
  }

  /** @param {string} origin @param {string | undefined} host where requests name another than the origin's */
  function connectionTo(origin, host) {
    // By its Host, too: it names the certificate, and undici would connect anew wherever it changes.
    const name = host === undefined ? origin : `${origin} ${host}`
    let idlers = idle.get(name)
    if (!idlers) {
      idlers = []
      idle.set(name, idlers)
    }
    return idlers.pop() ?? new Connection(origin, idlers)
  }

  return {
    /**
     * @param {Exchange} exchange
     * @returns {Promise<Response>} rejects with an {@link ExchangeError}
     */
    send(exchange) {
      const { url, headers } = exchange
      const pathAt = url.indexOf('/', 'https://'.length)
      return new Promise((resolve, reject) => {
        const connection = connectionTo(url.slice(0, pathAt), headers.host)
        exchange.begin(connection, resolve, reject)
        connection.carry(exchange, url.slice(pathAt))
      })
    },

    /** Ends all connections. Exchanges under way fail. */
    close() {
      for (const connection of all) connection.destroy()
    },
  }
}
