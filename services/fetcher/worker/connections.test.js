import { once } from 'node:events'
import { jest } from '@jest/globals'
import { answering, json, setup } from './pull.fixture.js'

/** How long the client's side lets a connection idle, as set on its socket once the response is read. */
async function idleMsAfter(/** @type {Record<string, string>} */ headers) {
  const { Socket } = await import('node:net')
  const setTimeout = jest.spyOn(Socket.prototype, 'setTimeout')
  const { pull, server } = await setup(answering(200, { ...json, ...headers }, '1'))
  server.keepAliveTimeout = 0 // says nothing by itself
  await pull()
  await new Promise(setImmediate)
  const idleMs = setTimeout.mock.calls.at(-1)?.[0]
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

test('a connection the server is about to give up is not used again', async () => {
  const { pull, server, connections } = await setup(answering(200, { ...json, connection: 'close' }, '1'))
  const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'))

  await pull()
  await closed
  await pull()

  expect(connections()).toBe(2)
})
