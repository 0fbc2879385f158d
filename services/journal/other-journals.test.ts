// A journal whose log others append to as well: their messages reach its links, and a new epoch is reported as a gap.
import { createHub, createRoomsBackbone, publishTo, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { realWorld } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import { createJournal } from './journal.ts'
import { createMemoryLog } from './log/memory/memory.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

const retention = { messages: 1_000, ageMs: 1e9, bytes: 1e9 }
const publishOf = (text: string) => ({
  room: 'room:1',
  messageId: undefined,
  from: 'other',
  data: Buffer.from(JSON.stringify(text)),
  retention,
})

/** A log that can turn into another one at any moment, like a Valkey that failed over. */
function createSharedLog() {
  let log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  let hear = (_room: string, _position: any) => {}
  return {
    ...log,
    append: (publishes: any) => log.append(publishes),
    head: (room: string) => log.head(room),
    read: (room: string, range: any) => log.read(room, range),
    async failOver(...texts: string[]) {
      log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
      await log.append(texts.map(publishOf))
    },
    hint: async () => hear('room:1', await log.head('room:1')),
    news: {
      listen: (listener: typeof hear) => {
        hear = listener
      },
      watch() {},
      unwatch() {},
      heads: (rooms: string[]) => Promise.all(rooms.map(async room => ({ room, head: await log.head(room) }))),
    },
  }
}

async function setup() {
  const network = createMemoryNetwork()
  const log = createSharedLog()
  const hub = createHub({ codec: roomsCodec, bind: network.bindOf('n1'), log: silent, ...network })
  const room = { history: retention, bytesMax: 1_000 } as any
  const namespaces = { get: (name: string) => (name === 'room' ? room : undefined), names: ['room'] }
  const metrics = createMetrics({ service: 'journal' })
  await createJournal({ namespaces, hub, log, metrics, report: silent, ...network }).start()
  const seen: any[] = []
  const backbone = createRoomsBackbone({
    ...network,
    nodeSource: { start: async found => found(['n1']), stop() {} },
    log: silent,
    events: {
      onHead: (_, { seq }) => seen.push(['head', seq]),
      onMessages: (_, { messages }) => seen.push(...messages.map(({ seq, data }) => [seq, JSON.parse(String(data))])),
      onGap: (_, { seq, reason }) => seen.push(['gap', seq, reason]),
      onFailed() {},
    },
  })
  await backbone.start()
  await network.settle()
  backbone.watch('room:1')
  await network.settle()
  const publish = (text: string) =>
    publishTo(
      backbone,
      { room: 'room:1', messageId: undefined, from: 'ann', data: Buffer.from(JSON.stringify(text)) },
      { deadlineMs: 10_000 },
    )
  return { network, log, seen, publish }
}

test('messages of another journal come with a hint, and without one by the next comparison', async () => {
  const { network, log, seen } = await setup()
  await log.append([publishOf('a')])
  await log.hint()
  await network.settle()
  expect(seen).toEqual([
    ['head', 0],
    [1, 'a'],
  ])
  await log.append([publishOf('b')])
  await network.settle()
  expect(seen).toHaveLength(2)
  await network.pass(1_500)
  expect(seen.at(-1)).toEqual([2, 'b'])
})

test('own messages and those of others come in one order', async () => {
  const { network, log, seen, publish } = await setup()
  await log.append([publishOf('of another')])
  await Promise.all([publish('own'), network.settle()])
  await log.append([publishOf('of another again')])
  await network.pass(1_500)
  expect(seen.slice(1)).toEqual([
    [1, 'of another'],
    [2, 'own'],
    [3, 'of another again'],
  ])
})

test('after a failover a link is told a gap, and no message of the old history as one of the new', async () => {
  const { network, log, seen, publish } = await setup()
  await Promise.all([publish('1'), publish('2'), publish('lost'), network.settle()])
  await log.failOver('1', '2')
  await Promise.all([publish('3'), network.settle()])
  await network.pass(1_500)
  await Promise.all([publish('4'), network.settle()])
  expect(seen).toEqual([
    ['head', 0],
    [1, '1'],
    [2, '2'],
    [3, 'lost'],
    ['gap', 3, 'epoch'],
    [4, '4'],
  ])
})

test('a failover is noticed by the comparison where nobody publishes', async () => {
  const { network, log, seen, publish } = await setup()
  await Promise.all([publish('1'), network.settle()])
  await log.failOver('1')
  await network.pass(1_500)
  expect(seen.at(-1)).toEqual(['gap', 1, 'epoch'])
})
