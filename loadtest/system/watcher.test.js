import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { childrenOf, createWatcher, readExposition, readTree } from './watcher.js'

const exposition = `# HELP keycast_gateway_process_cpu_seconds_total CPU time of the process.
# TYPE keycast_gateway_process_cpu_seconds_total counter
keycast_gateway_process_cpu_seconds_total{mode="user"} 1.5
keycast_gateway_process_cpu_seconds_total{mode="system"} 0.25
keycast_gateway_process_resident_memory_bytes 81000000
keycast_gateway_v8_heap_used_bytes 2.1e7
keycast_gateway_gc_runs_total{kind="minor"} 40
keycast_gateway_gc_runs_total{kind="major"} 3
`

test("a service's figures are read from its metrics, CPU of both modes together", () => {
  expect(readExposition(exposition)).toEqual({ cpuMs: 1_750, residentBytes: 81e6, heapBytes: 21e6, majorGcs: 3 })
})

test('what a service does not export is not known, rather than 0', () => {
  expect(readExposition('keycast_other_thing 1\n')).toEqual({
    cpuMs: undefined,
    residentBytes: undefined,
    heapBytes: undefined,
    majorGcs: undefined,
  })
})

test('a process is watched with those it started', async () => {
  const child = spawn('sleep', ['60'])
  await once(child, 'spawn')
  try {
    const pid = /** @type {number} */ (child.pid)
    const alone = readTree(pid)

    expect(childrenOf(process.pid)).toContain(pid)
    expect(readTree(process.pid)?.residentBytes).toBeGreaterThan(alone?.residentBytes ?? Number.POSITIVE_INFINITY)
  } finally {
    child.kill('SIGKILL')
  }
})

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
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const metricsUrl = `http://127.0.0.1:${port}/metrics`
  const gateways = ['gateway 1', 'gateway 2'].map(name => ({ name, role: 'gateway', metricsUrl }))
  const silent = { name: 'gateway 3', role: 'gateway', metricsUrl: 'http://127.0.0.1:1/metrics' }

  expect(await createWatcher(gateways).exported('conflated_total')).toBe(6)
  expect(await createWatcher(gateways).exported('other_total')).toBe(2)
  expect(await createWatcher(gateways).exported('missing_total')).toBeUndefined()
  expect(await createWatcher([...gateways, silent]).exported('conflated_total')).toBeUndefined()
  server.close()
})
