// The connections to backends: kept open and used again, for as long as each backend says it keeps them.
import http from 'node:http'
import https from 'node:https'

/**
 * A request on a connection that the server is just giving up fails. So an idle one is closed from this side first:
 * before the 2 s of gunicorn, the shortest in common use, and not on a whole second, where refreshes and servers'
 * timeouts meet.
 */
export const IDLE_MS = 1_500

/** A server that says how long it keeps an idle connection (`Keep-Alive: timeout=5`) is believed, less this. */
const ANNOUNCED_LESS_MS = 1_000

/** Longer is of no use: a connection that idles for so long carries a request a minute. */
const IDLE_MS_MAX = 60_000

/** When TCP's own probes begin. */
const PROBE_MS = 60_000

/** @param {{ socketsMax: number }} options connections to one origin */
export function createConnections({ socketsMax }) {
  const agentOptions = {
    keepAlive: true,
    keepAliveMsecs: PROBE_MS,
    maxSockets: socketsMax,
    maxFreeSockets: socketsMax,
    timeout: IDLE_MS,
  }
  const plain = new http.Agent(agentOptions)
  const secure = new https.Agent(agentOptions)
  /** How long the server of a connection keeps it idle, where it said so. @type {WeakMap<import('node:net').Socket, number>} */
  const announced = new WeakMap()

  for (const agent of [plain, secure]) {
    const keep = agent.keepSocketAlive.bind(agent)
    agent.keepSocketAlive = socket => {
      // Node says whether it may be kept, though its types do not.
      if (/** @type {unknown} */ (keep(socket)) === false) return false
      const idleMs = announced.get(/** @type {import('node:net').Socket} */ (socket))
      if (idleMs !== undefined) /** @type {import('node:net').Socket} */ (socket).setTimeout(idleMs)
      return true
    }
  }

  return {
    /** @param {string | null | undefined} protocol `http:` or `https:` */
    over: protocol =>
      protocol === 'https:' ? { request: https.request, agent: secure } : { request: http.request, agent: plain },

    /** Takes from a response how long its connection may stay idle. @param {http.IncomingMessage} response */
    note({ headers: { 'keep-alive': hint }, socket }) {
      const [, seconds] = /\btimeout=(\d{1,6})/.exec(String(hint ?? '')) ?? []
      if (seconds === undefined) return
      const idleMs = Math.min(Number(seconds) * 1_000 - ANNOUNCED_LESS_MS, IDLE_MS_MAX)
      if (idleMs > 0) announced.set(socket, idleMs)
    },

    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

/** @typedef {ReturnType<typeof createConnections>} Connections */
