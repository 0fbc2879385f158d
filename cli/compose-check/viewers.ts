// Viewers that behave as a client library does: when a connection ends they reconnect after a random delay and resume by
// version and order. Many share this one process, so they parse only the head of each value.
import { setTimeout as delay } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { openSocket, type Target } from '../support/client.ts'

/** The longest a viewer waits before it tries again. */
const BACKOFF_MS_MAX = 2_000

/** A connection that is silent for so many heartbeats is dead, even if TCP has not noticed. */
const HEARTBEATS_MISSED = 2

/** The interval at which a waiting check looks again. */
const LOOK_MS = 100

/** All that a value's message says before the data, and the data's first fields, of which the revision is one. */
const HEAD_BYTES = 512
const HEAD = /^(\{"type":"value",.*?),"data":\{.*?"revision":(\d+)/

/** A viewer's state of a key. */
interface Sight {
  version: string
  order?: number
  revision: number
}

/** @param keys each viewer subscribes to all of them */
export function startViewers(target: Target, count: number, keys: string[]) {
  const viewers = Array.from({ length: count }, () => startViewer(target, keys))
  return {
    connections: () => viewers.reduce((sum, viewer) => sum + viewer.connections(), 0),

    /** @returns every revision that came after a newer one: a viewer must never see that */
    fallen: (): string[] => viewers.flatMap(viewer => viewer.fallen),

    /** Waits until every viewer holds at least some revision of every key. */
    async reach(revision: number, signal: AbortSignal) {
      while (viewers.some(viewer => viewer.oldest() < revision)) {
        signal.throwIfAborted()
        await delay(LOOK_MS)
      }
    },

    stop() {
      for (const viewer of viewers) viewer.stop()
    },
  }
}

function startViewer(target: Target, keys: string[]) {
  const sights = new Map<string, Sight>()
  const fallen: string[] = []
  let connections = 0
  let failures = 0
  let stopped = false
  let socket: WebSocket

  const open = () => {
    let reconnectAfterMs = 0
    let silentMsMax = Number.POSITIVE_INFINITY
    const opened = openSocket(target)
    socket = opened
    let heardAt = performance.now()
    const heard = () => {
      heardAt = performance.now()
    }
    const watching = setInterval(() => {
      if (performance.now() - heardAt > silentMsMax) opened.terminate()
    }, LOOK_MS)
    socket.on('ping', heard)
    socket.on('message', heard)
    socket.on('close', () => clearInterval(watching))
    socket.on('open', () => {
      connections += 1
      socket.send(
        JSON.stringify({
          type: 'subscribe',
          id: 1,
          keys: keys.map(key => ({ key, ...sights.get(key), revision: undefined })),
        }),
      )
    })
    socket.on('message', data => {
      const bytes = data as Buffer
      const value = HEAD.exec(bytes.toString('utf8', 0, HEAD_BYTES))
      if (value) return note(JSON.parse(`${value[1]}}`), Number(value[2]))
      const message = JSON.parse(bytes.toString())
      if (message.type === 'current') Object.assign(sights.get(message.key) ?? {}, { order: message.order })
      if (message.type === 'welcome') silentMsMax = HEARTBEATS_MISSED * message.heartbeatMs
      if (message.type === 'subscribed') failures = 0
      if (message.type === 'closing') {
        reconnectAfterMs = message.reconnectAfterMs
        setTimeout(() => socket.close(), reconnectAfterMs)
      }
    })
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => {
      if (stopped) return
      failures += 1
      setTimeout(() => stopped || open(), Math.random() * Math.min(BACKOFF_MS_MAX, 100 * 2 ** failures))
    })
  }

  const note = ({ key, version, order }: Omit<Sight, 'revision'> & { key: string }, revision: number) => {
    const held = sights.get(key)
    if (held && revision < held.revision) fallen.push(`${key} from ${held.revision} to ${revision}`)
    sights.set(key, { version, order, revision })
  }

  open()
  return {
    fallen,
    connections: () => connections,
    oldest: () => Math.min(...keys.map(key => sights.get(key)?.revision ?? Number.NEGATIVE_INFINITY)),
    stop() {
      stopped = true
      socket.terminate()
    },
  }
}
