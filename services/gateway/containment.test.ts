// Errors that no code foresaw, put in at each door of a gateway: the offender ends, is counted, and everybody else goes on.
import { createContainment } from '@keycast/service'
import { createSessions } from './sessions/sessions.ts'
import { createTestGateway } from './test-support.ts'

/** A gateway with a bystander who watches, and an offender. */
async function setup() {
  const restarts: string[] = []
  const log = { error() {} } as any
  const containment = createContainment({ now: () => 0, ends: ['session', 'upgrade', 'request', 'link'], log })
  containment.onRestart(why => restarts.push(why))
  const { gateway, backbone, connect } = createTestGateway({
    containment,
    rooms: { room: {} },
    settings: { sessionsMax: 3 },
  })
  const bystander = await connect()
  await bystander.ask({ type: 'subscribe', id: 1, keys: ['tick:1'] })
  const offender = await connect()
  let revision = 0
  return {
    gateway,
    backbone,
    connect,
    offender,
    restarts,
    counts: containment.counts,
    async expectBystander() {
      revision += 1
      backbone.value('tick:1', String(revision))
      expect(await bystander.received()).toMatchObject([{ type: 'value', key: 'tick:1', data: revision }])
      expect(await bystander.ask({ type: 'ping', id: 'x' })).toMatchObject([{ type: 'pong', id: 'x' }])
    },
    async expectOffenderEnded() {
      await offender.received()
      expect(offender.connection.closed).toMatchObject({ code: 1011 })
      offender.connection.emit('close', 1011, Buffer.alloc(0))
      expect(gateway.values.describe('tick:1').subscribers).toBe(1)
    },
  }
}

const bug = () => {
  throw new TypeError('a bug')
}

test('an error while a message is handled ends its session', async () => {
  const { gateway, offender, expectOffenderEnded, expectBystander, counts, restarts } = await setup()
  await offender.ask({ type: 'subscribe', id: 1, keys: ['tick:1'] })
  Object.assign(gateway.backbone, { watch: bug })
  offender.send({ type: 'subscribe', id: 2, keys: ['tick:2'] })
  await expectOffenderEnded()
  await expectBystander()
  expect(counts).toMatchObject({ session: 1, process: 0 })
  expect(restarts).toEqual([])
})

test.each([
  ['get', { type: 'get', id: 1, key: 'tick:2' }, 'singleFlight', 'want'],
  ['history', { type: 'history', id: 1, key: 'room:1' }, 'histories', 'read'],
])('an error in what is still to be done for a %s ends its session', async (_, message, part, method) => {
  const { gateway, offender, expectOffenderEnded, expectBystander, counts, restarts } = await setup()
  Object.assign((gateway as any)[part], { [method]: async () => bug() })
  offender.send(message)
  await expectOffenderEnded()
  await expectBystander()
  expect(counts).toMatchObject({ session: 1, process: 0 })
  expect(restarts).toEqual([])
})

test('an error while a session is written to ends it, and those behind it are written to', async () => {
  const { offender, expectOffenderEnded, expectBystander, counts, restarts } = await setup()
  await offender.ask({ type: 'subscribe', id: 1, keys: ['tick:1'] })
  // The bystander subscribed first, and gets its value first: the next change finds the offender before it.
  offender.connection._socket.write = bug
  offender.send({ type: 'ping' })
  await expectBystander()
  await expectOffenderEnded()
  expect(counts).toMatchObject({ session: 1, process: 0 })
  expect(restarts).toEqual([])
})

test('an error while a session begins ends it, and its place is free again', async () => {
  const { gateway, connect, expectBystander, counts } = await setup()
  const peer = { address: '192.0.2.7', isNamed: true }
  const verified = Object.defineProperty({}, 'user', { get: bug }) as any
  const { connection } = await connect('', '', { peer, verified })
  expect(connection.closed).toMatchObject({ code: 1011 })
  expect(gateway.notReady()).toContain('full')
  connection.emit('close', 1011, Buffer.alloc(0))
  expect(gateway.notReady()).toBeUndefined()
  await expectBystander()
  expect(counts).toMatchObject({ session: 1, process: 0 })
})

test('where what a session did cannot be taken back, the gateway restarts', () => {
  const restarts: string[] = []
  const containment = createContainment({ now: () => 0, ends: ['session'], log: { error() {} } as any })
  containment.onRestart(why => restarts.push(why))
  const nothing = () => {}
  const sessions = createSessions({
    discard() {},
    takeBack: bug,
    sessionLog: { opened: nothing, ended: nothing },
    containment,
    counts: { closed: {} },
    now: () => 0,
    turn: nothing,
  } as any)
  const transport = { isOpen: () => true, close: nothing }
  const session = { transport, ended: false } as any
  sessions.add(session)
  sessions.end(session, 'slow')
  expect(session.ended).toBe(true)
  expect(containment.counts).toMatchObject({ session: 1 })
  expect(restarts).toEqual([expect.stringContaining('half changed')])
})
