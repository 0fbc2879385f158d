import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { requireFreePorts, suggestionFor } from './ports.ts'

const servers: Server[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise(resolve => server.close(resolve))
})

/** @returns a port somebody listens on */
async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** @returns a port nobody listens on */
async function freePort(): Promise<number> {
  const port = await takenPort()
  await new Promise(resolve => servers.pop()?.close(resolve))
  return port
}

const wanted = (port: number, variable = 'GATEWAY_PORT', host = '127.0.0.1') => ({
  service: variable.split('_')[0].toLowerCase(),
  host,
  port,
  variable,
})

test('free ports are found free, and left free', async () => {
  const port = await freePort()
  await requireFreePorts([wanted(port)])
  await requireFreePorts([wanted(port)])
})

test('a port in use is named, with the service that needs it, the variable that changes it and a value to try', async () => {
  const port = await takenPort()
  await expect(requireFreePorts([wanted(port)])).rejects.toThrow(
    new RegExp(`Port ${port} on 127.0.0.1, which gateway needs, is in use.*GATEWAY_PORT=\\d+ npm start`),
  )
})

test('all ports in use are named together', async () => {
  const ports = [await takenPort(), await freePort(), await takenPort()]
  const refused = requireFreePorts([
    wanted(ports[0]),
    wanted(ports[1], 'PROVIDER_PORT'),
    wanted(ports[2], 'FETCHER_METRICS_PORT'),
  ])
  await expect(refused).rejects.toThrow(/GATEWAY_PORT.*\n.*FETCHER_METRICS_PORT/)
  await expect(refused).rejects.not.toThrow(/PROVIDER_PORT/)
})

test('one port set for two services is an error', async () => {
  const port = await freePort()
  await expect(requireFreePorts([wanted(port), wanted(port, 'PROVIDER_PORT')])).rejects.toThrow(
    /both gateway \(GATEWAY_PORT\) and provider \(PROVIDER_PORT\)/,
  )
})

test('port 0 is an error, because other services must know the port', async () => {
  await expect(requireFreePorts([wanted(0)])).rejects.toThrow('GATEWAY_PORT=0')
})

test('an address that this host does not have is named', async () => {
  await expect(requireFreePorts([wanted(await freePort(), 'GATEWAY_PORT', '192.0.2.1')])).rejects.toThrow(
    /cannot be listened on/,
  )
})

test('the value to try is a port too', () => {
  expect([3000, 65_000].map(suggestionFor)).toEqual([13_000, 55_000])
})
