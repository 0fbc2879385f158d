import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { realWorld, type World } from '@keycast/service'
import type { FastifyInstance, FastifyReply } from 'fastify'
import Fastify from 'fastify'
import { readPeer } from '../../access/client-address.ts'
import { createTestGateway } from '../../test-support.ts'
import { leaveWithAnswers, limitConnections, limitRequests, limitResponses } from './connections.ts'
import { createUnreadBodies } from './unread-bodies.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function serve(set: (app: FastifyInstance) => void) {
  const app = Fastify({ forceCloseConnections: true, http: { requireHostHeader: false } })
  set(app)
  const { gateway } = createTestGateway()
  gateway.attach(app.server)
  app.get('/large', (_, reply) => reply.send(Buffer.alloc(50_000_000)))
  cleanUps.push(() => app.close())
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const open = async (localAddress = '127.0.0.1') => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    socket.on('error', () => {})
    cleanUps.push(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  return { app, open, gateway }
}

test('past the limit a connection is cut, until another has closed or become a session', async () => {
  const { app, open } = await serve(({ server }) =>
    limitConnections(server, { connectionsMax: 2, peerOf: readPeer('127.0.0.1') }),
  )
  const arrived = once(app.server, 'connection')
  const first = await open()
  const [firstAtServer] = await arrived
  await open()
  const third = await open()
  third.resume()
  await once(third, 'close')

  app.server.emit('session', firstAtServer)
  const fourth = await open()
  fourth.write('GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(String((await once(fourth, 'data'))[0])).toMatch(/^HTTP\/1.1 404/)

  first.destroy()
})

test('one address holds a quarter of the connections, a trusted proxy all of them', async () => {
  const peerOf = readPeer('127.0.0.9')
  const onRefused = jest.fn()
  const { app, open } = await serve(({ server }) => limitConnections(server, { connectionsMax: 8, peerOf, onRefused }))
  const arrived = once(app.server, 'connection')
  const kept = await open('127.0.0.2')
  const [keptAtServer] = await arrived
  await open('127.0.0.2')
  const third = await open('127.0.0.2')
  third.resume()
  await once(third, 'close')
  expect(onRefused).toHaveBeenCalledWith('127.0.0.2', 2)

  await open('127.0.0.3')
  for (let number = 0; number < 5; number++) await open('127.0.0.9')
  const ninth = await open('127.0.0.9')
  ninth.resume()
  await once(ninth, 'close')
  expect(onRefused).toHaveBeenLastCalledWith(undefined, 8)

  // One that became a session counts no more, and is not counted down again when it closes.
  app.server.emit('session', keptAtServer)
  const closed = once(keptAtServer, 'close')
  kept.destroy()
  await closed
  const next = await open('127.0.0.2')
  next.write('GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(String((await once(next, 'data'))[0])).toMatch(/^HTTP\/1.1 404/)
  const more = await open('127.0.0.2')
  more.resume()
  await once(more, 'close')
  expect(onRefused).toHaveBeenLastCalledWith('127.0.0.2', 2)
})

test.each([
  ['', ''],
  [', which offered another protocol,', 'connection: upgrade\r\nupgrade: h2c\r\n'],
])('a client%s that does not take its response is cut in time', async (_, headers) => {
  const { app, open } = await serve(app => limitResponses(app, realWorld.after, 100))
  const arrived = once(app.server, 'connection')
  const client = await open()
  client.pause()
  const [atServer] = await arrived
  client.write(`GET /large HTTP/1.1\r\nhost: x\r\n${headers}\r\n`)
  await once(atServer, 'close')
})

const GET = 'GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n'
const GET_LARGE = 'GET /large HTTP/1.1\r\nhost: x\r\n\r\n'
const upgradeTo = (path: string, protocol: string) =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: ${protocol}\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${'A'.repeat(22)}==\r\n\r\n`

test.each([
  ['many requests', GET_LARGE + GET.repeat(1_000)],
  ['many requests without a host', GET_LARGE + 'GET / HTTP/1.1\r\n\r\n'.repeat(1_000)],
  ['many requests with expectations', GET_LARGE + GET.replace('host: x', 'host: x\r\nexpect: x').repeat(1_000)],
  ['an upgrade', GET_LARGE + upgradeTo('/ws', 'websocket')],
  ['an upgrade to another protocol', GET_LARGE + upgradeTo('/nothing', 'h2c')],
])('a client that sends %s before it has read an answer is cut', async (_, bytes) => {
  const { open, gateway } = await serve(({ server }) => limitRequests(server))
  const client = await open()
  client.write(bytes)
  client.resume()
  await once(client, 'close')
  expect(gateway.counts.sent.welcome).toBe(0)
})

test('an upgrade that comes too early ends all answers before it, also those whose turn has not come', async () => {
  const over: Promise<unknown>[] = []
  const { open } = await serve(app => {
    limitRequests(app.server)
    app.get('/waits', (_, reply) => void over.push(once(reply.raw, 'close')))
  })
  const client = await open()
  client.write(`${GET.replace('nothing', 'waits').repeat(2)}${upgradeTo('/ws', 'websocket')}`)
  client.resume()
  await once(client, 'close')
  await Promise.all(over)
  expect(over).toHaveLength(2)
})

test('a few requests may come at once, and any number one after another', async () => {
  const { open } = await serve(({ server }) => limitRequests(server))
  const client = await open()
  for (let round = 0; round < 5; round++) {
    client.write(GET.repeat(4))
    let answers = 0
    while (answers < 4) answers += String((await once(client, 'data'))[0]).split('HTTP/1.1 404').length - 1
  }
})

test('values under way are bounded together, one that many are sent counts once', () => {
  const bodies = createUnreadBodies(1_000)
  const response = () => new EventEmitter() as any
  const [shared, other] = [Buffer.alloc(600), Buffer.alloc(600)]
  const [first, second] = [response(), response()]
  expect(bodies.hold(shared, first, undefined)).toBeUndefined()
  expect(bodies.hold(shared, second, undefined)).toBeUndefined()
  expect(bodies.hold(other, response(), undefined)).toEqual({ code: 'capacity' })
  first.emit('close')
  expect(bodies.hold(other, response(), undefined)).toEqual({ code: 'capacity' })
  second.emit('close')
  expect(bodies.bytes()).toBe(0)
  expect(bodies.hold(other, response(), undefined)).toBeUndefined()
})

test('a value whose client left before it came is not under way', () => {
  const bodies = createUnreadBodies(1_000)
  const response = Object.assign(new EventEmitter(), { destroyed: true }) as any
  expect(bodies.hold(Buffer.alloc(600), response, undefined)).toBeUndefined()
  expect(bodies.bytes()).toBe(0)
})

test('one who reads no answer leaves room for those of others, and a body that is sent to many counts once', () => {
  const bodies = createUnreadBodies(9_000)
  const hold = (payer: string, body = Buffer.alloc(600)) => {
    const response = new EventEmitter() as any
    const problem = bodies.hold(body, response, payer)
    return { problem, response }
  }
  const flood = Array.from({ length: 100 }, () => hold('a1.u1'))
  expect(flood.filter(({ problem }) => !problem).length).toBeLessThan(10)
  expect(flood.at(-1)?.problem).toMatchObject({ code: 'too_many_waiting', retryAfterMs: 1_000 })
  expect(hold('a2.u2').problem).toBeUndefined()

  const shared = Buffer.alloc(600)
  const first = hold('a3', shared)
  for (let number = 0; number < 100; number++) expect(hold('a3', shared).problem).toBeUndefined()
  first.response.emit('close')
  expect(bodies.bytes()).toBe(3 * 600)

  flood[0].response.emit('close')
  expect(hold('a1.u1').problem).toBeUndefined()
})

test('a gateway that stops waits for the answers that are due, for a while, and each ends its connection', async () => {
  let answered = () => Promise.resolve()
  let late = () => {}
  const answers: FastifyReply[] = []
  const { app, open } = await serve(app => {
    const after: World['after'] = (_, run) => {
      late = run
      return () => {}
    }
    answered = leaveWithAnswers(app, after)
    app.get('/slow', (_, reply) => void answers.push(reply))
  })
  const asked = await Promise.all([open(), open()])
  for (const socket of asked) socket.write('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n')
  while (answers.length < 2) await new Promise(setImmediate)
  app.server.close()
  const closed = asked.map(socket => once(socket, 'close'))

  const order: string[] = []
  const over = answered().then(() => order.push('over'))
  const read = once(asked[0], 'data').then(([text]) => order.push(/connection: (\w+)/.exec(String(text))?.[1] ?? ''))
  answers[0].send('v')
  await read
  await closed[0]
  late()
  await over
  expect(order).toEqual(['close', 'over'])

  asked[1].resume()
  answers[1].send('v')
  await closed[1]
  await answered()
})
