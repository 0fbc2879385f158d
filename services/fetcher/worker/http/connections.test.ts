import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { answering, cleanUp, json, setup } from '../pull.fixture.ts'

afterEach(cleanUp)

/** The time that the client's side lets a connection idle, once the response is read. */
async function idleMsAfter(headers: Record<string, string>) {
  const { pull, server } = await setup(answering(200, { ...json, ...headers }, '1'))
  server.keepAliveTimeout = 0 // says nothing by itself
  const setTimeout = jest.spyOn(globalThis, 'setTimeout')
  await pull()
  await new Promise(setImmediate)
  const idleMs = setTimeout.mock.calls.at(-1)?.[1]
  setTimeout.mockRestore()
  return idleMs
}

test('a server that says for how long it keeps a connection is believed, less a second', async () => {
  expect(await idleMsAfter({ 'keep-alive': 'timeout=5' })).toBe(4_000)
  expect(await idleMsAfter({ 'keep-alive': 'max=100, timeout=3' })).toBe(2_000)
})

test('a connection idles for a minute at most', async () => {
  expect(await idleMsAfter({ 'keep-alive': 'timeout=3600' })).toBe(60_000)
})

test.each([[{}], [{ 'keep-alive': 'timeout=soon' }], [{ 'keep-alive': 'max=7' }]])(
  'without a time (%j) it idles less than the shortest in common use',
  async headers => {
    expect(await idleMsAfter(headers)).toBe(1_500)
  },
)

test.each([
  ['says so', { connection: 'close' }],
  ['keeps it for a second at most', { 'keep-alive': 'timeout=1' }],
])('a connection is not used again where the server %s', async (_, headers) => {
  const { pull, server, connections } = await setup(answering(200, { ...json, ...headers }, '1'))
  const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'))

  await pull()
  await closed
  await pull()

  expect(connections()).toBe(2)
})

test('each of many exchanges at one time has a connection of its own, and later ones use those again', async () => {
  const held: ServerResponse[] = []
  const { pull, connections } = await setup((_, response) => {
    held.push(response)
    if (held.length % 20 === 0) for (const each of held.splice(0)) each.writeHead(200, json).end('1')
  })
  const pullAll = () => Promise.all(Array.from({ length: 20 }, () => pull()))

  await pullAll()
  await pullAll()

  expect(connections()).toBe(20)
})

test('a deadline ends the connecting as well, and what comes later waits for nothing', async () => {
  const sockets = [] as Socket[]
  // Takes connections and never says a word of TLS.
  const silent = createServer(socket => sockets.push(socket.on('error', () => {})))
  await new Promise(resolve => silent.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = silent.address() as AddressInfo
  const { pull } = await setup(answering(200, json, '1'))
  try {
    const accepted = once(silent, 'connection')
    const pulled = pull({ url: `https://127.0.0.1:${port}/`, timeoutMs: 300 })
    await accepted
    const [hello] = await once(sockets[0], 'data')
    expect((await pull()).result.kind).toBe('value')
    expect((await pulled).result).toMatchObject({ code: 'backend_timeout' })
    if (!sockets[0].closed) await once(sockets[0], 'close')
    // HTTP/2 is not offered: requests of one connection would share its fate.
    expect(String(hello)).toContain('\bhttp/1.1')
    expect(String(hello)).not.toContain('\x02h2')
  } finally {
    silent.close()
    for (const socket of sockets) socket.destroy()
  }
})

test('an address of IPv6 is connected to', async () => {
  const { pull } = await setup(() => {})

  const { result } = await pull({ url: 'http://[::1]:1/' })

  expect(result).toMatchObject({ message: expect.stringMatching(/E(CONNREFUSED|ADDRNOTAVAIL|AFNOSUPPORT|NETUNREACH)/) })
})

test("the parts of undici that are loaded are the package's own", () => {
  const require = createRequire(import.meta.url)
  const { Client, buildConnector } = require('undici')
  expect(require('undici/lib/dispatcher/client.js')).toBe(Client)
  expect(require('undici/lib/core/connect.js')).toBe(buildConnector)
})
