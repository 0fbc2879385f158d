// A plain Keycast client for tests, on ws alone. It keeps every message of each key, and fails the test when a
// `revision` falls.
import WebSocket from 'ws'
import { contentOf, readBinary } from './bytes.ts'
import { atEnd } from './cleanup.ts'
import { pause, within } from './deadline.ts'

/**
 * @typedef {import('@keycast/protocol').ServerMessage} ServerMessage
 *
 * The record of what a viewer was sent of one key.
 * @typedef {object} Sight
 * @property {string | undefined} version
 * @property {number | undefined} revision of the last value whose data carries one
 * @property {number[]} revisions in the order they came
 * @property {any} data of the last value: its JSON, else its text or base64
 * @property {Buffer | undefined} content of the last value or delta, where those come as bytes
 * @property {Buffer | undefined} frame the last value's whole message
 * @property {number} values the number of values
 * @property {number} deltas the number of deltas in place of values
 * @property {number} currents the number of messages that it holds the latest
 * @property {any} stale the `stale` message in force; a value or current ends it
 * @property {any} error the last `error` about the key; a value ends it
 * @property {number} at when the last value came, as of performance.now()
 *
 * @typedef {Awaited<ReturnType<typeof connect>>} Client
 */

/** A refused viewer tries again after this time: at once it would take the time that its gateway needs to start. */
const RETRY_MS = 20

/** @type {string[]} */
const wentBack = []

/** Fails the test in which some viewer was given an older revision than it had. */
export function assertNobodyWentBack() {
  const seen = wentBack.splice(0)
  if (seen.length > 0) throw new Error(`a revision fell: ${seen.slice(0, 5).join('; ')}`)
}

/** @type {string[]} */
const misled = []

/** Fails the test in which some viewer was brought to other bytes than those of the version it was told. */
export function assertNobodyMisled() {
  const seen = misled.splice(0)
  if (seen.length > 0) throw new Error(seen.slice(0, 5).join('; '))
}

/** Makes a client read nothing any more, as one that hangs. @param {WebSocket} socket */
export function stall(socket) {
  tcpOf(socket).pause()
}

/** @param {WebSocket} socket */
export function resume(socket) {
  tcpOf(socket).resume()
}

/** A viewer's record of each key. It can be carried over to another connection, as a reconnecting client does. */
export function createSights() {
  /** @type {Map<string, Sight>} */
  const sights = new Map()
  return {
    /** @param {string} key @returns {Sight} */
    of(key) {
      let sight = sights.get(key)
      if (sight === undefined) {
        sight = {
          version: undefined,
          revision: undefined,
          revisions: [],
          data: undefined,
          content: undefined,
          frame: undefined,
          values: 0,
          deltas: 0,
          currents: 0,
          stale: undefined,
          error: undefined,
          at: 0,
        }
        sights.set(key, sight)
      }
      return sight
    },
    keys: () => [...sights.keys()],
  }
}

/**
 * @param {string} url
 * @param {object} [options]
 * @param {ReturnType<typeof createSights>} [options.sights] of an earlier connection
 * @param {string[]} [options.protocols] subprotocols offered
 */
export async function connect(url, { sights = createSights(), protocols = [] } = {}) {
  const socket = new WebSocket(url, protocols, { perMessageDeflate: false })
  atEnd(() => socket.terminate())

  /** @type {Set<() => void>} */
  const waiters = new Set()
  const wakeAll = () => {
    for (const wake of waiters) wake()
  }
  /** @type {Map<string | number, (message: any) => void>} */
  const requests = new Map()
  /** @type {string[]} heads of the last messages, for errors */
  const recent = []
  let lastId = 0
  let received = 0
  /** @type {any} */
  let closing
  /** @type {any} */
  let welcome
  /** @type {{ code: number, reason: string } | undefined} */
  let closed

  socket.on('message', (data, isBinary) => {
    const frame = /** @type {Buffer} */ (data)
    const message = /** @type {any} */ (isBinary ? readBinary(frame) : JSON.parse(frame.toString()))
    received += 1
    recent.push(frame.toString('utf8', 0, 120))
    if (recent.length > 12) recent.shift()
    if (message.type === 'welcome') welcome = message
    if (message.type === 'closing') closing = message
    // The first message with its id answers a request; more may follow, as for the keys that a subscribe is refused.
    const answer = requests.get(message.id)
    requests.delete(message.id)
    if (answer) answer(message)
    else if (isBinary) noteBytes(sights.of(message.key), message, frame)
    else if (message.key !== undefined) note(sights.of(message.key), message, frame)
    wakeAll()
  })
  /** @type {Promise<{ code: number, reason: string }>} */
  const ended = new Promise(resolve => {
    socket.on('close', (code, reason) => {
      closed = { code, reason: reason.toString() }
      resolve({ code, reason: reason.toString() })
      wakeAll()
    })
  })
  socket.on('error', () => {}) // 'close' follows with the reason

  const state = () => `${closed ? `closed with ${closed.code}` : 'open'}, last received:\n  ${recent.join('\n  ')}\n`

  const client = {
    socket,
    /** @param {string} key */
    of: key => sights.of(key),
    sights,
    welcome: () => welcome,
    closing: () => closing,
    received: () => received,
    /** Resolves when the connection is closed, be it in a minute or an hour. */
    ended,
    gone: () => within(ended, () => `the close of a client that is ${state()}, that`),

    /** @param {object | string | Buffer} message an object is sent as JSON, all else as it is, in a text message */
    send(message) {
      const isRaw = typeof message === 'string' || Buffer.isBuffer(message)
      socket.send(isRaw ? message : JSON.stringify(message), { binary: false })
    },

    /**
     * Sends a request and waits for its answer.
     *
     * @param {object} request without id
     * @returns {Promise<any>}
     */
    async request(request) {
      lastId += 1
      const id = lastId
      const answered = new Promise(resolve => requests.set(id, resolve))
      client.send({ ...request, id })
      return within(answered, () => `an answer to ${JSON.stringify(request).slice(0, 100)}, ${state()}that`)
    },

    /** @param {(string | { key: string, version?: string })[]} keys */
    subscribe: keys => client.request({ type: 'subscribe', keys }),
    /** @param {string[]} keys */
    unsubscribe: keys => client.request({ type: 'unsubscribe', keys }),
    ping: () => client.request({ type: 'ping' }),

    /**
     * Waits until what was received satisfies a condition.
     *
     * @param {() => unknown} condition
     * @param {string} what the condition, for the error
     */
    async until(condition, what) {
      /** @type {() => void} */
      let wake = () => {}
      const met = new Promise((resolve, reject) => {
        wake = () => {
          if (condition()) resolve(undefined)
          else if (closed) reject(new Error(`the connection was closed before ${what}: ${state()}`))
        }
        waiters.add(wake)
        wake()
      })
      await within(met, () => `${what}, ${state()}that`).finally(() => waiters.delete(wake))
    },

    /**
     * Waits until a key has at least some revision.
     *
     * @param {string} key
     * @param {number} revision
     */
    reaches: (key, revision) =>
      client.until(() => (sights.of(key).revision ?? -1) >= revision, `revision ${revision} of ${key}`),

    stall: () => stall(socket),
    /** Ends its own side of the connection (TCP FIN). */
    halfClose: () => void tcpOf(socket).end(),
    resume: () => resume(socket),
    close: () => socket.close(),
  }
  await client.until(() => welcome, 'a welcome')
  return client
}

/**
 * A client that behaves as a library would. It leaves when its gateway asks it to; when its connection ends it takes
 * the next gateway and resumes from its versions, until told to stop.
 *
 * @param {string[]} urls of the gateways, the preferred one first
 * @param {string[]} keys
 * @param {{ protocols?: string[] }} [options] subprotocols offered
 */
export async function connectViewer(urls, keys, { protocols } = {}) {
  const sights = createSights()
  let stopped = false
  let turn = 0
  /** @type {Client | undefined} */
  let client
  let connections = 0
  /** @type {number[]} */
  const offlineMs = []
  /** @type {number | undefined} */
  let offlineSince
  /** @type {Set<() => void>} */
  const waiters = new Set()

  const run = async () => {
    while (!stopped) {
      try {
        client = await connect(urls[turn % urls.length], { sights, protocols })
        connections += 1
        leaveWhenAsked(client)
        client.socket.on('message', () => {
          for (const wake of waiters) wake()
        })
        await client.subscribe(keys.map(key => ({ key, version: sights.of(key).version })))
        if (offlineSince !== undefined) offlineMs.push(performance.now() - offlineSince)
        offlineSince = undefined
        await client.ended
        offlineSince = performance.now()
      } catch {
        await pause(RETRY_MS)
      }
      turn += 1
    }
  }
  run()
  return {
    sights,
    connections: () => connections,
    /** From the end of each connection until it was subscribed again. */
    offlineMs: () => offlineMs,

    /**
     * Waits until what was received satisfies a condition, over however many connections.
     *
     * @param {() => unknown} condition
     * @param {string} what the condition, for the error
     */
    async until(condition, what) {
      /** @type {() => void} */
      let wake = () => {}
      const met = new Promise(resolve => {
        wake = () => condition() && resolve(undefined)
        waiters.add(wake)
        wake()
      })
      await within(met, what).finally(() => waiters.delete(wake))
    },

    /** Cuts its connection. */
    cut: () => client?.socket.terminate(),
    stop() {
      stopped = true
      client?.socket.terminate()
    },
  }
}

/** @param {Client} client */
function leaveWhenAsked({ socket, closing }) {
  const leave = () => {
    if (!closing()) return
    socket.off('message', leave)
    setTimeout(() => socket.close(), closing().reconnectAfterMs)
  }
  socket.on('message', leave)
}

/** The socket below: ws would go on reading while its own interface is paused. @param {any} socket */
export function tcpOf(socket) {
  return /** @type {import('node:net').Socket} */ (socket._socket)
}

/** @param {Sight} sight @param {any} message @param {Buffer} frame */
function note(sight, message, frame) {
  switch (message.type) {
    case 'value': {
      const { key, version, data, text, base64 } = message
      const revision = data?.revision
      if (typeof revision === 'number') {
        if (sight.revision !== undefined && revision < sight.revision) {
          wentBack.push(`${key} from ${sight.revision} to ${revision}`)
        }
        sight.revision = revision
        sight.revisions.push(revision)
      }
      Object.assign(sight, { version, frame, data: data ?? text ?? base64, stale: undefined, error: undefined })
      sight.values += 1
      sight.at = performance.now()
      break
    }
    case 'current':
      Object.assign(sight, { version: message.version, stale: undefined, error: undefined })
      sight.currents += 1
      break
    case 'stale':
      sight.stale = message
      break
    case 'error':
      sight.error = message
      break
  }
}

/** A value or a delta that came as bytes. @param {Sight} sight @param {any} message @param {Buffer} frame */
function noteBytes(sight, message, frame) {
  const { type, key, version, contentType } = message
  try {
    sight.content = contentOf(message, sight.content)
  } catch (error) {
    misled.push(/** @type {Error} */ (error).message)
    return
  }
  if (type === 'delta') sight.deltas += 1
  const data = contentType === 'application/json' ? JSON.parse(sight.content.toString()) : undefined
  note(sight, { type: 'value', key, version, data }, frame)
}
