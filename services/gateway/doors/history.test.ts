import { createMemoryRooms } from '@keycast/backbone/memory'
import { createTestGateway } from '../test-support.ts'

const key = 'room:1'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** A journal that counts its reads, of messages so long that a few fill a batch. */
async function setUp({ messageBytes }: { messageBytes: number }) {
  const memory = createMemoryRooms()
  const reads = { count: 0, underWay: 0, underWayMax: 0 }
  const started = createTestGateway({
    rooms: { room: {} },
    journal: {
      ...memory,
      backbone(events) {
        const backbone = memory.backbone(events)
        return {
          ...backbone,
          async history(...asked) {
            reads.count++
            reads.underWay++
            reads.underWayMax = Math.max(reads.underWayMax, reads.underWay)
            const found = await backbone.history(...asked)
            reads.underWay--
            return found
          },
        }
      },
    },
  })
  await started.gateway.start()
  stops.push(started.gateway.stop)
  // The list of revocations was read.
  reads.count = 0
  for (let seq = 1; seq <= 10; seq++) {
    memory.append({ room: key, messageId: undefined, from: 'ann', data: Buffer.from(`"${'x'.repeat(messageBytes)}"`) })
  }
  return { ...started, reads }
}

/** @returns that many messages */
async function until(client: { received: () => Promise<any[]> }, count: number): Promise<any[]> {
  const told = []
  for (let turns = 0; turns < 200 && told.length < count; turns++) told.push(...(await client.received()))
  return told
}

const idsOf = (messages: any[]) => messages.filter(({ type }) => type === 'history').map(({ id }) => id)

test.each([
  ['shorter', 5_000],
  ['longer', 60_000],
])(
  'a client that reads one answer at a time has the journal asked once each, where they are %s than a batch',
  async (_, messageBytes) => {
    const { connect, turn, reads } = await setUp({ messageBytes })
    const client = await connect()
    client.connection.stuck = true
    for (let id = 0; id < 20; id++) client.send({ type: 'history', id, key, limit: 10 })
    const answered = []
    for (let drains = 0; drains < 40 && answered.length < 20; drains++) {
      await turn()
      answered.push(...idsOf(client.connection.read()))
      client.connection.drain()
      client.connection.stuck = true
    }
    expect(answered).toEqual(Array.from({ length: 20 }, (_, id) => id))
    expect(reads.count).toBe(20)
  },
)

test('a client that reads is answered all it asks, one read at a time, and another does not wait for it', async () => {
  const { connect, reads } = await setUp({ messageBytes: 5_000 })
  const [client, other] = [await connect(), await connect()]
  for (let id = 0; id < 64; id++) client.send({ type: 'history', id, key, limit: 10 })
  expect(reads.underWay).toBe(1)
  other.send({ type: 'history', id: 0, key, limit: 1 })
  expect(reads.underWay).toBe(2)
  expect(idsOf(await until(client, 64))).toEqual(Array.from({ length: 64 }, (_, id) => id))
  expect(reads).toEqual({ count: 65, underWay: 0, underWayMax: 2 })
  expect(idsOf(await other.received())).toEqual([0])
})

test('of the requests of one session 64 wait, and those of a room that it may not read wait for none', async () => {
  const { connect } = await setUp({ messageBytes: 10 })
  const client = await connect()
  for (let id = 0; id < 66; id++) client.send({ type: 'history', id, key, limit: 1 })
  client.send({ type: 'history', id: 66, key: 'nowhere:1', limit: 1 })
  const told = await until(client, 67)
  expect(told.filter(({ type }) => type === 'error')).toMatchObject([
    { id: 64, code: 'too_many_waiting' },
    { id: 65, code: 'too_many_waiting' },
    { id: 66, code: 'unknown_namespace' },
  ])
  expect(idsOf(told)).toHaveLength(64)
})

test('a refusal does not hold up the requests after it', async () => {
  const { connect, journal } = await setUp({ messageBytes: 10 })
  const client = await connect()
  journal.setAway(true)
  for (let id = 0; id < 3; id++) client.send({ type: 'history', id, key, limit: 1 })
  expect(await until(client, 3)).toMatchObject([0, 1, 2].map(id => ({ id, code: 'journal_unavailable' })))
})

test('a session that ended is read nothing more for', async () => {
  const { connect, turn, reads } = await setUp({ messageBytes: 10 })
  const client = await connect()
  for (let id = 0; id < 3; id++) client.send({ type: 'history', id, key, limit: 1 })
  client.connection.terminate()
  await turn()
  expect(reads).toMatchObject({ count: 1, underWay: 0 })
})
