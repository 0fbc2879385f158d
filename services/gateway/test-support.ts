// Stand-ins for a gateway's surroundings: a backbone that records, connections without sockets, a clock that the test
// turns.
import { EventEmitter } from 'node:events'
import { constants, inflateRawSync } from 'node:zlib'
import {
  type Answer,
  type Backbone,
  type BackboneEvents,
  type Confirmations,
  type Credentials,
  type Decision,
  type HandedOver,
  type Ruling,
  readViewerKey,
  type Taken,
} from '@keycast/backbone'
import { createMemoryRooms } from '@keycast/backbone/memory'
import { type ErrorCode, versionOf } from '@keycast/protocol'
import {
  type AnyNamespace,
  bySource,
  type Containment,
  createLiveNamespaces,
  type JournalNamespace,
  type MetricMakers,
  type Namespace,
  noContainment,
  type PushedNamespace,
  type ReadNamespaces,
  realWorld,
  type World,
} from '@keycast/service'
import type { Policy } from './access/policy-file.ts'
import { grantedByRead, readRule } from './access/rule.ts'
import { createGateway } from './gateway.ts'
import type { Session } from './sessions/session.ts'
import type { Log } from './sessions/session-log.ts'
import { settings as declared, type Settings } from './settings.ts'
import type { Kind } from './topics/topics.ts'
import type { TransportEvents } from './transport/transport.ts'
import { WebSocketTransport } from './transport/websocket.ts'

/** Every setting at its default. */
export const defaults = Object.fromEntries(
  Object.entries(declared).map(([name, { default: value }]) => [name, value]),
) as Settings

type Given = [
  given?: Record<string, Partial<Namespace>>,
  rooms?: Record<string, Partial<JournalNamespace>>,
  pushed?: Record<string, Partial<PushedNamespace>>,
]

/** The namespaces of a gateway that runs. */
export const createNamespaces = (...given: Given) => createLiveNamespaces(readAs(...given))

/**
 * As a keycast.yaml is read.
 *
 * @param given by name
 * @param rooms by name
 * @param handedOver by name
 */
export function readAs(...[given = { tick: {} }, rooms = {}, handedOver = {}]: Given): ReadNamespaces {
  const named = new Map<string, AnyNamespace>()
  for (const [name, rest] of Object.entries(given)) named.set(name, { name, ...fetchedDefaults(), ...rest })
  for (const [name, rest] of Object.entries(handedOver)) named.set(name, { name, ...pushedDefaults, ...rest })
  for (const [name, rest] of Object.entries(rooms)) named.set(name, { name, ...roomDefaults, ...rest })
  return { ...bySource(named), written: name => ({ ...given[name], ...rooms[name], ...handedOver[name] }) }
}

/** Of a namespace whose backend decides. @param keepMs how long its decision is kept */
export const authorizeKept = (keepMs: number) => ({
  urlFor: (id: string) => `http://127.0.0.1/${id}`,
  origin: 'http://127.0.0.1',
  pattern: 'http://127.0.0.1/{id}',
  method: 'HEAD' as const,
  keepMs,
  keepRefusedMs: keepMs,
})

const fetchedDefaults = () => ({
  source: 'http' as const,
  urlFor: (id: string) => `http://127.0.0.1/${id}`,
  origin: 'http://127.0.0.1',
  headers: {},
  maxAgeMs: 1_000,
  refreshMs: 1_000,
  timeoutMs: 2_000,
  bytesMax: 4 * 1024 ** 2,
})

const pushedDefaults = {
  source: 'pushed' as const,
  maxAgeMs: 1_000,
  refreshMs: 0,
  timeoutMs: 2_000,
  bytesMax: 512 * 1024,
}

const roomDefaults = {
  source: 'journal' as const,
  history: { messages: 1_000, ageMs: 3_600_000, bytes: 1024 ** 2 },
  bytesMax: 64 * 1024,
  publish: 'client' as const,
  members: 'none' as const,
  names: 'any' as const,
}

const everything = readRule({ read: ['*:**'], publish: ['*:**'], join: ['*:**'] }, { user: false, strict: true }).rule
const nothing = readRule({}, { user: false, strict: true }).rule

/** The `access` section of a keycast.yaml. Anybody may read everything, unless said. */
export function createPolicy(given?: Partial<Policy>): Policy {
  return {
    anonymous: everything,
    everyone: nothing,
    byRead: grantedByRead,
    claim: 'keys',
    tokens: [],
    cookie: undefined,
    lifetimeMsMax: 24 * 3_600_000,
    notes: [],
    ...given,
  }
}

/** A backbone without a fetcher: the test reads what was asked, and answers. */
export function createFakeBackbone() {
  /** Every call, as in `watch tick:1`. */
  const calls: string[] = []
  let events: BackboneEvents = { held: () => undefined, onAnswer() {} }
  const good = { ageMs: 0, maxAgeMs: 1_000, store: true }
  const content = { contentType: 'application/json', format: 'json' as const }

  /** Whether viewers may read keys, asked and not yet answered. */
  const questions: {
    key: string
    credentials: Credentials
    deadlineMs: number
    maxAgeMs?: number
    resolve: (decision: Decision | undefined) => void
  }[] = []

  /** Wants that said a token, in their order. */
  const said: [key: string, authorization: string][] = []

  /** Messages that a backend is asked about. */
  const messages: {
    key: string
    from: string
    messageId?: string
    data: string
    deadlineMs: number
    resolve: (ruling: Ruling | undefined) => void
  }[] = []

  const fake = {
    calls,
    messages,
    questions,
    said,
    nodesAlive: 1,
    /** The values that a backend handed over, and what becomes of each. */
    handedOver: [] as HandedOver[],
    taken: { outcome: 'taken' } as Taken,

    connect(given: BackboneEvents) {
      events = given
      return backbone
    },

    /** The gateway's version of a key, as it tells the fetcher. */
    held: (key: string, type: 'watch' | 'get' = 'watch') => events.held(key, type),

    /** The token with which the gateway has the backend asked for a key. */
    credentials: (key: string) => events.credentials?.(key),

    /** Whom the fetcher charges for a key. */
    payer: (key: string, type: 'watch' | 'get' = 'watch') => events.payer?.(key, type),

    /** @returns the version */
    value(
      key: string,
      body: string | Buffer,
      rest?: Partial<Extract<Answer, { type: 'value' }>>,
      isGot = true,
      confirmations?: Confirmations,
    ): string {
      const bytes = Buffer.from(body)
      const version = versionOf(bytes)
      events.onAnswer({ type: 'value', key, version, body: bytes, ...good, ...content, ...rest }, isGot, confirmations)
      return version
    },

    current(key: string, version: string, rest?: Partial<Extract<Answer, { type: 'current' }>>) {
      events.onAnswer({ type: 'current', key, version, ...good, ...rest }, true)
    },

    failed(key: string, code: ErrorCode, rest?: Partial<Extract<Answer, { type: 'failed' }>>) {
      const failure = { message: `it was ${code}`, ageMs: 0, retryAfterMs: 500 }
      events.onAnswer({ type: 'failed', key, code, ...failure, ...rest }, true)
    },
  }

  /** Looks a want's content up each time, as the real backbone does. */
  function say(type: string, key: string) {
    calls.push(`${type} ${key}`)
    const authorization = readViewerKey(key) && events.credentials?.(key)?.authorization
    if (authorization !== undefined) said.push([key, authorization])
  }

  const backbone: Backbone = {
    async start() {},
    async stop() {},
    watch: key => say('watch', key),
    unwatch: key => void calls.push(`unwatch ${key}`),
    get: key => say('get', key),
    cancelGet: key => void calls.push(`cancelGet ${key}`),
    renewWatch: key => say('renewWatch', key),
    async refresh(keys) {
      calls.push(`refresh ${keys.join(' ')}`)
    },
    authorize(key, credentials, { deadlineMs, maxAgeMs }) {
      return new Promise(resolve => fake.questions.push({ key, credentials, deadlineMs, maxAgeMs, resolve }))
    },
    askAbout({ data, ...message }, { deadlineMs }) {
      return new Promise(resolve => fake.messages.push({ ...message, data: String(data), deadlineMs, resolve }))
    },
    async handOver(value) {
      fake.handedOver.push(value)
      return fake.taken
    },
    ownerOf: () => ({ node: fake.nodesAlive > 0 ? '127.0.0.1:7001:7002' : undefined, alive: fake.nodesAlive > 0 }),
    nodesAlive: () => fake.nodesAlive,
    nodesHeld: () => 0,
  }
  return fake
}

/** As ws does when a client shuts down its side. */
function endedByWs() {}

/** A connection as ws gives it, whose socket is an array. Writes are taken at once unless `stuck` is set. */
export class FakeConnection extends EventEmitter {
  OPEN = 1
  readyState = 1
  /** The subprotocol. */
  protocol = ''
  /** The negotiated extensions, under ws's name. */
  extensions = ''
  session: Session | undefined = undefined
  events: TransportEvents | undefined = undefined
  writes: Buffer[] = []
  closed: { code: number; reason: string } | undefined = undefined
  terminated = false
  paused = false
  stuck = false
  _receiver = { _bufferedBytes: 0 }
  _socket = Object.assign(new EventEmitter().on('end', endedByWs), {
    _readableState: { highWaterMark: 65_536 },
    _handle: { bytesWritten: 0, writeQueueSize: 0 },
    writableLength: 0,
    writableNeedDrain: false,
    cork() {},
    uncork() {},
    write: (bytes: Buffer) => {
      this.writes.push(Buffer.from(bytes))
      this._socket._handle.bytesWritten += bytes.length
      if (!this.stuck) return true
      this._socket._handle.writeQueueSize += bytes.length
      this._socket.writableLength += bytes.length
      this._socket.writableNeedDrain = this._socket.writableLength >= 16_384
      return !this._socket.writableNeedDrain
    },
  })

  close(code: number, reason: string) {
    this.readyState = 2
    this.closed = { code, reason }
  }

  terminate() {
    if (this.terminated) return
    this.terminated = true
    this.readyState = 3
    this.emit('close', 1006, Buffer.alloc(0))
  }

  pause() {
    this.paused = true
  }

  /** The client read some of the written bytes. */
  take(bytes: number) {
    if (this._socket._handle) this._socket._handle.writeQueueSize -= bytes
  }

  /** The client read all that was written. */
  drain() {
    this.stuck = false
    this._socket._handle.writeQueueSize = 0
    this._socket.writableLength = 0
    this._socket.writableNeedDrain = false
    this._socket.emit('drain')
  }

  /** As a session takes it. */
  get asTransport() {
    return this as unknown as WebSocketTransport
  }

  /**
   * Takes out what was written since: messages parsed, a pong as `pong`. Without the heartbeat's pings: they come by the
   * real clock, and on a busy machine in the middle of any test.
   */
  read(): any[] {
    return readFrames(Buffer.concat(this.writes.splice(0))).filter(frame => frame !== 'ping')
  }
}

// Only the layer beneath is a stand-in. The gateway treats this connection exactly like one of ws.
const { constructor: _, ...own } = Object.getOwnPropertyDescriptors(WebSocketTransport.prototype)
Object.defineProperties(FakeConnection.prototype, own)

/** Reads unmasked frames. A binary frame is its line, with the rest as `bytes`; a compressed one says so. */
export function readFrames(bytes: Buffer): any[] {
  const frames = []
  for (let offset = 0; offset < bytes.length; ) {
    const opcode = bytes[offset] & 0x0f
    let length = bytes[offset + 1]
    let start = offset + 2
    if (length === 126) {
      length = bytes.readUInt16BE(start)
      start += 2
    } else if (length === 127) {
      length = Number(bytes.readBigUInt64BE(start))
      start += 8
    }
    const isCompressed = (bytes[offset] & 0x40) !== 0
    const written = bytes.subarray(start, start + length)
    const payload = isCompressed ? inflate(written) : written
    if (written.length < length) throw new Error('the last frame is not whole')
    const mark = isCompressed ? { compressed: true } : {}
    if (opcode === 1) frames.push({ ...JSON.parse(payload.toString()), ...mark })
    else if (opcode === 2) frames.push({ ...readBinary(payload), ...mark })
    else frames.push({ 9: 'ping', 10: 'pong' }[opcode] ?? opcode)
    offset = start + length
  }
  return frames
}

/** As a client does it (RFC 7692 section 7.2.2). */
function inflate(payload: Buffer) {
  return inflateRawSync(Buffer.concat([payload, Buffer.from([0, 0, 0xff, 0xff])]), {
    finishFlush: constants.Z_SYNC_FLUSH,
  })
}

function readBinary(payload: Buffer) {
  const end = payload.indexOf('\n')
  return { ...JSON.parse(payload.toString('utf8', 0, end)), bytes: payload.subarray(end + 1) }
}

/** As a program on the gateway's host, which is not counted by address. */
const local = { address: '127.0.0.1', isNamed: false }

/**
 * A whole gateway on a clock of its own, with clients that need no network.
 *
 * @param options `startAtMs`: what the wall clock says at first
 */
export function createTestGateway({
  settings,
  namespaces,
  rooms = {},
  pushed = {},
  journal = createMemoryRooms(),
  policy,
  metrics = noMetrics,
  containment = noContainment,
  log,
  startAtMs = Date.now(),
  world,
  createBackbone,
}: {
  settings?: Partial<Settings>
  namespaces?: Record<string, Partial<Namespace>>
  rooms?: Record<string, Partial<JournalNamespace>>
  pushed?: Record<string, Partial<PushedNamespace>>
  journal?: ReturnType<typeof createMemoryRooms>
  policy?: Partial<Policy>
  metrics?: typeof noMetrics
  startAtMs?: number
  log?: Log
  containment?: Containment
  /** In place of a clock of its own. */
  world?: World
  /** In place of one without a fetcher. */
  createBackbone?: (events: BackboneEvents) => Backbone
} = {}) {
  let nowMs = 1_000_000
  const backbone = createFakeBackbone()
  const live = createNamespaces(namespaces, rooms, pushed)
  const gateway = createGateway({
    ...realWorld,
    settings: { ...defaults, ...settings },
    namespaces: live,
    policy: createPolicy(policy),
    createBackbone: createBackbone ?? backbone.connect,
    createRoomsBackbone: journal.backbone,
    metrics,
    containment,
    log,
    now: () => nowMs,
    wallNow: () => startAtMs + nowMs - 1_000_000,
    ...world,
  })

  /** Lets what was queued in this turn be written. */
  const turn = async () => {
    for (let turns = 0; turns < 3; turns++) await new Promise(resolve => setImmediate(resolve))
  }

  /** @returns a client that has read its welcome */
  const connect = async (
    protocol = '',
    extensions = '',
    from: Parameters<typeof gateway.open>[1] = { peer: local },
  ) => {
    const connection = new FakeConnection()
    connection.protocol = protocol
    connection.extensions = extensions
    gateway.open(connection.asTransport, from)
    await turn()
    const [welcome] = connection.read()
    return {
      connection,
      welcome,
      /** @param message an object, or anything else as it is */
      send(message: unknown) {
        const text = typeof message === 'string' ? message : JSON.stringify(message)
        connection.emit('message', Buffer.from(text), false)
      },
      /** The messages received since the last call, after this turn of the loop. */
      async received() {
        await turn()
        return connection.read()
      },
      /** Sends, and gives what comes back. */
      async ask(message: unknown) {
        this.send(message)
        return this.received()
      },
    }
  }

  return {
    gateway,
    namespaces: live,
    backbone,
    journal,
    connect,
    turn,
    now: () => nowMs,
    /** Lets time pass, and the sweep come by. */
    async pass(ms: number) {
      nowMs += ms
      gateway.sweep()
      await turn()
    },
  }
}

/** For topics that no session is subscribed to. */
export const noKind = {} as Kind

/** Metrics that go nowhere. */
export const noMetrics: MetricMakers = {
  sum: () => () => {},
  count: () => () => {},
  histogram: () => () => {},
  read() {},
}
