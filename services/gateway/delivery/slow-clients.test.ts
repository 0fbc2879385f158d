import { realWorld } from '@keycast/service'
import { createTestGateway, FakeConnection } from '../test-support.ts'
import type { Piece } from '../transport/transport.ts'
import { createSlowClients } from './slow-clients.ts'

const LARGE = 100_000

function setup({
  stallMsMax = 30_000,
  unsentTotalBytesMax = 1_000_000,
}: {
  stallMsMax?: number
  unsentTotalBytesMax?: number
} = {}) {
  let nowMs = 0
  const ended: string[] = []
  const slowClients = createSlowClients({ stallMsMax, unsentTotalBytesMax, now: () => nowMs })
  const stall = (id: string, ...pieces: Piece[]) => {
    const transport = new FakeConnection()
    transport._socket._handle.bytesWritten = transport._socket._handle.writeQueueSize = LARGE
    const session = { id, transport, pieces: [], pieceBytes: 0, deferredGets: [], answersHeld: 0 } as any
    slowClients.begin(session, pieces)
    return session
  }
  const sweepAfter = (ms: number) => {
    nowMs += ms
    slowClients.sweep((session, code, isUrgent) => {
      ended.push(`${session.id} ${code}${isUrgent ? ' urgent' : ''}`)
      slowClients.finish(session)
    })
    return ended.splice(0)
  }
  return { slowClients, stall, sweepAfter }
}

test('a client that takes nothing for too long is closed, counted from the last byte taken', () => {
  const { stall, sweepAfter } = setup()
  const slow = stall('slow', 'x')
  stall('stuck', 'x')
  expect(sweepAfter(29_999)).toEqual([])
  slow.transport.take(1)
  expect(sweepAfter(1)).toEqual(['stuck slow'])
  for (let minutes = 0; minutes < 10; minutes++) {
    slow.transport.take(1_000)
    expect(sweepAfter(29_999)).toEqual([])
  }
  expect(sweepAfter(30_000)).toEqual(['slow slow'])
})

test('a socket that is gone takes nothing', () => {
  const { stall, sweepAfter } = setup()
  stall('gone', 'x').transport._socket._handle = null
  expect(sweepAfter(30_000)).toEqual(['gone slow'])
})

test('when all hold too much, those that hold most are closed first, and no more of them than needed', () => {
  const { slowClients, stall, sweepAfter } = setup({ unsentTotalBytesMax: 1_000_000 })
  stall('little', Buffer.alloc(LARGE))
  const queueing = stall('queueing')
  stall('much', Buffer.alloc(5 * LARGE))
  expect(sweepAfter(1)).toEqual([])
  queueing.pieceBytes = 4 * LARGE + 1
  expect(sweepAfter(1)).toEqual(['much slow urgent'])
  expect(sweepAfter(1)).toEqual([])
  expect(slowClients.size()).toBe(2)
})

test('many that hold a little each, but most together, cost the client of another nothing', () => {
  const { stall, sweepAfter } = setup({ unsentTotalBytesMax: 1_000_000 })
  stall('other', Buffer.alloc(2 * LARGE)).payer = 'a2.u2'
  for (let number = 0; number < 9; number++)
    stall(`${number}`, Buffer.alloc(LARGE + number)).payer = `a1.u${number % 3}`
  expect(sweepAfter(1)).toEqual(['8 slow urgent', '7 slow urgent'])
})

test('answers that wait for a message count, too: they are the memory of a client that publishes and does not read', () => {
  const { stall, sweepAfter } = setup({ unsentTotalBytesMax: 1_000_000 })
  stall('reading little')
  const publishing = stall('publishing')
  publishing.answersHeld = 1_000
  expect(sweepAfter(1)).toEqual([])
  publishing.answersHeld = 2_000
  expect(sweepAfter(1)).toEqual(['publishing slow urgent'])
})

test('a value written to many counts once, and goes with the last of them', () => {
  const { slowClients, stall, sweepAfter } = setup({ unsentTotalBytesMax: 3 * LARGE })
  const value = Buffer.allocUnsafeSlow(2 * LARGE)
  const sessions = Array.from({ length: 1_000 }, (_, n) => stall(`viewer ${n}`, value, value.subarray(LARGE)))
  expect(sweepAfter(1)).toEqual([])
  for (const session of sessions.slice(1)) slowClients.finish(session)
  stall('other', Buffer.alloc(LARGE + 1))
  expect(sweepAfter(1)).toEqual(['viewer 0 slow urgent'])
  stall('third', Buffer.alloc(LARGE))
  expect(sweepAfter(1)).toEqual([])
})

test('small pieces and texts are copied when written, and count for each', () => {
  const { stall, sweepAfter } = setup({ unsentTotalBytesMax: 100_000 })
  const small = Buffer.alloc(1_000)
  for (let n = 0; n < 50; n++) stall(`viewer ${n}`, 'x'.repeat(1_000), small)
  expect(sweepAfter(1)).toHaveLength(1)
})

test('a client that reads slowly gets a value that takes minutes', async () => {
  const { backbone, connect, pass, turn } = createTestGateway()
  const client = await connect()
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  client.connection.stuck = true
  backbone.value('tick:1', JSON.stringify('x'.repeat(100_000)))
  await turn()
  for (let minutes = 0; minutes < 10; minutes++) {
    client.connection.take(5_000)
    await pass(29_000)
  }
  expect(client.connection.closed).toBeUndefined()
  client.connection.drain()
  const received = await client.ask({ type: 'ping', id: 1 })
  expect(received.map(({ type }) => type)).toEqual(['value', 'pong', 'stale'])
})

test('answers that are not read are bounded for all sessions together: the greediest are closed, the others live', async () => {
  const { backbone, connect, pass, turn } = createTestGateway({
    settings: { unsentTotalBytesMax: 3 * 1024 ** 2, requestsPerSecondMax: 1e6 },
  })
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect()))
  for (const client of clients) await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  for (const client of clients) client.connection.stuck = true
  backbone.value('tick:1', JSON.stringify('x'.repeat(1_500_000)))
  await turn()
  await pass(250)
  expect(clients.filter(({ connection }) => connection.closed)).toEqual([])

  for (const [n, client] of clients.entries()) {
    for (let pings = 0; pings < 500 * n; pings++) client.send({ type: 'ping', id: 'x'.repeat(100) })
  }
  await pass(250)
  // 135 KB for each five hundred pongs, and the value once: three go before the rest fits.
  const closed = clients.map(({ connection }) => connection.closed?.code)
  expect(closed).toEqual([...Array(5).fill(undefined), 4008, 4008, 4008])
})

test('no more are closed than needed, however long it takes to take back what the first ones held', async () => {
  let nowMs = 0
  // Each look at the clock finds the turn of the event loop over.
  const world = { ...realWorld, now: () => (nowMs += 2) }
  const settings = { unsentTotalBytesMax: 3 * 1024 ** 2 }
  const { gateway, backbone, connect, turn } = createTestGateway({ world, settings })
  const clients = []
  for (const [id, bytes] of [3_000_000, 400_000, 400_000, 400_000].entries()) {
    const client = await connect()
    await client.ask({ type: 'subscribe', keys: [`tick:${id}`] })
    client.connection.stuck = true
    backbone.value(`tick:${id}`, JSON.stringify('x'.repeat(bytes)))
    await turn()
    clients.push(client)
  }
  gateway.sweep()
  expect(clients.map(({ connection }) => connection.closed?.code)).toEqual([4008, undefined, undefined, undefined])
})
