// An upgrade whose token takes long to check: what may happen meanwhile, and what then becomes of it.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { createCounts } from '../counts.js'
import { createUpgrades } from './upgrade.js'

/** @type {(() => unknown)[]} */
const cleanUps = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const handshake = [
  'GET /ws HTTP/1.1',
  'Host: 127.0.0.1',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Authorization: Bearer a.b.c',
  '\r\n',
].join('\r\n')

const verified = /** @type {import('../access/tokens/tokens.js').Verified} */ ({ user: 'ann' })

/** A server, and a client whose token is being checked: the test says when that is over, and what came out. */
async function setup() {
  let isDraining = false
  let isRevoked = false
  /** @type {unknown[]} */
  const opened = []
  /** @type {(result: { verified: typeof verified }) => void} */
  let conclude = () => {}
  /** @type {Promise<{ verified: typeof verified }>} */
  const verifying = new Promise(resolve => {
    conclude = resolve
  })
  const counts = createCounts()
  const server = createServer()
  createUpgrades({
    accept: /** @type {any} */ (
      (
        /** @type {any} */ _,
        /** @type {any} */ __,
        /** @type {any} */ ___,
        /** @type {(transport: any) => void} */ then,
      ) => then({})
    ),
    open: /** @type {any} */ ((/** @type {any} */ _, /** @type {unknown} */ from) => opened.push(from)),
    identify: { peerOf: () => ({ address: '127.0.0.1', isNamed: true }), verifyRequest: () => verifying },
    revocations: { isRevoked: () => isRevoked },
    accounts: /** @type {any} */ ({ of: () => undefined, hasRoom: () => true }),
    sessionCount: () => 0,
    isDraining: () => isDraining,
    sessionsMax: 1,
    origins: '*',
    counts,
  }).attach(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  cleanUps.push(() => new Promise(resolve => server.close(resolve)))

  const upgrading = once(server, 'upgrade')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const client = connect(port, '127.0.0.1').on('error', () => {})
  cleanUps.push(() => client.destroy())
  client.write(handshake)
  const [, socket] = await upgrading
  cleanUps.push(() => socket.destroy())
  return {
    client,
    /** @type {import('node:net').Socket} of the server */
    socket,
    opened,
    counts,
    drain() {
      isDraining = true
    },
    revoke() {
      isRevoked = true
    },
    /** The token turns out to be good. */
    async good() {
      conclude({ verified })
      await verifying
    },
    /** The status that the client is answered with. */
    async status() {
      const [chunk] = await once(client, 'data')
      return Number(/^HTTP\/1\.1 (\d+)/.exec(String(chunk))?.[1])
    },
  }
}

test('a good token makes a session', async () => {
  const { good, opened } = await setup()
  await good()
  expect(opened).toEqual([{ peer: { address: '127.0.0.1', isNamed: true }, verified }])
})

test.each(['reset', 'ended'])('a client whose connection was %s meanwhile becomes no session', async how => {
  const { client, socket, good, opened, counts } = await setup()
  // Node takes an upgraded connection off its server: nothing reads it, or sees it end, until something does.
  const gone = new Promise(resolve => socket.once(how === 'reset' ? 'close' : 'end', resolve))
  if (how === 'reset') client.resetAndDestroy()
  else client.end()
  socket.resume()
  await gone
  await good()
  expect(opened).toEqual([])
  expect(counts.refused).toEqual(createCounts().refused)
})

test('a token that was revoked meanwhile is refused', async () => {
  const { good, opened, revoke, status } = await setup()
  revoke()
  const answered = status()
  await good()
  expect(await answered).toBe(401)
  expect(opened).toEqual([])
})

test('a gateway that began to stop meanwhile sends the client elsewhere', async () => {
  const { good, opened, drain, status } = await setup()
  drain()
  const answered = status()
  await good()
  expect(await answered).toBe(503)
  expect(opened).toEqual([])
})
