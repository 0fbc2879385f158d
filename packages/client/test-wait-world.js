// A world of test-support.js where neither WebSockets nor event streams get through: the same sockets, over requests that
// wait. The transcript's gateway says a message by answering the request that asks for it.
import { createFallback } from './keycast/fallback/fallback.js'
import { BlockedWebSocket } from './test-stream-world.js'
import { createWorld } from './test-support.js'

/** They say these themselves. */
const ownMessages = ['subscribed', 'ok']

/** For which a fallback waits for a way to speak, and for an answer. */
const patience = [4_000, 150_000]

/** Between two requests for a key. */
const REST_MS = 1_000

/** A status of errors. Their code is in the body. */
const FAILED = 503

export function createWaitWorld() {
  const world = createWorld()
  const { deeds, environment } = world
  /** The requests without an answer, in their order. @type {Asked[]} */
  let asked = []
  /** The `get` being sent, if one is. @type {unknown} */
  let getting
  const gets = new Set()
  /** The newest connection. */
  let newest = { isOver: false }

  /**
   * @typedef {object} Asked
   * @property {string | undefined} key none: whether gateways can be reached
   * @property {unknown} id of a `get`
   * @property {(response: any) => void} answer
   * @property {(error: Error) => void} fail
   */

  /** @param {any} address @param {RequestInit} [init] @returns {Promise<any>} */
  function fetch(address, { signal } = {}) {
    const { pathname } = new URL(address)
    if (pathname === '/v1/stream') return Promise.resolve(answerOf(404, { code: 'unknown_path' }))
    const [, path] = /^\/v1\/(?:values|wait)\/(.*)$/.exec(pathname) ?? []
    return new Promise((answer, fail) => {
      const one = { key: path && decodeURIComponent(path), id: getting, answer, fail }
      asked.push(one)
      signal?.addEventListener('abort', () => {
        asked = asked.filter(each => each !== one)
        fail(new Error('aborted'))
      })
    })
  }

  /** @param {number} status @param {object} head @param {Uint8Array} [bytes] */
  function answerOf(status, head, bytes = Buffer.from(JSON.stringify(head))) {
    const { version, contentType, order = 0 } = /** @type {any} */ (head)
    const headers = new Map([
      ['etag', version && `"${version}"`],
      ['content-type', contentType ?? 'text/javascript'],
      ['keycast-cursor', status < 400 ? `${order}.1` : undefined],
    ])
    return {
      ok: status < 300,
      status,
      headers: { get: (/** @type {string} */ name) => headers.get(name) ?? null },
      text: async () => String(bytes),
      arrayBuffer: async () => Uint8Array.from(bytes).buffer,
    }
  }

  const Fallback = createFallback({
    WebSocket: BlockedWebSocket,
    fetch,
    // The client's own patience is what transcripts are about.
    setTimeout(task, ms) {
      if (ms === REST_MS) return queueMicrotask(task)
      return patience.includes(ms) ? undefined : environment.setTimeout(task, ms)
    },
    clearTimeout: environment.clearTimeout,
  })

  class DialledSocket {
    /** @param {string} url @param {string} protocol */
    constructor(url, protocol) {
      deeds.push({ dials: url, offers: protocol })
      const socket = new Fallback(url, protocol)
      const own = { isOver: false }
      newest = own
      const [close, send] = [socket.close.bind(socket), socket.send.bind(socket)]
      socket.close = code => {
        if (!own.isOver) deeds.push({ hangs: true, code })
        own.isOver = true
        close(code)
      }
      socket.send = text => {
        // The order of an answer that has none in the transcript.
        const message = JSON.parse(text, (name, of) => (name === 'order' && of === 0 ? undefined : of))
        deeds.push({ out: message })
        getting = message.type === 'get' ? message.id : undefined
        gets.add(getting)
        send(text)
        getting = undefined
      }
      // biome-ignore lint/correctness/noConstructorReturn: the socket itself, with ears
      return socket
    }
  }

  /** Answers the request for a key, or that of a `get`. @param {any} message @param {any} response */
  function answer({ key, id }, response) {
    const one = asked.find(each => each.key === key && each.id === (gets.has(id) ? id : undefined))
    // Nobody asks: such a message does not come.
    if (!one) return
    asked = asked.filter(each => each !== one)
    one.answer(response)
  }

  const socket = {
    onmessage() {
      throw new Error('over requests that wait nothing comes unasked')
    },
    /** @param {any} message @param {Uint8Array} [bytes] */
    say(message, bytes) {
      const { type } = message
      if (ownMessages.includes(type)) return
      if (type === 'welcome' || type === 'pong') return answer({}, answerOf(200, {}))
      if (type === 'value') return answer(message, answerOf(200, message, bytes))
      if (type === 'current') return answer(message, answerOf(304, message))
      if (type === 'error') return answer(message, answerOf(FAILED, message))
      throw new Error(`requests that wait hear of no ${type}`)
    },
    lose() {
      newest.isOver = true
      for (const { fail } of asked.splice(0)) fail(new TypeError('no connection'))
    },
  }

  return {
    ...world,
    environment: { ...environment, WebSocket: DialledSocket },
    socket: () => socket,
  }
}
