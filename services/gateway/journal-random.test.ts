// Journals that share a log, two gateways, a backend that is told, and clients in one process: rooms with members whose messages
// are published, deleted, purged and trimmed, values that two backends hand over, tokens that are revoked. Meanwhile
// connections break, the log fails, messages get lost, and processes stand still, die, and hand over. All that a client is sent
// follows what it was sent before; what was deleted or revoked is gone; in the end everybody has what the log has.
import { EventEmitter } from 'node:events'
import { createHub, createRoomsBackbone, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { type JournalNamespace, noContainment, withReserved } from '@keycast/service'
import { applyDelta } from 'fossil-delta'
import { createRandom } from '../../test/support/random.js'
import { furtherSeeds, timeoutMs } from '../../test/support/random-faults.ts'
import { createJournal } from '../journal/journal.ts'
import { issuers, sign } from './access/test-tokens.ts'
import { createPublicApp } from './doors/http/public.ts'
import { createCursor, readCursor } from './doors/stream/cursor.ts'
import { STARTS_AT } from './kernel.fixture.ts'
import { createProcess, type Process } from './process.fixture.ts'
import { createSharedLog, type KeptMessage } from './shared-log.fixture.ts'
import { createTestGateway, FakeConnection, noMetrics } from './test-support.ts'
import { createEventStream } from './transport/event-stream.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
const ROOMS = ['told:1', 'told:2', 'quiet:1']
const KEYS = ['price:1', 'price:2', 'price:3']
const PUBLISH_MS = 3_000
const HAND_OVER_MS = 5_000
const GATEWAYS = 2
/** A read of the log takes no longer. */
const READ_MS = 1_500
/** A session that is gone is a member for 10 s more, and others hear of that within some seconds. */
const CALM_SECONDS = 30

const modes = {
  nothing: { journals: ['n1'], faults: [] },
  log: { journals: ['n1', 'n2'], faults: ['log'] },
  network: { journals: ['n1', 'n2'], faults: ['log', 'losses', 'routes'] },
  processes: { journals: ['n1', 'n2'], faults: ['stalls', 'deaths', 'routes'] },
  everything: { journals: ['n1', 'n2'], faults: ['log', 'losses', 'routes', 'stalls', 'deaths'] },
}
type Mode = keyof typeof modes

interface Person {
  name: string
  sub: string | undefined
  token: { text: string; issuedAt: number; jti: string } | undefined
}

type Revocation = { jti: string } | { sub: string; before: number }

const covers = (revocation: Revocation, { sub, token }: Person) =>
  token !== undefined &&
  ('jti' in revocation ? revocation.jti === token.jti : revocation.sub === sub && token.issuedAt < revocation.before)

async function setUp(seed: number, mode: Mode) {
  const { integer, pick, bytes } = createRandom(seed)
  const network = createMemoryNetwork()
  const { now } = network
  const world = {
    ...network.world,
    random: () => integer(1_000_000) / 1_000_000,
    randomBytes: bytes,
    wallNow: () => Math.floor(STARTS_AT + now()),
  }
  const log = createSharedLog({ world, after: network.after, integer, pick })
  const amiss: string[] = []
  const wrong = (what: string) => void (amiss.length < 10 && amiss.push(`at ${now()} ${what}`))
  const history = () => ({
    messages: pick([1, 2, 5, 100]),
    ageMs: pick([5, 1_000, 60_000]),
    bytes: pick([300, 1_000, 1e6]),
  })
  const rooms: Record<string, any> = Object.fromEntries(
    ['told', 'quiet'].map(name => [
      name,
      {
        name,
        source: 'journal',
        history: history(),
        bytesMax: 1_000,
        publish: 'client',
        members: 'named',
        names: 'any',
        notify:
          name === 'told'
            ? { url: 'http://backend', secretFiles: [], timeoutMs: 1_000, messages: true, members: true }
            : undefined,
      },
    ]),
  )
  const price: any = {
    name: 'price',
    source: 'pushed',
    maxAgeMs: 1_000,
    refreshMs: 0,
    timeoutMs: 2_000,
    bytesMax: 2_000,
  }
  const namespaces = withReserved({ get: name => rooms[name] as JournalNamespace, names: Object.keys(rooms) })
  const pushed: any = { get: (name: string) => (name === 'price' ? price : undefined), names: ['price'] }
  const names = modes[mode].journals
  const backend = createBackend({ world, wrong, network, integer, pick, log })
  const journals = new Map<string, { process: Process; journal: ReturnType<typeof createJournal>; levels: Levels }>()

  /** Lets time pass until it is over. @returns whether it went well */
  async function over(what: Promise<unknown>): Promise<boolean> {
    let isOver: boolean | undefined
    void what.then(
      () => (isOver = true),
      () => (isOver = false),
    )
    for (let waits = 0; isOver === undefined && waits < 600; waits++) await network.pass(100)
    return isOver === true
  }

  /** One that cannot read its log ends, and is started again. */
  async function startJournal(name: string): Promise<void> {
    const process = createProcess(network, world)
    const levels: Levels = new Map()
    const hub = createHub({
      ...process.world,
      codec: roomsCodec,
      bind: from =>
        network.bindOf(name)({
          request: parts => process.run(() => from.request(parts)),
          beat: (part, routingId) => process.run(() => from.beat(part, routingId)),
        }),
      log: silent,
    })
    const journal = createJournal({
      ...process.world,
      namespaces,
      pushed,
      hub,
      log: log.of(process),
      metrics: { ...noMetrics, read: (level: string, _: string, value: any) => void levels.set(level, value) } as any,
      report: silent,
      post: backend.postOf(process),
    })
    if (!(await over(journal.start()))) {
      process.die()
      return startJournal(name)
    }
    journals.set(name, { process, journal, levels })
  }

  async function startGateway(number: number) {
    const process = createProcess(network, world)
    const levels: Levels = new Map()
    const state = { list: (_: string[]) => {} }
    const test = createTestGateway({
      world: process.world,
      rooms,
      pushed: { price },
      policy: { tokens: issuers },
      settings: { publishMs: PUBLISH_MS, tailBytesMax: pick([1_000, 20_000, 2 ** 20]), requestsPerSecondMax: 1e6 },
      metrics: { ...noMetrics, read: (level, _, value) => void levels.set(level, value as () => unknown) },
      journal: {
        backbone: (events: any) =>
          createRoomsBackbone({
            ...process.world,
            nodeSource: {
              async start(found) {
                state.list = each => process.run(() => found(each))
                found(names)
              },
              stop() {},
            },
            dialOf: name => message => network.dialOf(name)(parts => process.run(() => message(parts))),
            log: silent,
            events,
          }),
      } as any,
    })
    const { gateway } = test
    const app = createPublicApp({
      ...process.world,
      ...gateway,
      origins: '*',
      connectionsMax: 1_000,
      clientOf: () => undefined,
      unreadBytesMax: 1_000_000,
      containment: noContainment,
      log: { warn() {} },
    })
    await over(gateway.start())
    await app.ready()
    return {
      gateway,
      app,
      process,
      levels,
      number,
      list: (each: string[]) => state.list(each),
      revoked: [] as Revocation[],
    }
  }

  for (const name of names) await startJournal(name)
  const gateways: Awaited<ReturnType<typeof startGateway>>[] = []
  for (let number = 0; number < GATEWAYS; number++) gateways.push(await startGateway(number))

  return {
    ...network,
    world,
    integer,
    pick,
    log,
    amiss,
    wrong,
    rooms,
    history,
    names,
    backend,
    journals,
    gateways,
    startJournal,
    over,
    replace: async (number: number) => {
      gateways[number] = await startGateway(number)
    },
    /** For so long a gateway may not have heard that a message was deleted. */
    deletedMs: mode === 'nothing' ? 4_000 : Number.POSITIVE_INFINITY,
    /** All that were made. */
    revocations: [] as Revocation[],
    /** Texts that may not be kept: published with a token that was revoked. */
    barred: new Set<string>(),
    /** When each text was published for the first time, and last. */
    published: new Map<string, { firstAt: number; lastAt: number }>(),
  }
}

type Levels = Map<string, () => unknown>
type System = Awaited<ReturnType<typeof setUp>>
type Gateway = System['gateways'][number]

/** What a backend is told: it takes it, or is away. */
function createBackend({
  world,
  wrong,
  network,
  integer,
  pick,
  log,
}: Pick<System, 'world' | 'wrong' | 'integer' | 'pick' | 'log'> & { network: ReturnType<typeof createMemoryNetwork> }) {
  /** Seqs that it has taken, by room; and the last one that it was told for the first time. */
  const told = new Map<string, Set<number>>()
  const lastNew = new Map<string, number>()
  const members = new Map<string, any>()
  const state = { fails: 0 }
  /** When those who asked for it were told that each was deleted. */
  const gone = new Map<string, number>()
  const sleep = (ms: number) => new Promise<void>(resolve => network.after(ms, resolve))

  function hear(text: string) {
    const { key, messages, members: states } = JSON.parse(text)
    for (const each of states ?? []) {
      // Of another journal it says nothing about who is there now.
      if (each.count > 0 || members.get(each.key)?.epoch === each.epoch) members.set(each.key, each)
    }
    if (!messages) return
    const of = told.get(key) ?? new Set()
    told.set(key, of)
    for (const { seq, data, deletes } of messages) {
      const kept = log.messages.get(`${key} ${seq}`)
      if (!kept) wrong(`the backend is told of ${key} ${seq}, never kept`)
      else if (!deletes && JSON.stringify(data) !== kept.data) wrong(`the backend is told ${data} for ${kept.data}`)
      if (of.has(seq)) continue
      if (seq < (lastNew.get(key) ?? 0)) wrong(`the backend is told of ${key} ${seq} after ${lastNew.get(key)}`)
      lastNew.set(key, Math.max(seq, lastNew.get(key) ?? 0))
      of.add(seq)
    }
  }

  return {
    told,
    members,
    gone,
    state,
    postOf(process: Process) {
      const post = async (_: unknown, text: string) => {
        for (const { data } of JSON.parse(text).messages ?? []) {
          const goneAt = gone.get(JSON.stringify(data)) ?? Number.POSITIVE_INFINITY
          if (world.now() > goneAt + READ_MS) wrong(`the backend is told of ${data}, deleted at ${goneAt}`)
        }
        await sleep(pick([1, 20, 300]))
        const isTaken = integer(100) >= state.fails
        if (isTaken && !process.isDead) hear(text)
        await sleep(pick([1, 20]))
        const outcome = isTaken && integer(100) >= state.fails ? { kind: 'taken' } : { kind: 'failed', why: 'away' }
        return new Promise<any>(resolve => process.run(() => resolve(outcome)))
      }
      return Object.assign(post, { close() {} }) as any
    },
  }
}

/** Server-sent events, as a client reads them. */
function openEventStream(gateway: Gateway, arrival: any, keys: string[], lastId: string | undefined, world: any) {
  const positions = (lastId !== undefined && readCursor(lastId, keys)) || new Map()
  const socket: any = Object.assign(new EventEmitter(), {
    writable: true,
    writableNeedDrain: false,
    writableLength: 0,
    _handle: { bytesWritten: 0, writeQueueSize: 0 },
    text: '',
    cork() {},
    uncork() {},
    write(part: Buffer) {
      socket.text += part
      socket._handle.bytesWritten += part.length
      return true
    },
    end(part: Buffer) {
      socket.text += part
      socket.writable = false
    },
    destroy() {
      if (socket.isGone) return
      socket.isGone = true
      socket.writable = false
      socket.emit('close')
    },
  })
  const response: any = { socket, removeHeader() {}, writeHead() {}, write: () => {} }
  const stream = createEventStream({ response, headers: {}, idAfter: createCursor(keys, positions), world })
  gateway.gateway.streams.open(stream, arrival)
  return {
    stream,
    socket,
    positions,
    read(): { id?: string; frame: any; isClose: boolean }[] {
      const events = socket.text.split('\n\n')
      socket.text = events.pop()
      return events.flatMap((event: string) => {
        const lines = new Map(event.split('\n').map(line => line.split(/: (.*)/s) as unknown as [string, string]))
        const data = lines.get('data')
        return data ? [{ id: lines.get('id'), frame: JSON.parse(data), isClose: lines.get('event') === 'close' }] : []
      })
    },
  }
}

interface View {
  epoch: string
  /** `undefined` while it is not subscribed. */
  seq: number | undefined
  isAsked: boolean
  /** It was told that a message is kept which it was not sent: a gap is to follow. */
  isAhead: boolean
  hasPresence: boolean
  /** Since it last missed anything: what it was sent, and what it was told was deleted. */
  texts: Map<number, string>
  deleted: Set<number>
  members: { rev: number; count: number; by: Map<string, any> } | undefined
}

interface Shown {
  version: string | undefined
  bytes: Buffer | undefined
  order: number
}

type Kind = 'json' | 'bytes' | 'stream'
const STREAM_KEYS = [...ROOMS, ...KEYS]

const newView = (): View => ({
  epoch: '',
  seq: undefined,
  isAsked: false,
  isAhead: false,
  hasPresence: false,
  texts: new Map(),
  deleted: new Set(),
  members: undefined,
})

function createClient(system: System, number: number, person: Person, kind: Kind) {
  const { gateways, pick, integer, log, amiss, barred, published, now, world, revocations, deletedMs } = system
  const views = new Map<string, View>(ROOMS.map(room => [room, newView()]))
  /** Values that it holds; and its subscriptions to them. */
  const shown = new Map<string, Shown>()
  const values = new Set<string>()
  const joined = new Map<string, string>()
  const asked = new Map<number, { key: string; after: { epoch: string; seq: number } | undefined; last: boolean }>()
  const histories = new Map<number, number>()
  const joins = new Map<number, { room: string; name: string }>()
  const unanswered = new Map<number, { key: string; text: string }>()
  /** Texts that are not known to be kept. */
  const unsure: { key: string; text: string; messageId: string }[] = []
  const answered = new Map<string, number>()
  let requests = 0
  let messages = 0
  let lastId: string | undefined
  let readAt = 0
  /** What is read now was written since. */
  let readBefore = 0
  let gateway: Gateway | undefined
  let token = person.token
  let isRevoked = false
  let socket: FakeConnection | undefined
  let stream: ReturnType<typeof openEventStream> | undefined

  const viewOf = (key: string) => views.get(key) as View
  const say = (what: string, frame: unknown = '') =>
    void (
      amiss.length < 10 &&
      amiss.push(`at ${now()} ${number} (${person.name}, ${kind}) ${what}: ${JSON.stringify(frame)}`)
    )
  const isPlacing = (key: string) => [...asked.values()].some(question => question.key === key)

  function send(message: object) {
    const to = gateway
    const bytes = Buffer.from(JSON.stringify(message))
    const [byWebSocket, byStream] = [socket, stream]
    to?.process.run(() => {
      byWebSocket?.emit('message', bytes, false)
      byStream?.stream.hear(bytes)
    })
  }

  async function connect() {
    const free = gateways.filter(({ process }) => process.runs)
    if (free.length === 0) return
    const to = pick(free)
    if (person.sub && !person.token) {
      const jti = `${person.name}-${integer(1e9)}`
      const after = revocations.flatMap(each => ('sub' in each && each.sub === person.sub ? [each.before] : []))
      const issuedAt = Math.max(Math.floor(world.wallNow() / 1_000), ...after.map(Math.ceil))
      const text = await sign({ sub: person.sub, nowMs: issuedAt * 1_000, ttlSeconds: 3_000, jti })
      person.token = { text, issuedAt, jti }
    }
    token = person.token
    const headers = token ? { authorization: `Bearer ${token.text}` } : {}
    const request: any = { headers, socket: { remoteAddress: '127.0.0.1' } }
    const arrival = await to.gateway.streams.admission.admit(request)
    if (to.process.isDead) return
    if ('reason' in arrival) {
      if (!revocations.some(each => covers(each, { ...person, token }))) say('is refused', arrival)
      if (person.token === token) person.token = undefined
      return
    }
    if (to.revoked.some(each => covers(each, { ...person, token }))) say('is let in with a revoked token')
    gateway = to
    isRevoked = false
    if (kind === 'stream') {
      stream = openEventStream(to, arrival, STREAM_KEYS, lastId, world)
      shown.clear()
      for (const room of ROOMS) viewOf(room).isAsked = true
      for (const key of KEYS) values.add(key)
      const wanted = STREAM_KEYS.map(key => ({ key, after: stream?.positions.get(key) }))
      for (const { key, after } of wanted) if (ROOMS.includes(key)) subscribe(key, after)
      subscribeValues(KEYS)
    } else {
      socket = new FakeConnection()
      socket.protocol = kind === 'bytes' ? 'keycast.v1.bytes' : ''
      to.gateway.open(socket.asTransport, arrival)
      for (const [key, { isAsked }] of views) if (isAsked) subscribe(key)
      if (integer(4) === 0) shown.clear()
      if (values.size > 0) subscribeValues([...values])
    }
    for (const [room, name] of joined) join(room, name)
    joined.clear()
    for (const each of unsure.splice(0)) publish(each)
  }

  /** @param code as its gateway hears it */
  function disconnect(code: number) {
    read()
    const [to, byWebSocket, byStream] = [gateway, socket, stream]
    gateway = socket = stream = undefined
    asked.clear()
    histories.clear()
    joins.clear()
    for (const [id, { key, text }] of unanswered) {
      unsure.push({ key, text, messageId: idOf(id) })
      unanswered.delete(id)
    }
    to?.process.run(() => {
      byWebSocket?.emit('close', code, Buffer.alloc(0))
      byStream?.socket.destroy()
    })
  }

  /** By the number of the request that said it first. */
  const messageIds = new Map<number, string>()
  const idOf = (id: number) => messageIds.get(id) as string

  function publish(given?: { key: string; text: string; messageId: string }) {
    const id = ++requests
    const key = given?.key ?? pick(ROOMS)
    const text = given?.text ?? JSON.stringify(`${number}.${++messages}${'x'.repeat(integer(60))}`)
    const messageId = given?.messageId ?? `client-${number}-message-${messages}`
    messageIds.set(id, messageId)
    unanswered.set(id, { key, text })
    const known = published.get(text)
    published.set(text, { firstAt: known?.firstAt ?? now(), lastAt: now() })
    if (gateway?.revoked.some(each => covers(each, { ...person, token })) && !known) barred.add(text)
    send({ type: 'publish', id, key, messageId, data: JSON.parse(text) })
  }

  function subscribe(key: string, given?: { epoch: string; seq: number }) {
    const view = viewOf(key)
    const id = ++requests
    const isResumed = given === undefined && view.seq !== undefined && integer(6) > 0
    // Exactly at the edge of what is held, or beside it.
    const edge = { epoch: view.epoch, seq: Math.max(0, (view.seq ?? 3) - integer(6)) }
    const after = given ?? (isResumed ? { epoch: view.epoch, seq: view.seq as number } : undefined)
    const anew = pick<any>([{}, { last: 3 }, view.epoch === '' ? {} : { after: edge }])
    const entry = kind === 'stream' && given === undefined && !isResumed ? {} : (after && { after }) || anew
    if (integer(2) === 0) view.hasPresence = integer(3) > 0
    view.isAsked = true
    asked.set(id, { key, after: entry.after, last: entry.last !== undefined })
    send({ type: 'subscribe', id, keys: [{ key, ...entry, presence: view.hasPresence }] })
  }

  function subscribeValues(keys: string[]) {
    for (const key of keys) values.add(key)
    const named = keys.map(key => {
      const { version, order } = shown.get(key) ?? {}
      if (version === undefined) shown.delete(key)
      return version === undefined ? key : { key, version, order }
    })
    send({ type: 'subscribe', id: 'values', keys: named })
  }

  function join(room: string, name: string) {
    const id = ++requests
    joins.set(id, { room, name })
    const claim = person.sub === undefined ? `claim-of-somebody-000${person.name.length}` : undefined
    send({ type: 'join', id, key: room, name, claim })
  }

  function read() {
    if (!gateway || gateway.process.isDead) return
    readBefore = readAt
    readAt = now()
    socket?.emit('pong')
    for (const frame of socket?.read() ?? []) if (typeof frame === 'object') hear(frame)
    for (const { id, frame, isClose } of stream?.read() ?? []) {
      if (!isClose) hear(frame)
      if (id !== undefined) hearId(id)
    }
  }

  /** It stands for what the client was sent. */
  function hearId(id: string) {
    lastId = id
    const positions = readCursor(id, STREAM_KEYS)
    for (const room of ROOMS) {
      const { seq, epoch, isAsked } = viewOf(room)
      const position = positions?.get(room)
      if (isAsked && seq !== undefined && (position?.seq !== seq || position?.epoch !== epoch))
        say(`has ${room} up to ${seq}, and its cursor ${position?.seq}`, id)
    }
  }

  function hear(frame: any) {
    const { type, key, id } = frame
    if (isRevoked) return say('is sent something after it was revoked', frame)
    if (KEYS.includes(key)) return hearValue(frame)
    if (type === 'subscribed') for (const said of frame.keys) hearSubscribed(said, id)
    else if (type === 'message') hearMessage(frame)
    else if (type === 'gap') hearGap(frame)
    else if (type === 'history') hearHistory(frame)
    else if (type === 'members' || type === 'presence') hearMembers(frame)
    else if (type === 'published' || unanswered.has(id)) hearPublished(frame)
    else if (type === 'joined') {
      const { room, name } = joins.get(id) ?? {}
      joins.delete(id)
      if (room !== key) say('joined, not asked', frame)
      else joined.set(key, name as string)
    } else if (type === 'error') hearError(frame)
  }

  function hearError(frame: any) {
    const { key, id, code, subscribed, retryAfterMs } = frame
    joins.delete(id)
    histories.delete(id)
    const passing = ['journal_unavailable', 'too_many_waiting', 'capacity', 'other_epoch', 'name_taken', 'rate_limited']
    if (!passing.includes(code)) say('an error', frame)
    if (id !== undefined) return
    if (subscribed === false && key !== undefined && viewOf(key)?.isAsked) say('its subscription ended', frame)
    if (retryAfterMs === undefined && key !== undefined) joined.delete(key)
  }

  function hearSubscribed({ key, epoch, seq, count, recovered }: any, id: number) {
    const question = asked.get(id)
    if (!question || question.key !== key) return
    for (const [other, each] of asked) if (each.key === key && other <= id) asked.delete(other)
    const view = viewOf(key)
    const { after } = question
    if (recovered && (!after || after.seq + count !== seq)) say('is not recovered', [question, seq, count])
    if (after && !recovered) void checkLost(key, after)
    const isWhole = recovered && after?.epoch === view.epoch && after?.seq === view.seq
    if (!isWhole) forgetTexts(view)
    Object.assign(view, { epoch, seq: seq - count, isAhead: false, members: undefined })
  }

  async function checkLost(key: string, after: { epoch: string; seq: number }) {
    const head = await log.memory.head(key)
    if (after.epoch === head.epoch && after.seq + 1 >= head.oldest && after.seq <= head.seq)
      say(`could have been recovered of ${JSON.stringify(head)}`, after)
  }

  function forgetTexts(view: View) {
    view.texts.clear()
    view.deleted.clear()
  }

  function hearMessage(frame: any) {
    const { key, seq, data, deleted, deletes } = frame
    const view = viewOf(key)
    if (view.seq === undefined || !view.isAsked) return
    if (seq !== view.seq + 1) say(`is out of order after ${view.seq}`, frame)
    if (view.isAhead) say('heard that it is published before', frame)
    view.seq = seq
    const kept = log.messages.get(`${key} ${seq}`)
    if (!kept) return say('never kept', frame)
    if (deletes) {
      for (const [first, last] of deletes) for (let gone = first; gone <= last; gone++) view.deleted.add(gone)
    } else if (!deleted) {
      if (JSON.stringify(data) !== kept.data) say(`is not ${kept.data}`, frame)
      if (view.deleted.has(seq)) say('it knows that was deleted', frame)
      if (readBefore > kept.deletedAt + deletedMs) say(`it was deleted at ${kept.deletedAt}`, frame)
      view.texts.set(seq, kept.data)
    }
  }

  function hearGap({ key, epoch, seq }: any) {
    const view = viewOf(key)
    if (view.seq === undefined) return
    const { seq: before, epoch: epochBefore } = view
    void log.memory.head(key).then(head => {
      if (epoch === epochBefore && before + 1 >= head.oldest) say(`a gap that is none after ${before}`, head)
    })
    forgetTexts(view)
    Object.assign(view, { seq, epoch, isAhead: false })
  }

  function hearHistory(frame: any) {
    const { key, id, messages } = frame
    const askedAt = histories.get(id) ?? Number.NEGATIVE_INFINITY
    histories.delete(id)
    const first = messages[0]?.seq
    if (messages.some(({ seq }: any, index: number) => seq !== first + index)) say('a hole in a history', frame)
    for (const { seq, data, deleted, deletes } of messages) {
      const kept = log.messages.get(`${key} ${seq}`)
      if (deleted || deletes) continue
      if (JSON.stringify(data) !== kept?.data) say(`a history has another than ${kept?.data}`, { seq, data })
      else if (kept && kept.deletedAt < askedAt)
        say(`a history has what was deleted at ${kept.deletedAt}`, { seq, data })
    }
  }

  function hearPublished(frame: any) {
    const { type, key, id, seq, epoch, duplicate, code } = frame
    const of = unanswered.get(id)
    unanswered.delete(id)
    if (!of) return say('answered twice', frame)
    if (type !== 'published') {
      const passing = ['journal_unavailable', 'publish_unknown', 'too_many_waiting', 'rate_limited', 'capacity']
      if (!passing.includes(code)) say('an error', frame)
      if (code === 'publish_unknown' || integer(2) === 0) unsure.push({ ...of, messageId: idOf(id) })
      return
    }
    const kept = log.messages.get(`${key} ${seq}`)
    if (kept?.data !== of.text) say(`published as ${kept?.data}`, frame)
    if (duplicate) return
    if (seq <= (answered.get(key) ?? 0)) say(`answers out of order after ${answered.get(key)}`, frame)
    answered.set(key, seq)
    const view = viewOf(key)
    if (view.isAsked && view.seq !== undefined && view.epoch === epoch && view.seq < seq && !isPlacing(key))
      view.isAhead = true
  }

  function hearMembers(frame: any) {
    const { type, key, rev, count, members, joined: came, left } = frame
    const view = viewOf(key)
    if (!view.isAsked || isPlacing(key)) return
    if (type === 'members') {
      view.members = { rev, count, by: new Map(members?.map((each: any) => [each.id, each])) }
    } else if (!view.members) return say('members changed that it was not told of', frame)
    else {
      if (view.members.rev !== rev - 1) say(`a hole after ${view.members.rev}`, frame)
      const { by } = view.members
      for (const each of left ?? []) if (!by.delete(each.id ?? each)) say('left who was not there', frame)
      for (const each of came ?? []) by.set(each.id, each)
      view.members = { rev, count, by }
    }
    if (view.members.by.size !== count) say('miscounted', frame)
  }

  function hearValue(frame: any) {
    const { type, key, version, order, from, code } = frame
    const before = shown.get(key)
    if (frame.id === 'got') return hearGot(frame)
    if (!values.has(key)) return
    const kept = log.values.get(key)?.find(each => each.order === order)
    if (type === 'value' || type === 'delta') {
      if (type === 'delta' && before?.version !== from) return say(`a delta, not from ${before?.version}`, frame)
      const whole = frame.bytes ?? Buffer.from(JSON.stringify(frame.data))
      const bytes = type === 'delta' ? Buffer.from(applyDelta(before?.bytes as Buffer, frame.bytes)) : whole
      if (!kept || kept.text !== String(bytes) || kept.version !== version)
        say(`never kept so, but ${kept?.text}`, frame)
      if (before && order < before.order) say(`an older value after ${before.order}`, frame)
      shown.set(key, { version, bytes, order })
    } else if (type === 'current') {
      if (before?.version !== version) say(`current, but it holds ${before?.version}`, frame)
      if (before && order > before.order) before.order = order
    } else if (code === 'not_found') {
      if (before) {
        const wasRemoved = log.values.get(key)?.some(each => each.text === undefined && each.order > before.order)
        if (before.version !== undefined && !wasRemoved) say(`not found after ${before.order}`, frame)
        Object.assign(before, { version: undefined, bytes: undefined })
      }
    } else if (type === 'error' && !['journal_unavailable'].includes(code)) say('an error', frame)
  }

  function hearGot(frame: any) {
    const { type, key, order, version } = frame
    if (type !== 'value') return
    const kept = log.values.get(key)?.find(each => each.order === order)
    if (kept?.version !== version) say(`never kept so, but ${kept?.text}`, frame)
    const before = shown.get(key)
    if (before && values.has(key) && order < before.order) say(`got an older value than ${before.order}`, frame)
  }

  return {
    number,
    person,
    kind,
    views,
    shown,
    values,
    joined,
    unsure,
    unanswered,
    read,
    connect,
    disconnect,
    unstick: () => socket?.stuck && socket.drain(),
    isOf: (revocation: Revocation) => gateway !== undefined && covers(revocation, { ...person, token }),
    get gateway() {
      return gateway
    },
    /** Its gateway has ended it: with which code. */
    closedWith() {
      if (socket?.closed) return socket.closed.code
      if (stream && !stream.socket.writable) return 1
      return socket?.terminated ? 1006 : undefined
    },
    /** From now on it is to be sent nothing. */
    revoke() {
      isRevoked = true
      joined.clear()
    },
    lose() {
      gateway = socket = stream = undefined
      asked.clear()
      histories.clear()
      joins.clear()
      for (const [id, { key, text }] of unanswered) unsure.push({ key, text, messageId: idOf(id) })
      unanswered.clear()
    },
    async act() {
      if (!gateway) return connect()
      const key = pick(ROOMS)
      const what = integer(24)
      if (what < 7) publish(unsure.length > 0 && integer(3) === 0 ? unsure.shift() : undefined)
      else if (what < 10) subscribe(key)
      else if (what === 10) {
        const view = viewOf(key)
        if (kind === 'stream' || !view.isAsked) return
        read()
        Object.assign(view, { isAsked: false, seq: undefined, members: undefined })
        forgetTexts(view)
        for (const [id, each] of asked) if (each.key === key) asked.delete(id)
        send({ type: 'unsubscribe', id: ++requests, keys: [key] })
      } else if (what === 11) subscribeValues([pick(KEYS)])
      else if (what === 12) {
        const value = pick(KEYS)
        if (kind === 'stream') return
        values.delete(value)
        send({ type: 'unsubscribe', id: ++requests, keys: [value] })
      } else if (what < 15) {
        if (!socket) return
        socket.stuck = integer(2) === 0
        if (!socket.stuck) socket.drain()
      } else if (what === 15) {
        const code = pick([1000, 1006])
        if (code === 1000) joined.clear()
        disconnect(code)
        if (integer(3) > 0) await connect()
      } else if (what < 18) {
        const before = viewOf(key).seq ?? 5
        histories.set(++requests, now())
        const range = pick<any>([{}, { before }, { after: Math.max(0, before - 3) }])
        send({ type: 'history', id: requests, key, limit: pick([1, 3, 50]), ...range })
      } else if (what < 21) join(key, pick(['Ann', 'Bob', 'Cal']))
      else if (what === 21 && !joins.size) {
        joined.delete(key)
        send({ type: 'leave', id: ++requests, key })
      } else if (what === 22) send({ type: 'get', id: 'got', key: pick(KEYS) })
    },
  }
}

/** Waits for the next version of a key again and again, over HTTP, at any gateway. */
function createWaiter({ gateways, pick, log, wrong, integer }: System, key: string) {
  const held = { version: '', order: 0, edge: '' }
  let pending: { gateway: Gateway } | undefined

  function hear(status: number, headers: Record<string, unknown>, body: string) {
    const [order, edge] = String(headers['keycast-cursor'] ?? '').split('.')
    if (status === 200) {
      const version = JSON.parse(String(headers.etag))
      const kept = log.values.get(key)?.find(each => each.order === Number(order))
      if (kept?.text !== body || kept.version !== version) wrong(`a wait for ${key} brought ${body}, not ${kept?.text}`)
      if (Number(order) <= held.order) wrong(`a wait for ${key} brought ${order} after ${held.order}`)
      Object.assign(held, { version, order: Number(order), edge })
    } else if (status === 204) held.edge = edge
    else if (status === 404) held.edge = ''
    else if (status < 500) wrong(`a wait for ${key} brought ${status} ${body}`)
  }

  return {
    held,
    key,
    act() {
      if (pending?.gateway.process.isDead) pending = undefined
      if (pending) return
      const gateway = pick(gateways)
      if (!gateway.process.runs) return
      const one = { gateway }
      pending = one
      if (held.edge === '') held.order = 0
      const url =
        held.edge === ''
          ? `/v1/values/${key}`
          : `/v1/wait/${key}?after=${held.version}&cursor=${held.order}.${held.edge}`
      gateway.process.run(() => {
        void gateway.app
          .inject({ method: 'GET', url, headers: integer(2) ? { 'accept-encoding': 'br' } : {} })
          .then(answer => {
            if (pending !== one) return
            pending = undefined
            hear(answer.statusCode, answer.headers, answer.body)
          })
      })
    },
  }
}

/** A backend that hands values over, one after the other. */
function createCaller(
  { gateways, pick, integer, now, amiss, ranks }: System & { ranks: Map<string, number> },
  name: string,
  key: string,
) {
  const last = { text: '' as string | undefined, number: 0, rank: undefined as number | undefined, at: 0, outcome: '' }
  let isBusy = false
  const numberOf = (text: string) => (JSON.parse(text).by === name ? JSON.parse(text).number : undefined)

  return {
    name,
    key,
    last,
    numberOf,
    isBusy: () => isBusy,
    act() {
      const gateway = pick(gateways)
      if (isBusy || !gateway.process.runs) return
      if (last.outcome !== 'unknown' || integer(3) > 0) {
        last.number++
        last.text = JSON.stringify({ by: name, number: last.number, text: 'the same '.repeat(20) })
        if (key === KEYS[2] && integer(4) === 0) last.text = undefined
        last.rank = key === KEYS[1] ? (ranks.get(key) ?? 0) + 1 : undefined
        if (last.rank !== undefined) ranks.set(key, last.rank)
      }
      const body = last.text === undefined ? undefined : Buffer.from(last.text)
      const version = `${name}-${key.slice(-1)}-${last.number}`
      const content = body && { version, contentType: 'application/json', format: 'json' as const, body }
      isBusy = true
      Object.assign(last, { at: now(), outcome: 'under way' })
      const { rank } = last
      gateway.process.run(async () => {
        const taken: any = await gateway.gateway.backbone.handOver({ key, content, rank }, { deadlineMs: HAND_OVER_MS })
        if (gateway.process.isDead) return
        isBusy = false
        last.outcome = taken.outcome ?? 'unknown'
        if (!taken.outcome && taken.code !== 'journal_unavailable')
          amiss.push(`${name} is told ${JSON.stringify(taken)}`)
        if (taken.outcome === 'older' && !(taken.rank > (rank ?? 0)))
          amiss.push(`${name} is told ${JSON.stringify(taken)}`)
      })
    },
    /** The gateway that it called has died. */
    giveUp() {
      if (!isBusy) return
      isBusy = false
      last.outcome = 'unknown'
    },
  }
}

const seeds: [Mode, number][] = [
  ['nothing', 1],
  ['network', 315],
  ['everything', 2],
]

test.each(seeds)('all that a journal keeps, and what goes wrong is %s, seed %i', live)

test(
  'all that a journal keeps, for as long as is asked',
  async () => {
    for (const seed of furtherSeeds()) for (const mode of Object.keys(modes) as Mode[]) await live(mode, seed)
  },
  timeoutMs,
)

async function live(mode: Mode, seed: number) {
  const system = { ...(await setUp(seed, mode)), ranks: new Map<string, number>() }
  const { integer, pick, settle, chance, log, amiss, wrong, names, journals, gateways, backend, now } = system
  const { revocations, rooms, barred, published, world } = system
  const faulty = (fault: string) => (modes[mode].faults as string[]).includes(fault)
  const persons: Person[] = ['ann', 'ann', 'bob', '', 'cal'].map((sub, at) => ({
    name: sub || `guest${at}`,
    sub: sub || undefined,
    token: undefined,
  }))
  persons[1] = persons[0]
  const kinds: Kind[] = ['json', 'stream', 'bytes', 'json', 'stream']
  const clients = persons.map((person, number) => createClient(system, number, person, kinds[number]))
  const waiters = KEYS.map(key => createWaiter(system, key))
  const callers = KEYS.flatMap(key => ['a', 'b'].map(name => createCaller(system, name, key)))
  let lossShare = 0
  chance.loses = () => integer(1_000) < lossShare
  for (const client of clients) await client.connect()

  let standing: { process: Process; until: number } | undefined
  const pass = async (ms: number) => {
    const end = now() + ms
    if (standing && standing.until <= end) {
      await system.pass(Math.max(0, standing.until - now()))
      standing.process.goOn(integer(2) === 0)
      standing = undefined
    }
    await system.pass(end - now())
  }
  /** Calls a gateway as an operator does, until that says that it is done. */
  const calling = new Set<Promise<void>>()
  function call(run: (gateway: Gateway) => Promise<boolean>) {
    const one = (async () => {
      for (;;) {
        const gateway = pick(gateways)
        const done = await new Promise<boolean>(resolve => {
          system.after(12_000, () => resolve(false))
          gateway.process.run(() => void run(gateway).then(resolve))
        })
        if (done) return
        await new Promise<void>(resolve => system.after(1_000, resolve))
      }
    })()
    calling.add(one)
    void one.then(() => calling.delete(one))
  }
  const isHeld = ({ room, seq }: KeptMessage, held: { seq: number; deleted?: true; deletes?: unknown }[]) =>
    held.some(each => each.seq === seq && !each.deleted && !each.deletes && room)

  const removing = new Set<string>()
  function remove(which: any, isMeant: (kept: KeptMessage) => boolean) {
    removing.add(which.user)
    const meant = [...log.messages.values()].filter(isMeant)
    call(async ({ gateway, process }) => {
      const outcome: any = await gateway.rooms.deleteMessages(which, { deadlineMs: 5_000 })
      if (process.isDead || outcome.messages === undefined) return false
      removing.delete(which.user)
      for (const kept of meant) {
        if (kept.data !== 'null') backend.gone.set(kept.data, now())
        if (isHeld(kept, await log.held(kept.room))) wrong(`${JSON.stringify(which)} left ${JSON.stringify(kept)}`)
      }
      return true
    })
  }

  function revoke() {
    const person = pick(persons)
    if (!person.token || !person.sub) return
    const before = world.wallNow() / 1_000 + pick([0, 0.5, 3])
    const revocation: Revocation = integer(2) === 0 ? { jti: person.token.jti } : { sub: person.sub, before }
    revocations.push(revocation)
    call(async gateway => {
      const own = clients.filter(client => client.gateway === gateway && client.isOf(revocation))
      for (const client of own) client.read()
      gateway.gateway.revoke(revocation)
      gateway.revoked.push(revocation)
      for (const client of own) {
        if (client.closedWith() === undefined) wrong(`${client.number} is not closed, and revoked`)
        client.read()
        client.revoke()
      }
      return (await gateway.gateway.shareRevocation?.(revocation)) === undefined
    })
  }

  async function endJournal(isGraceful: boolean) {
    const name = pick(names)
    const { process, journal } = journals.get(name) as NonNullable<ReturnType<typeof journals.get>>
    if (isGraceful && process.runs) {
      await system.over(journal.stop())
    }
    process.die()
    await pass(pick([0.25, 500, 3_000]))
    await system.startJournal(name)
  }

  async function endGateway() {
    const number = integer(GATEWAYS)
    const { process } = gateways[number]
    process.die()
    for (const client of clients) if (client.gateway?.process === process) client.lose()
    for (const caller of callers) caller.giveUp()
    await system.replace(number)
  }

  function stall() {
    const process = pick([...gateways, ...journals.values()]).process
    if (standing || !process.runs) return
    process.stand()
    standing = { process, until: now() + pick([0.25, 40, 480, 900, 2_500, 5_000]) }
  }

  const faults: [string, () => unknown][] = [
    ['log', () => (log.failing.reads = pick([0, 0, 3, 30]))],
    ['log', () => (log.failing.appends = pick([0, 0, 3, 30]))],
    ['log', () => (log.failing.hints = pick([0, 10, 100]))],
    ['log', () => (backend.state.fails = pick([0, 20, 100]))],
    ['losses', () => (lossShare = pick([0, 0, 2, 50]))],
    ['routes', () => pick(gateways).list([pick(names)])],
    ['routes', () => pick(gateways).list(names)],
    ['stalls', stall],
    ['stalls', stall],
    ['deaths', () => endJournal(true)],
    ['deaths', () => endJournal(false)],
    ['deaths', endGateway],
  ]
  const possible = faults.filter(([fault]) => faulty(fault)).map(([, run]) => run)

  const acts: (() => unknown)[] = [
    ...Array.from({ length: 24 }, () => () => pick(clients).act()),
    ...Array.from({ length: 6 }, () => () => pick(callers).act()),
    async () => {
      const room = pick(ROOMS)
      const { seq } = await log.memory.head(room)
      const seqs = [Math.max(1, seq - integer(3))]
      remove({ room, seqs }, kept => kept.room === room && seqs.includes(kept.seq))
    },
    () => {
      const room = pick(ROOMS)
      remove({ room }, kept => kept.room === room)
    },
    () => {
      const user = pick(['ann', 'bob'])
      // A second call waits for the same.
      if (!removing.has(user)) remove({ user }, ({ from }) => from === user)
    },
    revoke,
    () => {
      const text = JSON.stringify(`backend ${integer(1e9)}`)
      published.set(text, { firstAt: now(), lastAt: now() })
      const { process, gateway } = pick(gateways)
      process.run(
        () => void gateway.publishes.fromBackend({ key: pick(ROOMS), from: pick(['ann', 'bob']), data: text }),
      )
    },
    () => {
      if (integer(4) > 0) return
      rooms[pick(Object.keys(rooms))].history = system.history()
      for (const { process, journal } of journals.values()) process.run(() => journal.reconfigure())
    },
  ]

  async function look(share: number) {
    for (const client of clients) {
      if (integer(100) < share) client.read()
      if (client.closedWith() === undefined) continue
      client.read()
      client.disconnect(pick([client.closedWith() as number, 1006]))
      client.joined.clear()
    }
    for (const waiter of waiters) waiter.act()
  }

  for (let step = 0; step < 250 && amiss.length === 0; step++) {
    if (possible.length > 0 && integer(14) === 0) await pick(possible)()
    else await pick(acts)()
    await pick([settle, () => pass(pick([0, 0.25, 0.5, 1, 20, 100, 300]))])()
    if (integer(40) === 0) await pass(pick([1_000, 5_000, 12_000]))
    await look(60)
  }

  // From now on all is well.
  lossShare = 0
  Object.assign(log.failing, { reads: 0, appends: 0, hints: 0 })
  backend.state.fails = 0
  standing?.process.goOn(true)
  standing = undefined
  for (const { list } of gateways) list(names)
  for (let half = 0; half < 2 * CALM_SECONDS && amiss.length === 0; half++) {
    await pass(500)
    for (const client of clients) {
      client.unstick()
      if (!client.gateway && half < CALM_SECONDS) await client.connect()
    }
    await look(100)
  }
  expect([mode, seed, amiss]).toEqual([mode, seed, []])
  expect(calling.size).toBe(0)

  for (const client of clients)
    if (revocations.some(client.isOf)) wrong(`${client.number} goes on with a token that was revoked`)
  await checkMessages()
  checkValues()
  checkMembers()
  expect([mode, seed, amiss]).toEqual([mode, seed, []])

  for (const client of clients) client.disconnect(pick([1000, 1006]))
  // Requests that wait do so for 20 s, and their keys are watched for 5 s more.
  await pass(27_000)
  const levelsOf = (levels: Levels, wanted: string[]) => wanted.map(name => [name, levels.get(name)?.()])
  for (const { levels } of journals.values())
    expect(levelsOf(levels, ['members', 'member_rooms'])).toEqual([
      ['members', 0],
      ['member_rooms', 0],
    ])
  for (const { levels } of gateways)
    expect(levelsOf(levels, ['joins', 'watched_member_rooms', 'watched_rooms', 'subscriptions'])).toEqual([
      ['joins', 0],
      ['watched_member_rooms', 0],
      ['watched_rooms', 0],
      ['subscriptions', 0],
    ])
  for (const { gateway } of gateways) await system.over(gateway.stop())

  async function checkMessages() {
    const SLACK_MS = 3_500
    const seen = new Map<string, KeptMessage>()
    for (const kept of log.messages.values()) {
      const { data, at } = kept
      if (barred.has(data)) wrong(`kept after it was revoked: ${JSON.stringify(kept)}`)
      const said = published.get(data)
      if (!said) continue
      if (at > said.lastAt + PUBLISH_MS + SLACK_MS) wrong(`kept at ${at}, said last at ${said.lastAt}: ${data}`)
      const before = seen.get(data)
      if (before && at - before.at < 300_000) wrong(`kept twice: ${JSON.stringify([before, kept])}`)
      seen.set(data, kept)
    }
    for (const room of ROOMS) {
      const head = await log.memory.head(room)
      const held = new Map((await log.held(room)).map(each => [each.seq, each]))
      for (const { number, views, unanswered } of clients) {
        if (unanswered.size > 0) wrong(`${number} has no answer: ${JSON.stringify([...unanswered])}`)
        const view = views.get(room) as View
        if (!view.isAsked) continue
        if (view.seq !== head.seq) wrong(`${number} has ${room} up to ${view.seq}, not ${head.seq}`)
        for (const [seq] of view.texts) {
          const wasDeleted = log.messages.get(`${room} ${seq}`)?.deletedAt !== Number.POSITIVE_INFINITY
          if (wasDeleted && !view.deleted.has(seq)) wrong(`${number} was not told that ${room} ${seq} was deleted`)
        }
        for (const seq of view.deleted) {
          const of = held.get(seq)
          if (of && !of.deleted && !of.deletes) wrong(`${number} was told that ${room} ${seq} was deleted`)
        }
      }
    }
    for (const { room, seq, isTold, deletedAt } of log.messages.values())
      if (isTold && deletedAt === Number.POSITIVE_INFINITY && !backend.told.get(room)?.has(seq))
        wrong(`the backend was never told of ${room} ${seq}`)
  }

  function checkValues() {
    for (const key of KEYS) {
      const all = log.values.get(key) ?? []
      const latest = all.at(-1)
      for (const { number, shown, values, kind } of clients) {
        if (!values.has(key)) continue
        const { version } = shown.get(key) ?? {}
        if (version !== latest?.version) wrong(`${number} (${kind}) has ${key} ${version}, not ${latest?.version}`)
      }
      const waiter = waiters.find(each => each.key === key)
      const has = waiter?.held.edge === '' ? undefined : waiter?.held.order
      if (has !== (latest?.text === undefined ? undefined : latest.order))
        wrong(`a wait has ${key} ${has}, not ${latest?.order}`)
      for (const caller of callers.filter(each => each.key === key)) {
        let before = 0
        for (const { text, at } of all) {
          const number = text === undefined ? undefined : caller.numberOf(text)
          if (number === undefined) continue
          if (number < before) wrong(`${caller.name}'s ${key} ${number} was kept after ${before}`)
          before = number
          if (number === caller.last.number && at > caller.last.at + HAND_OVER_MS + 3_500)
            wrong(`${caller.name}'s ${key} ${number} was kept at ${at}, after ${caller.last.at}`)
        }
        if (caller.last.outcome === 'taken' && (latest?.at ?? 0) < caller.last.at)
          wrong(`${caller.name}'s last of ${key} was taken, and the latest is ${JSON.stringify(latest)}`)
      }
      const ranks = all.flatMap(({ rank }) => rank ?? [])
      if (ranks.some((rank, index) => rank < ranks[index - 1])) wrong(`${key} was kept as ${ranks}`)
    }
  }

  function checkMembers() {
    for (const room of ROOMS) {
      const there = new Map<string, number>()
      for (const { joined, person } of clients)
        if (joined.has(room)) there.set(person.name, (there.get(person.name) ?? 0) + 1)
      const expected = JSON.stringify([...there.values()].sort())
      for (const { number, views } of clients) {
        const view = views.get(room)
        if (!view?.isAsked || !view.hasPresence) continue
        const tabs = JSON.stringify([...(view.members?.by.values() ?? [])].map(each => each.tabs).sort())
        if (tabs !== expected) wrong(`${number} sees ${tabs} in ${room}, not ${expected}`)
      }
      const { count = 0 } = backend.members.get(room) ?? {}
      // Where gateways disagree about journals each tells of its own part, and one that died of nobody who left since.
      const isWhole = !faulty('routes') && !faulty('deaths')
      if (room.startsWith('told') && isWhole && count !== there.size)
        wrong(`the backend sees ${count} in ${room}, not ${there.size}`)
    }
  }
}
