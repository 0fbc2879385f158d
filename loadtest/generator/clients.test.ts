import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { clientCounts, createClients, isLoopback, sourceAddress } from './clients.ts'
import { createTally } from './tally.ts'

const near = new URL('ws://127.0.0.1:8080/ws')

test('few clients come from wherever the kernel likes', () => {
  expect(sourceAddress(near, 1_999, 2_000)).toBeUndefined()
})

test('many come from several loopback addresses, none of which runs out of ports', () => {
  const addresses = Array.from({ length: 40_000 }, (_, number) => sourceAddress(near, number, 40_000))

  expect(new Set(addresses)).toEqual(new Set(Array.from({ length: 20 }, (_, n) => `127.0.0.${n + 2}`)))
  expect(addresses.filter(address => address === '127.0.0.2')).toHaveLength(2_000)
})

test('users with tokens come from as many addresses as a gateway would see', () => {
  const addresses = Array.from({ length: 200 }, (_, number) => sourceAddress(near, number, 200, true))

  expect(new Set(addresses).size).toBe(50)
})

test('no loopback address reaches another host', () => {
  expect(sourceAddress(new URL('ws://192.0.2.1:8080/ws'), 39_999, 40_000)).toBeUndefined()
})

test.each([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.0.0.9', true],
  ['[::1]', true],
  ['127.example.org', false],
  ['192.0.2.1', false],
  ['example.org', false],
])('%s is this host: %s', (hostname, expected) => {
  expect(isLoopback(hostname)).toBe(expected)
})

/** Lets clients in, and names itself to each. */
async function startServer(name: string) {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http })
  sockets.on('connection', socket => socket.send(name))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const kill = () => {
    http.close()
    for (const socket of sockets.clients) socket.terminate()
  }
  return { url: `ws://127.0.0.1:${port}/ws`, kill }
}

test('a client that is dropped dials the next URL under its number, as often as it takes, and none once it is over', async () => {
  const servers = await Promise.all(['first', 'second'].map(startServer))
  const tally = createTally({ counts: clientCounts, histograms: [] })
  const opened = jest.fn()
  let hear: (name: string) => void = () => {}
  const heard = (wanted: string) =>
    new Promise(resolve => {
      hear = name => name === wanted && resolve(undefined)
    })
  const clients = createClients({
    urls: servers.map(({ url }) => url),
    clientsMax: 1,
    index: 0,
    processes: 1,
    tally,
    behaviour: {
      headBytesMax: 9,
      redialMs: 1,
      open(_, number) {
        opened(number)
        return { onMessage: head => hear(head), onEnd() {} }
      },
    },
  })
  try {
    const first = heard('first')
    clients.ramp({ fromUs: 0, everyUs: 1, count: 1 })
    await first
    const second = heard('second')
    servers[0].kill()
    await second

    expect(opened.mock.calls).toEqual([[0], [0]])
    expect(tally.counts).toMatchObject({ opened: 2, dropped: 1, refused: 0, closed: 0 })
  } finally {
    await clients.closeAll()
    for (const { kill } of servers) kill()
  }
})
