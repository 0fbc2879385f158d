// The entry for networks that block WebSockets: a class with a WebSocket's face, for `connect(url, { WebSocket:
// FallbackSocket })`. It takes a WebSocket if that speaks, else an event stream with requests beside it, else requests
// that wait. The client above it knows of none of this.
import { overEventStream } from './event-stream.js'
import { overWaits } from './waits.js'
import { overWebSocket } from './web-socket.js'

/**
 * A way to a gateway. It calls `hear` with each message, as a WebSocket would give it, and `end` once, unless it was
 * closed before.
 *
 * @typedef {{ send: (text: string) => void, close: (code?: number) => void }} Way
 * @typedef {object} Surroundings
 * @property {string} url of the gateway's WebSocket
 * @property {string} protocol
 * @property {typeof globalThis.fetch} fetch
 * @property {(task: () => void, ms: number) => any} setTimeout
 * @property {(timer: any) => void} clearTimeout
 * @property {(new (url: string, protocol: string) => import('../environment.js').Socket) | undefined} WebSocket
 * @property {(data: string | ArrayBuffer) => void} hear
 * @property {(code: number, reason: string, isRefused?: boolean) => void} end `isRefused`: by whoever serves gateways,
 *   who would refuse another way as well; or the way cannot serve this client, so that it is not kept in memory
 */

/**
 * @typedef {object} FallbackOptions each is the one of the page, unless given
 * @property {Surroundings['WebSocket']} [WebSocket]
 * @property {Surroundings['fetch']} [fetch]
 * @property {(task: () => void, ms: number) => any} [setTimeout]
 * @property {(timer: any) => void} [clearTimeout]
 * @property {() => number} [now] monotonic, in milliseconds
 */

/** In the order in which they are tried. @type {((surroundings: Surroundings) => Way)[]} */
const ways = [overWebSocket, overEventStream, overWaits]

/** A way that says nothing in this time is blocked or held back. All but the last fit into the client's own patience. */
const SILENT_MS = 4_000

/** From then on a new connection tries a WebSocket again: the network may be another. */
const AGAIN_MS = 600_000

/** A WebSocket's code for a connection that broke, or never was. */
const LOST = 1006

/**
 * Makes a class for `connect`'s `WebSocket`. {@link FallbackSocket} is the one for a page.
 *
 * @param {FallbackOptions} [options]
 * @returns {new (url: string | URL, protocol?: string) => import('../environment.js').Socket}
 */
export function createFallback(options = {}) {
  const world = /** @type {any} */ (globalThis)
  const {
    WebSocket = world.WebSocket,
    fetch = (/** @type {any[]} */ ...of) => world.fetch(...of),
    setTimeout = world.setTimeout.bind(world),
    clearTimeout = world.clearTimeout.bind(world),
    now = () => performance.now(),
  } = options
  /** The way that spoke last where WebSockets did not, by origin. @type {Map<string, { index: number, untilMs: number }>} */
  const known = new Map()

  return class FallbackSocket {
    binaryType = 'arraybuffer'
    /** @type {((event: any) => void) | null} */
    onmessage = null
    /** @type {((event: any) => void) | null} */
    onclose = null
    /** @type {((event: any) => void) | null} */
    onerror = null
    /** @type {Way | undefined} */
    #way
    /** @type {any} */
    #timer
    #isOver = false

    /** @param {string | URL} url @param {string} [protocol] */
    constructor(url, protocol = '') {
      // As a WebSocket reads it: relative to the page.
      const { href, origin } = new URL(url, world.location?.href)
      if (now() >= (known.get(origin)?.untilMs ?? 0)) known.delete(origin)
      this.#try(known.get(origin)?.index ?? 0, { url: href.replace(/^http/, 'ws'), origin, protocol })
    }

    /** @param {number} index of a way @param {{ url: string, origin: string, protocol: string }} target */
    #try(index, target) {
      let isHeard = false
      let isGone = false
      /** @param {number} code @param {string} reason @param {boolean} [isRefused] */
      const end = (code, reason, isRefused) => {
        if (isGone || this.#isOver) return
        isGone = true
        clearTimeout(this.#timer)
        // A gateway that says why it closes was reached: another way would meet the same.
        if (!isHeard && code === LOST && !isRefused && ways[index + 1]) return this.#try(index + 1, target)
        if (!isHeard || isRefused) known.delete(target.origin)
        this.#isOver = true
        this.onclose?.({ code, reason })
      }
      this.#timer = setTimeout(() => {
        this.#way?.close()
        end(LOST, 'no answer')
      }, SILENT_MS)
      this.#way = ways[index]({
        ...target,
        WebSocket,
        // As a WebSocket: a token must not go to wherever a redirect leads, nor a value come from there.
        fetch: (address, init) => fetch(address, { ...init, redirect: 'error' }),
        setTimeout,
        clearTimeout,
        end,
        hear: data => {
          if (isGone || this.#isOver) return
          if (!isHeard) {
            isHeard = true
            clearTimeout(this.#timer)
            if (index === 0) known.delete(target.origin)
            else if (known.get(target.origin)?.index !== index) {
              known.set(target.origin, { index, untilMs: now() + AGAIN_MS })
            }
          }
          this.onmessage?.({ data })
        },
      })
    }

    /** @param {string} text */
    send(text) {
      this.#way?.send(text)
    }

    /** @param {number} [code] */
    close(code) {
      if (this.#isOver) return
      this.#isOver = true
      clearTimeout(this.#timer)
      this.#way?.close(code)
    }
  }
}

/** For a page, and for Node from 22 on: `connect(url, { WebSocket: FallbackSocket })`. */
export const FallbackSocket = createFallback()
