// A journal and two gateways in one process, with histories of a few messages, reads that fail or take long, deletions, a
// network that loses things, and clients that do not read and come back at either gateway: each is sent every message once and in
// order, or is told that some are missing, and only where they are.
import { createHub, createRoomsBackbone, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { type JournalNamespace, withReserved } from '@keycast/service'
import { createRandom } from '../../test/support/random.js'
import { createJournal } from '../journal/journal.ts'
import type { Log, Publish } from '../journal/log/log.ts'
import { createMemoryLog } from '../journal/log/memory/memory.ts'
import { createTestGateway, noMetrics } from './test-support.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
const ROOMS = ['room:1', 'room:2', 'room:3']

async function setUp(seed: number) {
  const { integer, pick } = createRandom(seed)
  const network = createMemoryNetwork()
  const world = {
    ...network.world,
    random: () => integer(1_000) / 1_000,
    wallNow: () => 1_700_000_000_000 + Math.floor(network.now()),
  }
  const history = {
    messages: pick([2, 5, 100]),
    ageMs: pick([5, 1_000, 60_000]),
    bytes: pick([300, 1_000, 1e6]),
  }
  const room = {
    name: 'room',
    source: 'journal',
    history,
    bytesMax: 1_000,
    publish: 'client',
    members: 'none',
    names: 'any',
  }
  const given = {
    get: (name: string) => (name === 'room' ? (room as unknown as JournalNamespace) : undefined),
    names: ['room'],
  }
  const namespaces = withReserved(given)
  const memory = createMemoryLog({ ...world, bytesMax: 2 ** 30 })
  /** By room and seq. */
  const kept = new Map<string, string>()
  const failing = { share: 0 }
  const late = async (isRead: boolean) => {
    if (integer(3) === 0) await new Promise<void>(resolve => world.after(pick([0.25, 1, 5, 40, 900]), resolve))
    if (isRead && integer(100) < failing.share) throw new Error('away')
  }
  const noteKept = (name: string, seq: number, data: unknown) => kept.set(`${name} ${seq}`, String(data))
  const log: Log = {
    ...memory,
    async append(publishes: Publish[]) {
      await late(false)
      const outcomes = await memory.append(publishes)
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.error === undefined && !outcome.duplicate)
          noteKept(publishes[index].room, outcome.position.seq, publishes[index].data)
      }
      await late(false)
      return outcomes
    },
    async delete(name, ...how) {
      const deletion = await memory.delete(name, ...how)
      if ('notice' in deletion && deletion.notice) noteKept(name, deletion.notice.message.seq, 'notice')
      return deletion
    },
    async read(...how) {
      if (integer(2) === 0) await late(true)
      const found = await memory.read(...how)
      await late(true)
      return found
    },
    async head(name) {
      await late(true)
      const found = await memory.head(name)
      await late(true)
      return found
    },
  }

  async function startJournal() {
    const hub = createHub({ codec: roomsCodec, bind: network.bindOf('n1'), log: silent, ...world })
    const journal = createJournal({
      ...world,
      namespaces,
      hub,
      log,
      metrics: noMetrics as any,
      report: silent,
      shortenMs: 0,
    })
    await journal.start()
    return journal
  }
  await startJournal()
  const operator = createRoomsBackbone({
    ...world,
    nodeSource: { start: async found => found(['n1']), stop() {} },
    dialOf: network.dialOf,
    log: silent,
    events: { onHead() {}, onMessages() {}, onGap() {}, onFailed() {} },
  })
  await operator.start()
  const gateways: ReturnType<typeof createTestGateway>[] = []
  for (let count = 0; count < 2; count++) {
    const test = createTestGateway({
      world,
      rooms: { room: room as any },
      settings: { tailBytesMax: pick([1_000, 20_000, 2 ** 20]) },
      journal: {
        backbone: (events: any) =>
          createRoomsBackbone({
            ...world,
            nodeSource: { start: async found => found(['n1']), stop() {} },
            dialOf: network.dialOf,
            log: silent,
            events,
          }),
      } as any,
    })
    const started = test.gateway.start()
    await network.pass(4_000)
    await started
    gateways.push(test)
  }
  return {
    ...network,
    integer,
    pick,
    kept,
    memory,
    failing,
    gateways,
    async deleteIn(room: string, seqs: number[] | undefined) {
      void operator.deleteMessages({ room, seqs }, { deadlineMs: 5_000 })
      await network.settle()
    },
  }
}

type System = Awaited<ReturnType<typeof setUp>>

interface View {
  epoch: string
  /** `undefined` while it is not subscribed. */
  seq: number | undefined
  isAsked: boolean
  /** It was told that a message is kept which it was not sent: a gap is to follow. */
  isAhead: boolean
}

async function openClient(system: System, number: number) {
  const { gateways, pick, integer, kept, memory } = system
  const views = new Map<string, View>()
  const amiss: string[] = []
  let requests = 0
  const published = new Map<number, { key: string; text: string; isAnswered: boolean }>()
  /** Per room, the publishes in the order of sending, and seqs in the order of answers. */
  const answered = new Map<string, number[]>()
  let client = await pick(gateways).connect()
  /** Positions asked for. */
  const asked = new Map<number, { key: string; after: { epoch: string; seq: number } | undefined }>()

  const viewOf = (key: string) => {
    const view = views.get(key) ?? { epoch: '', seq: undefined, isAsked: false, isAhead: false }
    views.set(key, view)
    return view
  }

  function subscribe(key: string) {
    const view = viewOf(key)
    const id = ++requests
    const after = view.seq === undefined || integer(6) === 0 ? undefined : { epoch: view.epoch, seq: view.seq }
    asked.set(id, { key, after })
    view.isAsked = true
    client.send({ type: 'subscribe', id, keys: [after ? { key, after } : pick<any>([key, { key, last: 3 }])] })
  }

  async function reconnect() {
    client.connection.terminate()
    client.connection.emit('close', 1006, Buffer.alloc(0))
    client = await pick(gateways).connect()
    for (const publish of published.values()) publish.isAnswered = true
    asked.clear()
    for (const [key, view] of views) if (view.isAsked) subscribe(key)
  }

  async function read() {
    client.connection.emit('pong')
    for (const frame of client.connection.read()) {
      if (typeof frame !== 'object') continue
      const { type, key, seq, id, data } = frame
      const say = (what: string) =>
        amiss.push(`${number} ${what}: ${JSON.stringify(frame)} at ${JSON.stringify(views.get(key))}`)
      if (type === 'subscribed') {
        for (const said of frame.keys) {
          const question = asked.get(id)
          if (!question || question.key !== said.key) continue
          const view = viewOf(said.key)
          for (const [other, each] of asked) if (each.key === said.key && other <= id) asked.delete(other)
          const { after } = question
          if (said.recovered && (!after || after.seq + said.count !== said.seq))
            say(`not recovered from ${JSON.stringify(after)}`)
          if (after && !said.recovered) {
            const head = await memory.head(said.key)
            if (after.epoch === head.epoch && after.seq + 1 >= head.oldest)
              say(`recovered of ${JSON.stringify(head)} ${JSON.stringify(after)}`)
          }
          view.epoch = said.epoch
          view.isAhead = false
          view.seq = said.seq - said.count
        }
      } else if (type === 'message') {
        const view = viewOf(key)
        if (view.seq === undefined) {
          // Of a room that it left, some were under way.
          if (view.isAsked && view.epoch === '') say('a message before subscribed')
          continue
        }
        if (seq !== view.seq + 1) say('out of order')
        if (view.isAhead) say('published before its message')
        view.seq = seq
        const expected = kept.get(`${key} ${seq}`)
        if (expected === undefined) say('never kept')
        else if (!frame.deleted && !frame.deletes && JSON.stringify(data) !== expected) say(`another than ${expected}`)
      } else if (type === 'gap') {
        const view = viewOf(key)
        const head = await memory.head(key)
        if (view.seq !== undefined && frame.epoch === view.epoch && view.seq + 1 >= head.oldest)
          say(`a gap that is none ${JSON.stringify(head)}`)
        view.seq = seq
        view.epoch = frame.epoch
        view.isAhead = false
      } else if (type === 'published' || (type === 'error' && published.has(id))) {
        const publish = published.get(id)
        if (publish?.isAnswered) say('answered twice')
        if (publish) publish.isAnswered = true
        if (type === 'published' && !frame.duplicate) {
          const seqs = answered.get(key) ?? []
          if (seqs.length > 0 && (seqs.at(-1) as number) >= seq) say(`answers out of order ${seqs.at(-1)}`)
          seqs.push(seq)
          answered.set(key, seqs)
          if (publish && kept.get(`${key} ${seq}`) !== publish.text) say(`published as ${kept.get(`${key} ${seq}`)}`)
          const view = views.get(key)
          if (
            view?.seq !== undefined &&
            view.isAsked &&
            view.epoch === frame.epoch &&
            view.seq < seq &&
            !isPlacing(key)
          )
            view.isAhead = true
        }
      } else if (type === 'history') {
        const seqs = frame.messages.map((each: any) => each.seq)
        if (seqs.some((each: number, index: number) => each !== seqs[0] + index)) say('a hole in a history')
        for (const message of frame.messages) {
          const expected = kept.get(`${key} ${message.seq}`)
          if (!message.deleted && !message.deletes && JSON.stringify(message.data) !== expected)
            say(`history has another than ${expected}`)
        }
      } else if (type === 'error' && id === undefined && !frame.subscribed && views.get(key)?.isAsked) say('ended')
    }
  }
  const isPlacing = (key: string) => [...asked.values()].some(question => question.key === key)

  return {
    amiss,
    read,
    views,
    published,
    unstick: () => client.connection.drain(),
    async act() {
      const key = pick(ROOMS)
      const what = integer(20)
      if (what < 6) {
        const id = ++requests
        const text = JSON.stringify(`${number}.${id}${'x'.repeat(integer(60))}`)
        published.set(id, { key, text, isAnswered: false })
        client.send(
          `{"type":"publish","id":${id},"key":"${key}","messageId":"client-${number}-message-${id}","data":${text}}`,
        )
      } else if (what < 9) subscribe(key)
      else if (what === 9) {
        const view = viewOf(key)
        if (view.isAsked) {
          view.isAsked = false
          view.seq = undefined
          client.send({ type: 'unsubscribe', id: ++requests, keys: [key] })
        }
      } else if (what < 12) {
        client.connection.stuck = integer(2) === 0
        if (!client.connection.stuck) client.connection.drain()
      } else if (what === 12) await reconnect()
      else if (what === 13) {
        const before = viewOf(key).seq ?? 5
        client.send({
          type: 'history',
          id: ++requests,
          key,
          limit: pick([1, 3, 50]),
          ...pick<any>([{}, { before }, { after: Math.max(0, before - 3) }]),
        })
      }
      await read()
    },
  }
}

test.each([1, 2, 3, 4, 5, 6, 102, 283])('every message once and in order, or a gap, seed %d', async seed => {
  const system = await setUp(seed)
  const { integer, pick, pass, settle, failing, chance, memory, gateways } = system
  const clients = []
  for (let number = 0; number < 5; number++) clients.push(await openClient(system, number))
  const faults = { share: 0 }
  chance.loses = () => integer(1_000) < faults.share
  for (let step = 0; step < 250; step++) {
    const what = integer(40)
    if (what === 0) failing.share = pick([0, 0, 5, 60])
    else if (what === 1) faults.share = pick([0, 0, 2, 50])
    else if (what === 2) {
      const key = pick(ROOMS)
      const { seq } = await memory.head(key)
      const seqs = integer(2) === 0 ? undefined : [Math.max(1, seq - integer(3))]
      await system.deleteIn(key, seqs)
    } else await pick(clients).act()
    await pick([settle, () => pass(pick([0, 0.25, 0.5, 1, 3.25, 20, 100, 300]))])()
    if (integer(60) === 0) await pass(pick([1_000, 5_000, 20_000]))
    for (const client of clients) if (integer(2) === 0) await client.read()
    const amiss = clients.flatMap(client => client.amiss)
    if (amiss.length > 0) break
  }
  failing.share = 0
  faults.share = 0
  for (const client of clients) client.unstick()
  for (let second = 0; second < 30; second++) {
    await pass(500)
    for (const client of clients) {
      client.unstick()
      await client.read()
    }
  }
  const amiss = clients.flatMap(client => client.amiss)
  for (const [number, client] of clients.entries()) {
    for (const [key, { seq, isAsked }] of client.views) {
      const head = await memory.head(key)
      if (isAsked && seq !== head.seq) amiss.push(`${number} has ${key} up to ${seq}, not ${head.seq}`)
    }
    const unanswered = [...client.published].filter(([, { isAnswered }]) => !isAnswered)
    if (unanswered.length > 0) amiss.push(`${number} has no answer: ${JSON.stringify(unanswered)}`)
  }
  expect(amiss.slice(0, 10)).toEqual([])
  for (const { gateway } of gateways) await gateway.stop()
})
