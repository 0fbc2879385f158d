// For tests: those who use gateways and journals at random, and look at all they are told: clients by WebSocket and by event
// stream, who wait over HTTP, and backends that hand values over.
import { EventEmitter } from 'node:events'
import { applyDelta } from 'fossil-delta'
import { sign } from './access/test-tokens.ts'
import { createCursor, readCursor } from './doors/stream/cursor.ts'
import {
  covers,
  type Gateway,
  HAND_OVER_MS,
  KEYS,
  type Person,
  type Revocation,
  ROOMS,
  type System,
} from './journal-system.fixture.ts'
import { FakeConnection } from './test-support.ts'
import { createEventStream } from './transport/event-stream.ts'

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

export interface View {
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

export type Kind = 'json' | 'bytes' | 'stream'
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

export function createClient(system: System, number: number, person: Person, kind: Kind) {
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
export function createWaiter({ gateways, pick, log, wrong, integer }: System, key: string) {
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
export function createCaller(
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
