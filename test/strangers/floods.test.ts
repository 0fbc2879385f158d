// Floods of connections that are never finished, all of one address: a bystander at another is served all along, and nginx
// and gateways hold no more of them than their bounds say.
import { readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { atEnd } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { type Kind, startBystander, startFlood } from '../support/flood.ts'
import { freePorts } from '../support/free-ports.ts'
import { startProxy, startStandIn } from '../support/proxy.ts'
import { startRooms } from '../support/system.ts'

/** So many at each place: far more than fit there. */
const ENOUGH = 3_000
const CONNECTIONS_MAX = 1_000
const PER_ADDRESS = 200
/** PROXY_CONNECTIONS_PER_ADDRESS, a quarter, and 16. */
const OPEN_MAX = 266

const FLOODER = '127.0.0.2'
const PATH = '/v1/messages/room:bystander'

const { gateways } = await startRooms({
  // The bystander has the bystander's address alone; the flood comes to the gateway from one that no proxy has.
  env: { GATEWAY_TRUSTED_PROXIES: '127.0.0.1', GATEWAY_REQUESTS_PER_SECOND_MAX: '1000' },
})
const [metricsPort] = await freePorts(1)
const proxy = await startProxy([Number(new URL(gateways[0].http).port)], {
  env: {
    PROXY_WORKERS: '1',
    PROXY_WORKER_CONNECTIONS: String(CONNECTIONS_MAX),
    PROXY_CONNECTIONS_PER_ADDRESS: String(PER_ADDRESS),
    PROXY_METRICS_PORT: String(metricsPort),
  },
})

async function openAtProxy() {
  const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
  return Number(/^keycast_proxy_connections_open (\d+)$/m.exec(await response.text())?.[1])
}

/** Lets a flood go on until it has begun so many connections, and the bystander has come and gone. */
async function during(origin: string, options: Parameters<typeof startFlood>[0], look: () => Promise<void>) {
  const bystander = await startBystander(origin, PATH)
  atEnd(bystander.stop)
  const flood = await startFlood(options)
  atEnd(flood.stop)
  await eventually(async () => {
    await look()
    return flood.counts().opened >= ENOUGH
  }, `a flood of ${ENOUGH} connections`)
  const rounds = bystander.rounds() + 5
  await eventually(() => bystander.rounds() >= rounds || sum(bystander.failures()) > 0, 'the bystander being served')
  await flood.stop()
  await bystander.stop()
  expect(bystander.failures()).toEqual({})
}

const sum = (failures: Record<string, number>) => Object.values(failures).reduce((a, b) => a + b, 0)

test.each<Kind>(['headers', 'tls', 'hello', 'silent', 'closing'])('nginx is flooded with %s', async kind => {
  let most = 0
  const look = async () => {
    most = Math.max(most, await openAtProxy())
  }
  const { httpPort, httpsPort } = proxy
  const rate = CONNECTIONS_MAX
  await during(`https://127.0.0.1:${httpsPort}`, { kind, rate, from: FLOODER, httpPort, httpsPort }, look)
  // The bystander has up to three, and the question of how many is one.
  expect(most).toBeLessThanOrEqual(OPEN_MAX + 4)
  await eventually(async () => (await openAtProxy()) <= 2, 'the end of what the flood left')
})

test('of what nginx refused, one in a hundred is logged', () => {
  const log = readFileSync(join(proxy.directory, 'access.log'), 'utf8').split('\n')
  const refused = log.filter(line => line.includes('"refused"'))
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.length).toBeLessThan((5 * ENOUGH) / 50)
  expect(JSON.parse(refused[0])).toEqual({
    time: expect.any(String),
    remote: FLOODER,
    refused: `over ${OPEN_MAX} open connections`,
  })
})

test('a gateway without a proxy is flooded with headers', async () => {
  const port = Number(new URL(gateways[0].http).port)
  const look = async () => {}
  const startedAt = performance.now()
  const flood = { kind: 'headers' as const, rate: CONNECTIONS_MAX, from: FLOODER, httpPort: port, httpsPort: port }
  await during(gateways[0].http, flood, look)
  const said = gateways[0].process.log().filter(({ msg }) => msg?.includes('its address has too many'))
  // Once a minute: on a busy machine it takes longer than one.
  expect(said.length).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 60_000)
  expect(new Set(said.map(({ address }) => address))).toEqual(new Set([FLOODER]))
})

describe('with the PROXY protocol', () => {
  let told: Awaited<ReturnType<typeof startProxy>>
  let cut: number
  beforeEach(async () => {
    const gateway = await startStandIn('gateway')
    const env = { PROXY_PROTOCOL: 'on', PROXY_TRUSTED: '127.0.0.1', PROXY_CONNECTIONS_PER_ADDRESS: '8' }
    told = await startProxy([gateway.port], { env })
    cut = 0
  })

  function open(from: string, said: string) {
    const socket = connectTcp({ port: told.httpsPort, host: '127.0.0.1', localAddress: from })
    atEnd(() => socket.destroy())
    socket.on('error', () => {})
    socket.on('close', () => cut++)
    if (said !== '') socket.write(said)
    socket.resume()
  }
  const ofClient = (client: string) => `PROXY TCP4 ${client} 198.51.100.1 4711 443\r\n`

  test('behind a balancer it is the client who is counted', async () => {
    // 8, a quarter, and 16.
    for (let number = 0; number < 27; number++) open('127.0.0.1', ofClient('192.0.2.7'))
    for (let number = 0; number < 20; number++) open('127.0.0.1', ofClient('192.0.2.8'))
    await eventually(() => cut === 1, 'the end of one connection')
  })

  test.each(['', ofClient('192.0.2.9')])('whoever is no balancer is counted, whatever it says: %j', async said => {
    for (let number = 0; number < 27; number++) open(FLOODER, said)
    for (let number = 0; number < 30; number++) open('127.0.0.1', '')
    await eventually(() => cut === 1, 'the end of one connection')
  })
})
