// The connections to backends: kept open and used again, for as long as each backend says it keeps them. They are
// undici's, Node's own HTTP client without what makes `node:http` cost twice as much: docs/decisions, 14.
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type { World } from '@keycast/service'
import type { Exchange, Response } from './exchange.ts'
import { createLookups, type Lookup } from './lookups.ts'

const require = createRequire(import.meta.url)
// Once a response's header is too long undici makes an error, with its stack, for each further field that it has read with
// it. Ten thousand short ones take a tenth of a second, and a backend that sends such to many requests at once keeps the
// responses of others waiting until their worker is killed. So there is one, made before the client takes its constructor.
const errors = require('undici/lib/core/errors.js') as Record<string, new (message: string) => Error>
const overflow = new errors.HeadersOverflowError('the header is too long')
errors.HeadersOverflowError = class {
  constructor() {
    // biome-ignore lint/correctness/noConstructorReturn: that is what it is for
    return overflow
  }
} as never
// Not from the package's index, which also loads fetch, WebSockets and caches: 100 ms of CPU and 9 MB for each worker.
const Client = require('undici/lib/dispatcher/client.js') as typeof import('undici').Client
const buildConnector = require('undici/lib/core/connect.js') as typeof import('undici').buildConnector

export type Connections = ReturnType<typeof createConnections>

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

interface Deps {
  lookup?: Lookup
  after: World['after']
  turn: World['turn']
  hostNow: World['hostNow']
}

/**
 * Connections are as many as exchanges under way at one time, and the leases bound those. Nothing waits here for a
 * connection: it would use up its deadline, behind others that are still connecting.
 */
export function createConnections({ lookup = createLookups(), after, turn, hostNow }: Deps) {
  // One for all, as it keeps the TLS sessions. No time-out: an exchange that meets its deadline ends the connecting.
  const connector = buildConnector({ allowH2: false, timeout: 0, keepAliveInitialDelay: PROBE_MS, lookup })
  /** By origin, and the one used last at the end: the others may be closed. */
  const idle = new Map<string, Connection[]>()
  const all = new Set<Connection>()
  /** Since sockets were read last. */
  let released: Connection[] = []

  /** Holds one connection of TCP, and opens another where the server has closed that. */
  class Connection {
    readonly idlers: Connection[]
    socket: Socket | undefined
    isUnproven
    next: { exchange: Exchange; path: string } | undefined
    readonly client

    /** @param idlers of that origin and Host */
    constructor(origin: string, idlers: Connection[]) {
      this.idlers = idlers
      this.socket = undefined
      /** Its server may have closed it, and nobody has looked yet. */
      this.isUnproven = false
      /** Waits for that look. */
      this.next = undefined
      this.client = new Client(origin, {
        ...clientOptions,
        connect: (options, callback) => {
          this.socket = connector(options, callback) as unknown as Socket
        },
      })
      this.client.on('disconnect', () => this.#disconnected())
      all.add(this)
    }

    carry(exchange: Exchange, path: string) {
      if (this.isUnproven) this.next = { exchange, path }
      else this.#dispatch(exchange, path)
    }

    #dispatch(exchange: Exchange, path: string) {
      const { method, headers, body } = exchange
      // Without `reset` undici closes a connection after every HEAD: the exchange does where it has to.
      this.client.dispatch({ path, method, headers, body, reset: false }, exchange)
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
      if (released.push(this) === 1) turn(proveReleased)
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

  /** @param host where requests name another than the origin's */
  function connectionTo(origin: string, host: string | undefined) {
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
    /** @returns rejects with an {@link ExchangeError} */
    send(exchange: Exchange): Promise<Response> {
      const { url, headers } = exchange
      const pathAt = url.indexOf('/', 'https://'.length)
      return new Promise((resolve, reject) => {
        const connection = connectionTo(url.slice(0, pathAt), headers.host)
        // Over the whole exchange, and not from byte to byte: a body may drip. Timers run before sockets are read: a process
        // that stood still first reads what came meanwhile.
        const cancelDeadline = after(exchange.timeoutMs, () => turn(() => exchange.fail('deadline')))
        exchange.begin(connection, resolve, reject, cancelDeadline, hostNow)
        connection.carry(exchange, url.slice(pathAt))
      })
    },

    /** Ends all connections. Exchanges under way fail. */
    close() {
      for (const connection of all) connection.destroy()
    },
  }
}
