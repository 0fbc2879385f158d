// A journal and gateways on the in-process network. Each message is kept once, in order, and everybody is told all of
// it, whatever the network swallows.
import type { Message } from '@keycast/backbone'
import { createHub, createRoomsBackbone, publishTo, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { isProblem } from '@keycast/protocol'
import { realWorld, revocationsRoom, withReserved } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import { createChecker } from '../../test/support/checker.ts'
import { followPositions } from '../../test/support/positions.ts'
import { randomNumbers } from '../../test/support/random.js'
import { createJournal } from './journal.ts'
import type { Log, Publish } from './log/log.ts'
import { createMemoryLog } from './log/memory/memory.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

const DEADLINE = { deadlineMs: 60_000 }

async function setup({
  messages = 10_000,
  bytesMax = 2 ** 30,
  log = createMemoryLog({ ...realWorld, bytesMax }),
}: {
  messages?: number
  bytesMax?: number
  log?: Log
} = {}) {
  const network = createMemoryNetwork()
  const metrics = createMetrics({ service: 'journal' })
  const room = { history: { messages, ageMs: 1e9, bytes: 1e9 }, bytesMax: 1_000 } as any
  const given = new Map([
    ['room', room],
    ['server', { ...room, publish: 'server' }],
  ])
  const namespaces = withReserved({ get: name => given.get(name), names: [...given.keys()] })
  const checker = createChecker()

  async function startJournal() {
    const hub = createHub({ codec: roomsCodec, bind: network.bindOf('n1'), log: silent, ...network })
    const registry = createMetrics({ service: 'journal' })
    const journal = createJournal({ namespaces, hub, log, metrics: registry, report: silent, ...network })
    await journal.start()
    return { journal, hub, registry: registry.registry }
  }

  async function startGateway(name: string) {
    const seen: any[] = []
    let onMessage: (message: Message) => void = () => {}
    /** With the last messages. */
    const told: { oldest?: number } = {}
    const { events, positionOf } = followPositions({
      onHead(room, { epoch, seq, after, oldest }) {
        seen.push({ type: 'head', seq, after, oldest })
        checker.saw(name, room, { type: 'head', epoch, seq, after })
      },
      onMessages(room, { epoch, oldest, messages }) {
        told.oldest = oldest
        for (const message of messages) {
          const { seq, messageId, data } = message
          onMessage(message)
          seen.push(seq)
          checker.saw(name, room, { type: 'message', epoch, seq, messageId, data: data.toString() })
        }
      },
      onGap(room, { epoch, seq, reason }) {
        seen.push({ type: 'gap', seq, reason })
        checker.saw(name, room, { type: 'gap', epoch, seq })
      },
      onFailed: (_, { code }) => seen.push({ type: 'failed', code }),
    })
    const backbone = createRoomsBackbone({
      ...network,
      nodeSource: { start: async found => found(['n1']), stop() {} },
      log: silent,
      events,
    })
    await backbone.start()
    await network.settle()

    async function publish(
      text: string,
      {
        room = 'room:1',
        messageId,
        from = 'ann',
        payer,
      }: { room?: string; messageId?: string; from?: string; payer?: string } = {},
    ) {
      const data = Buffer.from(JSON.stringify(text))
      return publishTo(backbone, { room, messageId, from, data, payer }, DEADLINE)
    }
    return {
      backbone,
      seen,
      told,
      publish,
      positionOf,
      onMessage(listener: typeof onMessage) {
        onMessage = listener
      },
    }
  }

  return {
    network,
    metrics,
    log,
    checker,
    startGateway,
    ...(await startJournal()),
    startJournal,
    ...(await startGateway('one')),
  }
}

async function noteHistory({ log, checker }: Awaited<ReturnType<typeof setup>>, room: string) {
  const { head, messages } = await log.read(room, { after: 0, limit: 1e6, bytesMax: 1e9 })
  const placed = messages.map(({ seq, messageId, data }) => ({
    epoch: head.epoch,
    seq,
    messageId,
    data: data.toString(),
  }))
  checker.history(room, { epoch: head.epoch, oldest: head.oldest, newest: head.seq, messages: placed })
  return messages
}

const idOf = (n: number) => `message-id-${String(n).padStart(8, '0')}`

test('an operator is told where a room stands, how far each link was sent it, and how many are there', async () => {
  const { journal, backbone, publish, startGateway, network, log } = await setup()
  expect(await journal.describe('nothing')).toEqual({ problem: expect.any(String) })
  expect(await journal.describe('other:1')).toEqual({ problem: 'no namespace "other" here' })

  backbone.watch('room:1')
  await network.settle()
  await publish('hi')
  const two = await startGateway('two')
  two.backbone.watch('room:1')
  await network.settle()
  const { epoch, bytes } = await log.head('room:1')
  const link = { link: expect.any(String), sent: 1, isBehind: false }
  expect(await journal.describe('room:1')).toEqual({
    ...{ key: 'room:1', epoch, seq: 1, oldest: 1, bytes },
    links: [link, link],
    members: { count: 0, tabs: 0 },
  })
})

test('while one message in five is lost, all that is published is kept once and in order, and all gateways see the same', async () => {
  const parts = await setup()
  const { network, checker, backbone, publish, positionOf, startGateway } = parts
  const random = randomNumbers(11)
  const other = await startGateway('two')
  for (const room of ['room:1', 'room:2']) for (const each of [backbone, other.backbone]) each.watch(room)
  await network.settle()
  network.chance.loses = () => random() < 0.2
  const ends = []
  for (let n = 1; n <= 300; n++) {
    const room = `room:${1 + (n % 2)}`
    const messageId = idOf(n)
    const sender = n % 3 === 0 ? other : { publish }
    ends.push({
      n,
      room,
      messageId,
      who: sender === other ? 'two' : 'one',
      end: sender.publish(`text ${n}`, { room, messageId }),
    })
    if (n % 5 === 0) await network.pass(400)
  }
  await network.pass(60_000)
  network.chance.loses = () => false
  await network.pass(10_000)

  let acknowledged = 0
  for (const { n, room, messageId, who, end } of ends) {
    const result = await end
    // Answered at once while the journal seemed dead: surely not kept.
    if (isProblem(result)) {
      if (result.code === 'journal_unavailable') continue
      throw new Error(`publish ${n}: ${result.code}`)
    }
    acknowledged++
    checker.acknowledged(who, room, { ...result, messageId, data: JSON.stringify(`text ${n}`) })
  }
  const histories = [await noteHistory(parts, 'room:1'), await noteHistory(parts, 'room:2')]
  expect(acknowledged).toBeGreaterThan(200)
  expect(histories[0].length + histories[1].length).toBe(acknowledged)
  expect(checker.problems()).toEqual([])
  expect(other.positionOf('room:1')?.seq).toBe(histories[0].length)
  expect(positionOf('room:2')?.seq).toBe(histories[1].length)
})

test('a deleted message is gone from every copy, readers are told in their order, and those who come later as well', async () => {
  const { network, backbone, seen, publish, startGateway, log, registry } = await setup()
  backbone.watch('room:1')
  await network.settle()
  for (const text of ['one', 'two', 'three']) await publish(text)
  const { epoch } = await log.head('room:1')
  expect(await backbone.deleteMessages({ room: 'room:1', seqs: [2] }, DEADLINE)).toEqual({ messages: 1 })
  await network.settle()
  expect(seen.slice(-4)).toEqual([1, 2, 3, 4])
  const two = await startGateway('two')
  const heard: Message[] = []
  two.onMessage(message => heard.push(message))
  two.backbone.watch('room:1', { epoch, seq: 0 })
  await network.settle()
  expect(heard.map(({ seq, data, deleted, deletes }) => [seq, data.toString(), deleted, deletes])).toEqual([
    [1, '"one"', undefined, undefined],
    [2, 'null', true, undefined],
    [3, '"three"', undefined, undefined],
    [4, 'null', undefined, [[2, 2]]],
  ])
  const history = await two.backbone.history('room:1', { after: 1, limit: 1 }, DEADLINE)
  expect(history).toMatchObject({ messages: [{ seq: 2, deleted: true, from: '' }] })
  expect(await registry.metrics()).toContain('keycast_journal_deleted_messages_total 1')
})

test("a user's messages are deleted wherever they are, those of revocations and of others stay", async () => {
  const { network, backbone, publish, log } = await setup()
  for (let n = 0; n < 1_200; n++) void publish(`text ${n}`, { from: n % 3 === 0 ? 'ann' : 'bob' })
  void publish('x', { room: 'server:1' })
  void publish('x', { room: revocationsRoom })
  await network.settle()
  const [first, same] = await Promise.all([
    backbone.deleteMessages({ user: 'ann' }, DEADLINE),
    backbone.deleteMessages({ user: 'ann' }, DEADLINE),
  ])
  expect([first, same]).toEqual([{ messages: 401 }, { messages: 401 }])
  const { messages } = await log.read('room:1', { after: 0, limit: 1e6, bytesMax: 1e9 })
  expect(messages.filter(({ deleted }) => deleted)).toHaveLength(400)
  expect(messages.filter(({ from }) => from === 'bob')).toHaveLength(800)
  expect(await log.head(revocationsRoom)).toMatchObject({ seq: 1 })
  expect((await log.read(revocationsRoom, { after: 0, limit: 9, bytesMax: 1e9 })).messages).toMatchObject([
    { from: 'ann' },
  ])
  expect(await backbone.deleteMessages({ user: 'ann' }, DEADLINE)).toEqual({ messages: 0 })
})

test('a room is emptied for all who read it; where the log cannot, the caller is told to call again', async () => {
  const log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  const { network, backbone, publish, seen, told } = await setup({ log })
  backbone.watch('room:1')
  await network.settle()
  for (const text of ['one', 'two']) await publish(text)
  const { delete: deleting } = log
  log.delete = async () => ({ error: 'log_full' })
  expect(await backbone.deleteMessages({ room: 'room:1' }, DEADLINE)).toMatchObject({
    code: 'log_full',
    retryAfterMs: 1_000,
  })
  log.delete = () => Promise.reject(new Error('lost'))
  expect(await backbone.deleteMessages({ room: 'room:1' }, DEADLINE)).toMatchObject({ code: 'journal_unavailable' })
  log.delete = deleting
  expect(await backbone.deleteMessages({ room: 'room:1' }, DEADLINE)).toEqual({ messages: 2 })
  await network.settle()
  expect([seen.at(-1), told.oldest]).toEqual([3, 3])
})

test('a log that clients have filled keeps what backends publish, and when that is full, revocations; health says so', async () => {
  const { publish, journal } = await setup({ bytesMax: 100_000 })
  expect(journal.problems()).toEqual([])
  const fill = async (room: string) => {
    for (;;) {
      const outcome = await publish('x'.repeat(400), { room })
      if ('code' in outcome) return outcome.code
    }
  }
  expect(await fill('room:1')).toBe('log_full')
  expect(journal.problems()).toEqual([
    expect.stringMatching(/^messages take \d+ of 100000 bytes \(JOURNAL_BYTES_MAX\)/),
  ])
  expect(await publish('x', { room: 'server:1' })).toMatchObject({ seq: 1 })
  expect(await fill('server:1')).toBe('log_full')
  expect(await publish('x'.repeat(400), { room: revocationsRoom })).toMatchObject({ seq: 1 })
})

test('whoever has had their share of the log is told so, others publish on, and backends and revocations when clients have filled theirs', async () => {
  const { publish, journal } = await setup({ bytesMax: 100_000 })
  const fill = async (payers: string[]) => {
    for (let n = 0; ; n++) {
      const outcome = await publish('x'.repeat(400), { payer: payers[n % payers.length] })
      if ('code' in outcome) return outcome
    }
  }
  expect(await fill(['n1.a1.u1'])).toEqual({
    code: 'capacity',
    message: expect.stringContaining('this user, address or network'),
    retryAfterMs: 1_000,
  })
  expect(await publish('x', { payer: 'n2.a2.u2' })).toMatchObject({ duplicate: false })
  expect(journal.problems()).toEqual([])

  const many = Array.from({ length: 200 }, (_, n) => `n9${n}.a9${n}.u9${n}`)
  expect(['capacity', 'log_full']).toContain((await fill(many)).code)
  expect(journal.problems()).toHaveLength(1)
  expect(await publish('x'.repeat(400), { room: 'server:1' })).toMatchObject({ seq: 1 })
  expect(await publish('x'.repeat(400), { room: revocationsRoom })).toMatchObject({ seq: 1 })
})

test('gateways are told the oldest message held: with messages, and when age has removed some', async () => {
  const clock = { at: 1_700_000_000_000 }
  const log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30, wallNow: () => clock.at })
  const { backbone, seen, told, publish, network } = await setup({ messages: 3, log })
  backbone.watch('room:1')
  for (const text of ['a', 'b', 'c', 'd', 'e']) {
    await publish(text)
    await network.settle()
  }
  expect(seen).toEqual([{ type: 'head', seq: 0, after: 0, oldest: 1 }, 1, 2, 3, 4, 5])
  expect(told.oldest).toBe(3)
  clock.at += 1e9
  await network.pass(1_000)
  expect(seen).toHaveLength(6)
  clock.at++
  await network.pass(1_000)
  expect(seen.slice(6)).toEqual([{ type: 'head', seq: 5, after: 5, oldest: 6 }])
  await publish('f')
  await network.settle()
  expect(seen.slice(7)).toEqual([6])
  expect(told.oldest).toBe(6)
})

test('a watch without a position begins at the head, also of an empty room', async () => {
  const { network, backbone, seen, publish } = await setup()
  backbone.watch('room:1')
  await network.settle()
  expect(seen).toEqual([{ type: 'head', seq: 0, after: 0, oldest: 1 }])
  const kept = publish('a').then(() => seen.length)
  await network.settle()
  expect(await kept).toBe(2) // the publisher saw its message first
  expect(seen[1]).toBe(1)
})

test('a resume is whole, or it is told that it is not: never a part', async () => {
  const parts = await setup({ messages: 50 })
  const { network, publish, startGateway, log } = parts
  for (let n = 0; n < 100; n++) publish(`${n}`)
  await network.settle()
  const { epoch } = await log.head('room:1')
  async function resume(position: any) {
    const { backbone, seen } = await startGateway(`resumes after ${position.seq}`)
    backbone.watch('room:1', position)
    await network.settle()
    return seen
  }
  const whole = await resume({ epoch, seq: 60 })
  expect(whole).toEqual([
    { type: 'head', seq: 100, after: 60, oldest: 51 },
    ...Array.from({ length: 40 }, (_, n) => 61 + n),
  ])
  expect(await resume({ epoch, seq: 50 })).toHaveLength(51)
  expect(await resume({ epoch, seq: 49 })).toEqual([{ type: 'gap', seq: 100, reason: 'trimmed' }])
  expect(await resume({ epoch, seq: 101 })).toEqual([{ type: 'gap', seq: 100, reason: 'ahead' }])
  expect(await resume({ epoch: 'another', seq: 60 })).toEqual([{ type: 'gap', seq: 100, reason: 'epoch' }])
})

test('a gateway that does not read costs a cursor; it goes on whole, or is told what it missed', async () => {
  const parts = await setup({ messages: 3_000 })
  const { network, hub, backbone, seen, startGateway } = parts
  const publisher = await startGateway('two')
  backbone.watch('room:1')
  await network.settle()
  network.unread.add('n1')
  const publishAll = async (count: number) => {
    for (let n = 0; n < count; n++)
      publishTo(
        publisher.backbone,
        { room: 'room:1', messageId: undefined, from: '', data: Buffer.alloc(900, '1') },
        DEADLINE,
      )
    await network.settle()
    await network.settle()
  }
  await publishAll(2_000)
  expect(hub.stats().dueKeys).toBeLessThan(2)
  network.unread.clear()
  await network.pass(5_000)
  expect(seen.slice(1)).toEqual(Array.from({ length: 2_000 }, (_, n) => n + 1))

  network.swallowed.add('n1 answers').add('n1 requests').add('n1 beats')
  await network.pass(10_000)
  for (let n = 0; n < 3_100; n++)
    await parts.log.append([
      {
        room: 'room:1',
        messageId: undefined,
        from: '',
        data: Buffer.from('1'),
        retention: { messages: 3_000, ageMs: 1e9, bytes: 1e9 },
      },
    ])
  network.swallowed.clear()
  await network.pass(10_000)
  expect(seen.at(-1)).toEqual({ type: 'gap', seq: 5_100, reason: 'trimmed' })
})

test('a history is given in parts from either end', async () => {
  const { network, backbone, publish, log } = await setup({ messages: 30 })
  for (let n = 0; n < 50; n++) publish(`${n}`)
  await network.settle()
  const { epoch } = await log.head('room:1')
  async function history(range: any, room = 'room:1') {
    const end = backbone.history(room, range, DEADLINE)
    await network.settle()
    const { messages, message, ...rest } = (await end) as any
    return { ...rest, seqs: messages?.map(({ seq }: any) => seq) }
  }
  expect(await history({ before: 51, limit: 3 })).toEqual({
    epoch,
    oldest: 21,
    newest: 50,
    more: true,
    truncated: false,
    seqs: [48, 49, 50],
  })
  expect(await history({ before: 23, limit: 3 })).toMatchObject({ seqs: [21, 22], more: false })
  expect(await history({ after: 10, limit: 2 })).toMatchObject({ seqs: [21, 22], more: true, truncated: true })
  expect(await history({ after: 48, limit: 9 })).toMatchObject({ seqs: [49, 50], more: false, truncated: false })
  expect(await history({ after: 50, limit: 9 })).toMatchObject({ seqs: [], more: false })
  expect(await history({ epoch: 'F', after: 0, limit: 9 })).toMatchObject({ code: 'other_epoch' })
  expect(await history({ after: 0, limit: 9 }, 'nothing:1')).toMatchObject({ code: 'unknown_namespace' })
  expect(await history({ after: 0, limit: 9 }, 'room:2')).toMatchObject({
    seqs: [],
    oldest: 1,
    newest: 0,
    truncated: false,
  })
})

test('of a history that is asked for by another epoch no message is read', async () => {
  const { network, backbone, publish, log } = await setup()
  const publishing = publish('x'.repeat(500))
  await network.settle()
  await publishing
  const read: number[] = []
  const { read: readLog } = log
  log.read = async (room, range) => {
    const found = await readLog(room, range)
    read.push(found.messages.length)
    return found
  }
  for (const epoch of ['F', (await log.head('room:1')).epoch]) {
    const end = backbone.history('room:1', { epoch, after: 0, limit: 9 }, DEADLINE)
    await network.settle()
    await end
  }
  expect(read).toEqual([0, 1])
})

test('a publish that cannot be kept says why', async () => {
  const { network, backbone, publish, seen } = await setup({ bytesMax: 5_000 })
  const errors = async (...publishes: Promise<any>[]) => {
    await network.settle()
    return (await Promise.all(publishes)).map(({ code, retryAfterMs }) => [code, retryAfterMs])
  }
  const messageId = idOf(1)
  expect(
    await errors(
      publish('a', { messageId }),
      publish('b', { messageId }),
      publish('b', { messageId: 'short' }),
      publish('b', { from: 'a\nb' }),
      publish('b', { room: 'nothing:1' }),
      publish('b', { room: 'room:' }),
      publish('x'.repeat(1_000)),
    ),
  ).toEqual([
    [undefined, undefined],
    ['id_conflict', undefined],
    ['bad_message', undefined],
    ['bad_message', undefined],
    ['unknown_namespace', undefined],
    ['unknown_namespace', undefined],
    ['too_large', undefined],
  ])
  expect(await errors(...Array.from({ length: 6 }, () => publish('x'.repeat(900))))).toContainEqual(['log_full', 1_000])
  backbone.watch('nothing:1')
  await network.settle()
  expect(seen).toEqual([{ type: 'failed', code: 'unknown_namespace' }])
})

test('a log that cannot be read is tried again, and its watchers are told', async () => {
  const memory = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  let isBroken = false
  const log = {
    ...memory,
    head: async (room: string) => {
      if (isBroken) throw new Error('unreadable')
      return memory.head(room)
    },
  }
  const { network, backbone, seen } = await setup({ log })
  isBroken = true
  backbone.watch('room:1')
  await network.settle()
  expect(seen).toEqual([{ type: 'failed', code: 'journal_unavailable' }])
  isBroken = false
  await network.pass(3_000)
  expect(seen.at(-1)).toEqual({ type: 'head', seq: 0, after: 0, oldest: 1 })
})

test('a batch whose fate the log does not know is publish_unknown, and watchers go on from what it kept', async () => {
  const memory = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  let isBroken = false
  const log = {
    ...memory,
    append: async (publishes: any) => {
      const outcomes = await memory.append(publishes)
      if (isBroken) throw new Error('no answer')
      return outcomes
    },
  }
  const { network, backbone, seen, publish } = await setup({ log })
  backbone.watch('room:1')
  isBroken = true
  const messageId = idOf(1)
  const first = publish('a', { messageId })
  await network.settle()
  expect(await first).toMatchObject({ code: 'publish_unknown', retryAfterMs: 1_000 })
  expect(seen).toContain(1)
  isBroken = false
  const again = publish('a', { messageId })
  await network.settle()
  expect(await again).toMatchObject({ seq: 1, duplicate: true })
})

test('after such a batch the rooms of a log that many share are not read one by one: the next comparison tells', async () => {
  const memory = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  let reads = 0
  const log: Log = {
    ...memory,
    head(room) {
      reads++
      return memory.head(room)
    },
    async append(publishes) {
      await memory.append(publishes)
      throw new Error('no answer')
    },
    news: {
      listen() {},
      heads: rooms => Promise.all(rooms.map(async room => ({ room, head: await memory.head(room) }))),
    },
  }
  const { network, backbone, seen, publish } = await setup({ log })
  for (let n = 1; n <= 10; n++) backbone.watch(`room:${n}`)
  await network.settle()
  expect(reads).toBe(10)
  const unknown = publish('a')
  await network.settle()
  expect(await unknown).toMatchObject({ code: 'publish_unknown' })
  await network.pass(1_000)
  expect(seen).toContain(1)
  expect(reads).toBe(10)
})

test('a journal that stops answers what it took, takes no more, and says goodbye', async () => {
  const { network, journal, backbone, publish, startJournal } = await setup()
  const taken = publish('a')
  await undefined
  for (let n = 0; n < 6; n++) await new Promise(setImmediate) // under way, or in the log
  const stopping = journal.stop()
  await network.settle()
  await stopping
  expect(journal.notReady()).toBeDefined()
  expect(await taken).toMatchObject({ seq: 1 })
  expect(backbone.isAvailable('room:1')).toBe(false)
  await startJournal()
  await network.pass(5_000)
  expect(backbone.isAvailable('room:1')).toBe(true)
})

test('every way in which a publish can end is exported at zero before it comes', async () => {
  const { registry } = await setup()
  const series = (await registry.metrics()).matchAll(/^keycast_journal_publishes_total\{result="(\w+)"\} 0$/gm)
  expect([...series].map(([, result]) => result).sort()).toEqual([
    'bad_message',
    'capacity',
    'duplicate',
    'id_conflict',
    'journal_unavailable',
    'kept',
    'log_full',
    'publish_unknown',
    'rate_limited',
    'too_large',
    'unknown_namespace',
  ])
})

test('what a journal does is counted', async () => {
  const { network, backbone, publish, registry } = await setup()
  backbone.watch('room:1')
  publish('a', { messageId: idOf(1) })
  publish('a', { messageId: idOf(1) })
  await network.settle()
  const text = await registry.metrics()
  for (const line of [
    'keycast_journal_publishes_total{result="kept"} 1',
    'keycast_journal_publishes_total{result="duplicate"} 1',
    'keycast_journal_watches_total{outcome="new"} 1',
    'keycast_journal_acknowledge_seconds_count 2',
    'keycast_journal_flush_seconds_count 1',
    'keycast_journal_delivered_messages_total{from="tail"} 1',
    'keycast_journal_links 1',
    'keycast_journal_log_rooms 1',
  ]) {
    expect(text).toContain(line)
  }
})

test('while there is more to remove it is removed in parts, and publishes have their turn in between', async () => {
  const kept = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  const order: string[] = []
  let parts = 4
  let meanwhile: () => Promise<unknown> = async () => {}
  const log = {
    ...kept,
    append(publishes: Publish[]) {
      order.push('append')
      return kept.append(publishes)
    },
    async expire() {
      order.push('expire')
      await meanwhile()
      return { trimmed: [], more: parts-- > 1 }
    },
  }
  const { network, publish } = await setup({ log })
  meanwhile = async () => {
    meanwhile = async () => {}
    void publish('hi')
    await network.settle()
  }
  await network.pass(1_000)
  expect(order).toEqual(['expire', 'append', 'expire', 'expire', 'expire'])
  await network.pass(1_000)
  expect(order.slice(5)).toEqual(['expire'])
})
