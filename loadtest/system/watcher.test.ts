import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createWatcher } from './watcher.ts'

test('CPU time is of the time between two samples', async () => {
  const watcher = createWatcher([{ name: 'this', role: 'gateway', pid: process.pid }])
  await watcher.sample()
  const before = process.cpuUsage()
  while (process.cpuUsage(before).user < 100_000);

  const { services, freeBytes, seconds } = await watcher.sample()

  expect(services[0].cpuMs).toBeGreaterThanOrEqual(90)
  expect(seconds).toBeGreaterThan(0.09)
  expect(freeBytes).toBeGreaterThan(0)
})

test('a process that is gone is left out', async () => {
  const gone = spawn('true')
  await once(gone, 'exit')

  const { services } = await createWatcher([{ name: 'gone', role: 'gateway', pid: gone.pid }]).sample()

  expect(services).toEqual([{ name: 'gone', role: 'gateway' }])
})

test('a counter is that of all services together, whatever labels it has; unknown where one is silent', async () => {
  const server = createServer((_, response) =>
    response.end('keycast_gateway_conflated_total 3\nkeycast_gateway_other_total{kind="a"} 1\n'),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const metricsUrl = `http://127.0.0.1:${port}/metrics`
  const gateways = ['gateway 1', 'gateway 2'].map(name => ({ name, role: 'gateway', metricsUrl }))
  const silent = { name: 'gateway 3', role: 'gateway', metricsUrl: 'http://127.0.0.1:1/metrics' }

  expect(await createWatcher(gateways).exported('conflated_total')).toBe(6)
  expect(await createWatcher(gateways).exported('other_total')).toBe(2)
  expect(await createWatcher(gateways).exported('missing_total')).toBeUndefined()
  expect(await createWatcher([...gateways, silent]).exported('conflated_total')).toBeUndefined()
  server.close()
})
