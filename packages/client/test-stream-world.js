// A world of test-support.js whose WebSockets are blocked: the same sockets, over a gateway's event stream.
import { createFallback } from './keycast/fallback/fallback.js'
import { createWorld } from './test-support.js'

/** A WebSocket where nothing lets it through. */
export class BlockedWebSocket {
  binaryType = ''
  /** @type {((event: any) => void) | null} */
  onmessage = null
  /** @type {((event: any) => void) | null} */
  onclose = null
  /** @type {((event: any) => void) | null} */
  onerror = null
  constructor() {
    queueMicrotask(() => this.onclose?.({ code: 1006, reason: '' }))
  }
  send() {}
  close() {}
}

export function createStreamWorld() {
  const world = createWorld()
  const { deeds } = world
  /** The newest. @type {ReturnType<typeof createStream>} */
  let stream

  function createStream() {
    const encoder = new TextEncoder()
    /** @type {ReadableStreamDefaultController} */
    let controller
    const body = new ReadableStream({
      start(given) {
        controller = given
      },
    })
    let isOver = false
    /** @param {string} text */
    const write = text => {
      if (!isOver) controller.enqueue(encoder.encode(text))
    }
    return {
      body,
      isOver: () => isOver,
      end() {
        isOver = true
      },
      onmessage: (/** @type {{ data: string }} */ { data }) => write(`data: ${data}\n\n`),
      /** As in `keycast.v1.json`, which has no binary messages. @param {any} message @param {Uint8Array} [bytes] */
      say({ contentType, ...message }, bytes) {
        if (!bytes) return write(`id: x\ndata: ${JSON.stringify({ ...message, contentType })}\n\n`)
        const isJson = contentType === 'application/json'
        const head = JSON.stringify({ ...message, contentType: isJson ? undefined : contentType }).slice(0, -1)
        const content = isJson ? `"data":${Buffer.from(bytes)}` : `"base64":"${Buffer.from(bytes).toString('base64')}"`
        write(`data: ${head},${content}}\n\n`)
      },
      /** @param {number} code @param {string} [reason] */
      lose(code, reason = '') {
        if (code === 1006) controller.error(new Error('the connection was lost'))
        else write(`event: close\ndata: ${JSON.stringify({ code, reason })}\n\n`)
        isOver = true
      },
    }
  }

  const Fallback = createFallback({
    WebSocket: BlockedWebSocket,
    fetch: async (address, { body } = {}) => {
      // All else is tried only where the stream was lost before it spoke: then the gateway is away.
      if (!String(address).includes('/v1/stream')) throw new TypeError('no connection')
      if (body === undefined) {
        stream = createStream()
        return new Response(stream.body, { headers: { 'keycast-stream': 'its name' } })
      }
      for (const line of String(body).split('\n')) deeds.push({ out: JSON.parse(line) })
      return new Response(null, { status: 204 })
    },
    // The client's own patience is what transcripts are about.
    setTimeout: () => 0,
    clearTimeout() {},
  })

  class DialledSocket {
    /** @param {string} url @param {string} protocol */
    constructor(url, protocol) {
      deeds.push({ dials: url, offers: protocol })
      const socket = new Fallback(url, protocol)
      const close = socket.close.bind(socket)
      socket.close = code => {
        if (!stream?.isOver()) deeds.push({ hangs: true, code })
        stream?.end()
        close(code)
      }
      // biome-ignore lint/correctness/noConstructorReturn: the socket itself, with ears
      return socket
    }
  }

  return { ...world, environment: { ...world.environment, WebSocket: DialledSocket }, socket: () => stream }
}
