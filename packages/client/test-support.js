// A world for tests of the client: a clock that only moves when told, sockets that are not connected, a page.
import { createHash } from 'node:crypto'

/**
 * A client's deeds, in their order.
 *
 * @typedef {{ dials: string, offers: string } | { out: any } | { hangs: true, code?: number } | { asks: true } | { told: string, [field: string]: unknown }} Deed
 */

/** A page's document or window: what listens, and how it hears. */
export function createTarget() {
  /** @type {Map<string, Set<() => void>>} */
  const listeners = new Map()
  return {
    visibilityState: 'visible',
    listeners,
    /** @param {string} name @param {() => void} listener */
    addEventListener: (name, listener) => listeners.set(name, (listeners.get(name) ?? new Set()).add(listener)),
    /** @param {string} name @param {() => void} listener */
    removeEventListener: (name, listener) => listeners.get(name)?.delete(listener),
    /** @param {string} name */
    fire: name => {
      for (const listener of [...(listeners.get(name) ?? [])]) listener()
    },
  }
}

/** @param {{ page?: boolean }} [options] whether there is a document and a window */
export function createWorld({ page = true } = {}) {
  let nowMs = 0
  /** @type {Set<{ task: () => void, atMs: number }>} */
  const timers = new Set()
  /** @type {Deed[]} */
  const deeds = []
  /** @type {FakeSocket[]} */
  const sockets = []
  const network = { random: 1, isOffline: false }

  class FakeSocket {
    binaryType = ''
    isOver = false
    /** @type {((event: any) => void) | null} */
    onmessage = null
    /** @type {((event: any) => void) | null} */
    onclose = null
    /** @type {((event: any) => void) | null} */
    onerror = null
    /** @param {string} url @param {string} protocol */
    constructor(url, protocol) {
      deeds.push({ dials: url, offers: protocol })
      // A client has one socket at a time; those before it are over.
      sockets.splice(0, sockets.length - 1)
      sockets.push(this)
    }
    /** @param {string} text */
    send(text) {
      deeds.push({ out: JSON.parse(text) })
    }
    /** @param {number} [code] */
    close(code) {
      if (!this.isOver) deeds.push({ hangs: true, code })
      this.isOver = true
    }
    /** @param {object} message @param {Uint8Array} [bytes] which make it a binary message */
    say(message, bytes) {
      if (!bytes) return this.onmessage?.({ data: JSON.stringify(message) })
      const frame = Buffer.concat([Buffer.from(`${JSON.stringify(message)}\n`), bytes])
      this.onmessage?.({ data: new Uint8Array(frame).buffer })
    }
    /** @param {number} code @param {string} [reason] */
    lose(code, reason = '') {
      this.isOver = true
      this.onclose?.({ code, reason })
    }
  }

  const document = createTarget()
  const window = createTarget()

  /** @type {import('./keycast.js').Environment} */
  const environment = {
    WebSocket: FakeSocket,
    now: () => nowMs,
    date: () => nowMs,
    random: () => network.random,
    setTimeout(task, ms) {
      const timer = { task, atMs: nowMs + ms }
      timers.add(timer)
      return timer
    },
    clearTimeout: timer => timers.delete(timer),
    document: page ? document : undefined,
    window: page ? window : undefined,
    isOffline: () => network.isOffline,
    subtle: { digest: async (_, bytes) => Uint8Array.from(createHash('sha256').update(bytes).digest()).buffer },
  }

  /** Lets all that can go on without time go on. */
  const settle = () => new Promise(resolve => setImmediate(resolve))

  return {
    environment,
    network,
    document,
    window,
    timers,
    deeds,
    settle,
    now: () => nowMs,
    socket: () => /** @type {FakeSocket} */ (sockets.at(-1)),

    /** @param {number} ms */
    async pass(ms) {
      const untilMs = nowMs + ms
      for (;;) {
        await settle()
        const [next] = [...timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
        if (!next) break
        timers.delete(next)
        nowMs = next.atMs
        next.task()
      }
      nowMs = untilMs
      await settle()
    },

    /** @param {'hidden' | 'visible' | 'online' | 'offline' | 'pagehide' | 'pageshow' | 'resume'} event */
    page(event) {
      if (event === 'hidden' || event === 'visible') {
        document.visibilityState = event
        document.fire('visibilitychange')
      } else if (event === 'resume') document.fire(event)
      else {
        if (event.endsWith('line')) network.isOffline = event === 'offline'
        window.fire(event)
      }
    },

    /** The client's deeds since this was called last. */
    done: () => deeds.splice(0),

    /** The messages among them. @returns {any[]} */
    outs: () => deeds.splice(0).flatMap(deed => ('out' in deed ? [deed.out] : [])),
  }
}

/** A gateway's first message. @param {object} [limits] that are other than usual */
export const welcome = (limits = {}) => ({
  type: 'welcome',
  session: 's',
  heartbeatMs: 25_000,
  limits: { messageBytes: 262_144, keysPerSession: 5_000, requestsPerSecond: 1_000, ...limits },
})
