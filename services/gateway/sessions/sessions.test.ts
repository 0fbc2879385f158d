import { realWorld } from '@keycast/service'
import { createTestGateway, FakeConnection } from '../test-support.ts'
import { createSessions } from './sessions.ts'

test('the first message names the session and its limits', async () => {
  const { gateway, turn } = createTestGateway()
  const connection = new FakeConnection()
  gateway.open(connection.asTransport, { peer: { address: '192.0.2.7', isNamed: true } })
  await turn()
  expect(connection.read()).toEqual([
    {
      type: 'welcome',
      session: expect.stringMatching(/^[\w-]{22}$/),
      heartbeatMs: 25_000,
      limits: { messageBytes: 262_144, keysPerSession: 5_000, requestsPerSecond: 1_000 },
    },
  ])
})

test('a session that ended is forgotten by every part', async () => {
  const { gateway, backbone, connect } = createTestGateway({ settings: { sessionsMax: 1 } })
  const client = await connect()
  expect(gateway.notReady()).toContain('sessions')
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  client.connection.emit('close', 1006, Buffer.alloc(0))
  expect(gateway.notReady()).toBeUndefined()
  expect(gateway.values.describe('tick:1').subscribers).toBe(0)
  backbone.value('tick:1', '1')
  expect(await client.received()).toEqual([])
})

test('of many sessions that end together each is taken back, in turns between which others are served', () => {
  let at = 0
  const turns: (() => void)[] = []
  const taken: number[] = []
  const sessions = createSessions({
    discard() {},
    takeBack(session: any) {
      at++
      taken.push(session.id)
    },
    sessionLog: { opened() {}, ended() {} },
    containment: { guard: (_: string, run: any) => run },
    counts: { closed: {} },
    now: () => at,
    turn: (run: () => void) => turns.push(run),
  } as any)
  const all = Array.from({ length: 10 }, (_, id) => ({ id, ended: false, transport: { terminate() {} } }) as any)
  for (const session of all) sessions.terminate(session, 'lost')
  expect(taken).toEqual([0, 1])
  expect(all.every(({ ended }) => ended)).toBe(true)
  turns.shift()?.()
  expect(taken).toEqual([0, 1, 2, 3])
  while (turns.length > 0) turns.shift()?.()
  expect(taken).toEqual(all.map(({ id }) => id))

  // Alone, one is taken back at once.
  sessions.terminate({ id: 10, ended: false, transport: { terminate() {} } } as any, 'lost')
  expect(taken.at(-1)).toBe(10)
})

test('one with thousands of subscriptions is taken back in turns, too', async () => {
  let nowMs = 0
  // Each look at the clock finds the turn of the event loop over.
  const world = { ...realWorld, now: () => (nowMs += 2) }
  const { gateway, connect } = createTestGateway({ world })
  const client = await connect()
  const keys = Array.from({ length: 1_000 }, (_, n) => `tick:${n}`)
  await client.ask({ type: 'subscribe', keys })
  const held = () => keys.filter(key => gateway.values.describe(key).subscribers > 0).length
  client.connection.emit('close', 1006, Buffer.alloc(0))
  for (let left = held(); left > 0; ) {
    await new Promise(resolve => setImmediate(resolve))
    const before = left
    left = held()
    expect(before - left).toBeLessThanOrEqual(200)
  }
})

test('an error of the connection ends nothing but the connection', async () => {
  const { connect } = createTestGateway()
  const client = await connect()
  expect(() => client.connection.emit('error', new Error('invalid frame'))).not.toThrow()
})

test('a client that holds memory others need has a second to read why, then its socket is cut', async () => {
  const { backbone, connect, pass, turn } = createTestGateway({ settings: { unsentTotalBytesMax: 1024 ** 2 } })
  const [client, other] = [await connect(), await connect()]
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  client.connection.stuck = true
  backbone.value('tick:1', JSON.stringify('x'.repeat(1_100_000)))
  await turn()
  jest.useFakeTimers({ doNotFake: ['setImmediate'] })
  try {
    await pass(250)
    expect(client.connection.closed?.code).toBe(4008)
    expect(client.connection.terminated).toBe(false)
    jest.advanceTimersByTime(1_000)
    expect(client.connection.terminated).toBe(true)
  } finally {
    jest.useRealTimers()
  }
  expect(await other.ask({ type: 'ping' })).toMatchObject([{ type: 'pong' }])
})

test('a client that reads nothing and shuts down its side is cut when its time is over', async () => {
  const { backbone, connect, pass, turn } = createTestGateway({ settings: { stallMsMax: 1_000 } })
  const client = await connect()
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  client.connection.stuck = true
  backbone.value('tick:1', JSON.stringify('x'.repeat(100_000)))
  await turn()
  // As ws does when the client's FIN arrives.
  client.connection.readyState = 2
  await pass(1_000)
  expect(client.connection.terminated).toBe(true)
})
