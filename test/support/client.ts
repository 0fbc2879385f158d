// A plain Keycast client for tests, on ws alone. It keeps every message of each key, and fails the test when a
// `revision` falls.
import type { Socket } from 'node:net'
import WebSocket from 'ws'
import { contentOf, readBinary } from './bytes.ts'
import { atEnd } from './cleanup.ts'
import { createConditions, pause, within } from './deadline.ts'

/** The record of what a viewer was sent of one key. */
export interface Sight {
  version: string | undefined
  /** Of the last value. */
  order: number | undefined
  /** Of the last value whose data carries one. */
  revision: number | undefined
  /** In the order they came. */
  revisions: number[]
  /** Of the last value: its JSON, else its text or base64. */
  data: any
  /** Of the last value or delta, where those come as bytes. */
  content: Buffer | undefined
  /** The last value's whole message. */
  frame: Buffer | undefined
  /** The number of values. */
  values: number
  /** The number of deltas in place of values. */
  deltas: number
  /** The number of messages that it holds the latest. */
  currents: number
  /** The `stale` message in force; a value or current ends it. */
  stale: any
  /** The last `error` about the key; a value ends it. */
  error: any
  /** When the last value came, as of performance.now(). */
  at: number
}

export type Client = Awaited<ReturnType<typeof connect>>

/** A refused viewer tries again after this time: at once it would take the time that its gateway needs to start. */
const RETRY_MS = 20

const wentBack: string[] = []

/** Fails the test in which some viewer was given an older revision than it had. */
export function assertNobodyWentBack() {
  const seen = wentBack.splice(0)
  if (seen.length > 0) throw new Error(`a revision fell: ${seen.slice(0, 5).join('; ')}`)
}

const misled: string[] = []

/** Fails the test in which some viewer was brought to other bytes than those of the version it was told. */
export function assertNobodyMisled() {
  const seen = misled.splice(0)
  if (seen.length > 0) throw new Error(seen.slice(0, 5).join('; '))
}

/** Makes a client read nothing any more, as one that hangs. */
export function stall(socket: WebSocket) {
  tcpOf(socket).pause()
}

export function resume(socket: WebSocket) {
  tcpOf(socket).resume()
}

/** A viewer's record of each key. It can be carried over to another connection, as a reconnecting client does. */
export function createSights() {
  const sights = new Map<string, Sight>()
  return {
    of(key: string): Sight {
      let sight = sights.get(key)
      if (sight === undefined) {
        sight = {
          version: undefined,
          order: undefined,
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

interface Options {
  /** Of an earlier connection. */
  sights?: ReturnType<typeof createSights>
  /** Subprotocols offered. */
  protocols?: string[]
  /** The client's address, as a proxy says it. */
  from?: string
}

/** The clients of this file that are connected. */
const open = new Set<WebSocket>()

/** Ends every client, for after a test: its keys would be fetched, and its rights asked for, until the file is over. */
export function closeClients() {
  for (const socket of open) socket.terminate()
}

export async function connect(url: string, { sights = createSights(), protocols = [], from }: Options = {}) {
  const headers = from === undefined ? {} : { 'x-forwarded-for': from }
  const socket = new WebSocket(url, protocols, { perMessageDeflate: false, headers })
  atEnd(() => socket.terminate())
  open.add(socket)
  socket.once('close', () => open.delete(socket))

  const conditions = createConditions()
  const requests = new Map<string | number, { answer: (message: any) => void; lose: (error: Error) => void }>()
  /** Heads of the last messages, for errors. */
  const recent: string[] = []
  let lastId = 0
  let received = 0
  let closing: any
  let welcome: any
  let closed: { code: number; reason: string } | undefined

  socket.on('message', (data, isBinary) => {
    const frame = data as Buffer
    const message = (isBinary ? readBinary(frame) : JSON.parse(frame.toString())) as any
    received += 1
    recent.push(frame.toString('utf8', 0, 120))
    if (recent.length > 12) recent.shift()
    if (message.type === 'welcome') welcome = message
    if (message.type === 'closing') closing = message
    // The first message with its id answers a request; more may follow, as for the keys that a subscribe is refused.
    const request = requests.get(message.id)
    requests.delete(message.id)
    if (request) request.answer(message)
    else if (isBinary) noteBytes(sights.of(message.key), message, frame)
    else if (message.key !== undefined) note(sights.of(message.key), message, frame)
    conditions.look()
  })
  const ended = new Promise<{ code: number; reason: string }>(resolve => {
    socket.on('close', (code, reason) => {
      closed = { code, reason: reason.toString() }
      resolve({ code, reason: reason.toString() })
      for (const { lose } of requests.values()) lose(new Error(`a request has no answer, ${state()}`))
      conditions.look()
    })
  })
  socket.on('error', () => {}) // 'close' follows with the reason

  const state = () => `${closed ? `closed with ${closed.code}` : 'open'}, last received:\n  ${recent.join('\n  ')}\n`

  const client = {
    socket,
    of: (key: string) => sights.of(key),
    sights,
    welcome: () => welcome,
    closing: () => closing,
    received: () => received,
    /** Resolves when the connection is closed, be it in a minute or an hour. */
    ended,
    gone: () => within(ended, () => `the close of a client that is ${state()}, that`),

    /** @param message an object is sent as JSON, all else as it is, in a text message */
    send(message: object | string | Buffer) {
      const isRaw = typeof message === 'string' || Buffer.isBuffer(message)
      socket.send(isRaw ? message : JSON.stringify(message), { binary: false })
    },

    /**
     * Sends a request and waits for its answer. It rejects once the connection is closed: a viewer must not wait for what
     * cannot come any more.
     *
     * @param request without id
     */
    async request(request: object): Promise<any> {
      lastId += 1
      const id = lastId
      if (closed) throw new Error(`${JSON.stringify(request).slice(0, 100)} is not sent, ${state()}`)
      const answered = new Promise((answer, lose) => requests.set(id, { answer, lose }))
      client.send({ ...request, id })
      return within(answered, () => `an answer to ${JSON.stringify(request).slice(0, 100)}, ${state()}that`)
    },

    subscribe: (keys: (string | { key: string; version?: string; order?: number })[]) =>
      client.request({ type: 'subscribe', keys }),
    unsubscribe: (keys: string[]) => client.request({ type: 'unsubscribe', keys }),
    ping: () => client.request({ type: 'ping' }),

    /**
     * Waits until what was received satisfies a condition.
     *
     * @param what the condition, for the error
     */
    until: (condition: () => unknown, what: string) =>
      conditions.until(
        () => {
          const holds = condition()
          if (!holds && closed) throw new Error(`the connection was closed before ${what}: ${state()}`)
          return holds
        },
        () => `${what}, ${state()}that`,
      ),

    /** Waits until a key has at least some revision. */
    reaches: (key: string, revision: number) =>
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
 * @param urls of the gateways, the preferred one first
 * @param options subprotocols offered
 */
export async function connectViewer(urls: string[], keys: string[], { protocols }: { protocols?: string[] } = {}) {
  const sights = createSights()
  let stopped = false
  let turn = 0
  let client: Client | undefined
  let connections = 0
  const offlineMs: number[] = []
  let offlineSince: number | undefined
  const conditions = createConditions()

  const run = async () => {
    while (!stopped) {
      try {
        client = await connect(urls[turn % urls.length], { sights, protocols })
        connections += 1
        leaveWhenAsked(client)
        client.socket.on('message', conditions.look)
        const held = (key: string) => ({ version: sights.of(key).version, order: sights.of(key).order })
        await client.subscribe(keys.map(key => ({ key, ...held(key) })))
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
  const stop = () => {
    stopped = true
    client?.socket.terminate()
  }
  atEnd(stop)
  run()
  return {
    sights,
    connections: () => connections,
    /** From the end of each connection until it was subscribed again. */
    offlineMs: () => offlineMs,

    /**
     * Waits until what was received satisfies a condition, over however many connections.
     *
     * @param what the condition, for the error
     */
    until: conditions.until,

    /** Cuts its connection. */
    cut: () => client?.socket.terminate(),
    stop,
  }
}

function leaveWhenAsked({ socket, closing }: Client) {
  const leave = () => {
    if (!closing()) return
    socket.off('message', leave)
    setTimeout(() => socket.close(), closing().reconnectAfterMs)
  }
  socket.on('message', leave)
}

/** The socket below: ws would go on reading while its own interface is paused. */
export function tcpOf(socket: any) {
  return socket._socket as Socket
}

function note(sight: Sight, message: any, frame: Buffer) {
  switch (message.type) {
    case 'value': {
      const { key, version, order, data, text, base64 } = message
      const revision = data?.revision
      if (typeof revision === 'number') {
        if (sight.revision !== undefined && revision < sight.revision) {
          const meanwhile = sight.error?.code ?? sight.stale?.type ?? 'nothing else'
          wentBack.push(
            `${key} from ${sight.revision} (${sight.order}) to ${revision} (${order}), ${meanwhile} between`,
          )
        }
        sight.revision = revision
        sight.revisions.push(revision)
      }
      Object.assign(sight, { version, order, frame, data: data ?? text ?? base64, stale: undefined, error: undefined })
      sight.values += 1
      sight.at = performance.now()
      break
    }
    case 'current':
      Object.assign(sight, { version: message.version, order: message.order, stale: undefined, error: undefined })
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

/** A value or a delta that came as bytes. */
function noteBytes(sight: Sight, message: any, frame: Buffer) {
  const { type, key, version, order, contentType } = message
  try {
    sight.content = contentOf(message, sight.content)
  } catch (error) {
    misled.push((error as Error).message)
    return
  }
  if (type === 'delta') sight.deltas += 1
  const data = contentType === 'application/json' ? JSON.parse(sight.content.toString()) : undefined
  note(sight, { type: 'value', key, version, order, data }, frame)
}
