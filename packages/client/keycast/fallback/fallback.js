// The entry for networks that block WebSockets: a class with a WebSocket's face, for `connect(url, { WebSocket:
// FallbackSocket })`. It takes a WebSocket if that speaks, else an event stream with requests beside it, else requests
// that wait. The client above it knows of none of this.
import { overEventStream } from './event-stream.js'
import { overWaits } from './waits.js'
import { overWebSocket } from './web-socket.js'

/**
 * A way to a gateway. It calls `hear` with each message, as a WebSocket would give it, and `end`. Nothing counts that it
 * calls after its first `end`, or after it was closed.
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
 */

/** In the order in which they are tried. @type {((surroundings: Surroundings) => Way)[]} */
const ways = [overWebSocket, overEventStream, overWaits]

/** A way that says nothing in this time is blocked or held back. All but the last fit into the client's own patience. */
const SILENT_MS = 4_000

/**
 * While a worse way serves, the better ones are tried again after this time, then ever more rarely. They may have failed
 * because all was away for a moment, and the network may be another by now.
 */
const AGAIN_MS = 5_000
const AGAIN_MS_MAX = 600_000

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
  } = options
  /** The way that spoke last, by origin. @type {Map<string, number>} */
  const known = new Map()

  /**
   * Tries a way: it is heard before long, or it ends.
   *
   * @param {number} index of the way
   * @param {{ url: string, protocol: string }} target
   * @param {(data: string | ArrayBuffer) => void} hear
   * @param {Surroundings['end']} onEnd not called of one that was closed
   * @returns {Way}
   */
  function attempt(index, target, hear, onEnd) {
    let isOver = false
    function stop() {
      isOver = true
      clearTimeout(timer)
    }
    /** @type {Surroundings['end']} */
    function end(...why) {
      if (isOver) return
      stop()
      onEnd(...why)
    }
    const way = ways[index]({
      ...target,
      WebSocket,
      // As a WebSocket: a token must not go to wherever a redirect leads, nor a value come from there.
      fetch: (address, init) => fetch(address, { ...init, redirect: 'error' }),
      setTimeout,
      clearTimeout,
      end,
      hear(data) {
        if (isOver) return
        clearTimeout(timer)
        hear(data)
      },
    })
    const timer = setTimeout(() => {
      way.close()
      end(LOST, 'no answer')
    }, SILENT_MS)
    return {
      send: way.send,
      close(code) {
        if (isOver) return
        stop()
        way.close(code)
      },
    }
  }

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
    /** A better one that is tried meanwhile. @type {Way | undefined} */
    #better
    /** Until the next is. @type {any} */
    #timer
    /** @type {string} */
    #origin
    /** @type {{ url: string, protocol: string }} */
    #target

    /** @param {string | URL} url @param {string} [protocol] */
    constructor(url, protocol = '') {
      // As a WebSocket reads it: relative to the page.
      const { href, origin } = new URL(url, world.location?.href)
      this.#origin = origin
      this.#target = { url: href.replace(/^http/, 'ws'), protocol }
      this.#try(known.get(origin) ?? 0)
    }

    /** @param {number} index of a way */
    #try(index) {
      let isHeard = false
      this.#way = attempt(
        index,
        this.#target,
        data => {
          if (!isHeard) this.#served(index)
          isHeard = true
          this.onmessage?.({ data })
        },
        (code, reason, isRefused) => {
          // A gateway that says why it closes was reached: another way would meet the same.
          if (!isHeard && code === LOST && !isRefused && ways[index + 1]) return this.#try(index + 1)
          if (!isHeard || isRefused) known.delete(this.#origin)
          this.close()
          this.onclose?.({ code, reason })
        },
      )
    }

    /** @param {number} index of the way that speaks */
    #served(index) {
      known.set(this.#origin, index)
      let waitMs = AGAIN_MS
      /** @param {number} better */
      const look = better => {
        if (better === index) return wait()
        this.#better = attempt(
          better,
          this.#target,
          () => {
            known.set(this.#origin, better)
            this.close()
            // A page that is hidden would not come back before it is seen: it runs no timer.
            this.onclose?.({ code: LOST, reason: 'there is a better way', atOnce: true })
          },
          () => look(better + 1),
        )
      }
      const wait = () => {
        this.#timer = setTimeout(() => look(0), waitMs)
        waitMs = Math.min(2 * waitMs, AGAIN_MS_MAX)
      }
      if (index > 0) wait()
    }

    /** @param {string} text */
    send(text) {
      this.#way?.send(text)
    }

    /** @param {number} [code] */
    close(code) {
      clearTimeout(this.#timer)
      this.#better?.close()
      this.#way?.close(code)
    }
  }
}

/** For a page, and for Node from 22 on: `connect(url, { WebSocket: FallbackSocket })`. */
export const FallbackSocket = createFallback()
