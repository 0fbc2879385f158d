import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import Fastify from 'fastify'
import { createTestGateway } from '../test-support.js'
import { limitConnections, limitResponses } from './connections.js'
import { createUnreadBodies } from './unread-bodies.js'

/** @type {(() => unknown)[]} */
const cleanUps = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** @param {(app: import('fastify').FastifyInstance) => void} set */
async function serve(set) {
  const app = Fastify({ forceCloseConnections: true })
  set(app)
  createTestGateway().gateway.attach(app.server)
  app.get('/large', (_, reply) => reply.send(Buffer.alloc(50_000_000)))
  cleanUps.push(() => app.close())
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = /** @type {import('node:net').AddressInfo} */ (app.server.address())
  const open = async () => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    cleanUps.push(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  return { app, open }
}

test('past the limit a connection is cut, until another has closed or become a session', async () => {
  const { app, open } = await serve(({ server }) => limitConnections(server, 2))
  const arrived = once(app.server, 'connection')
  const first = await open()
  const [firstAtServer] = await arrived
  await open()
  const third = await open()
  third.resume()
  await once(third, 'close')

  app.server.emit('webSocket', firstAtServer)
  const fourth = await open()
  fourth.write('GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(String((await once(fourth, 'data'))[0])).toMatch(/^HTTP\/1.1 404/)

  first.destroy()
})

test.each([
  ['', ''],
  [', which offered another protocol,', 'connection: upgrade\r\nupgrade: h2c\r\n'],
])('a client%s that does not take its response is cut in time', async (_, headers) => {
  const { app, open } = await serve(app => limitResponses(app, 100))
  const arrived = once(app.server, 'connection')
  const client = await open()
  client.pause()
  const [atServer] = await arrived
  client.write(`GET /large HTTP/1.1\r\nhost: x\r\n${headers}\r\n`)
  await once(atServer, 'close')
})

test('values under way are bounded together, one that many are sent counts once', () => {
  const bodies = createUnreadBodies(1_000)
  const response = () => /** @type {any} */ (new EventEmitter())
  const [shared, other] = [Buffer.alloc(600), Buffer.alloc(600)]
  const [first, second] = [response(), response()]
  expect(bodies.hold(shared, first)).toBe(true)
  expect(bodies.hold(shared, second)).toBe(true)
  expect(bodies.hold(other, response())).toBe(false)
  first.emit('close')
  expect(bodies.hold(other, response())).toBe(false)
  second.emit('close')
  expect(bodies.bytes()).toBe(0)
  expect(bodies.hold(other, response())).toBe(true)
})
