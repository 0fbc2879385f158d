import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Pool, startPool } from './pool.ts'

let server: Server
let pool: Pool | undefined
beforeEach(async () => {
  // It takes connections and says nothing: what it is that clients talk to does not matter here.
  server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => {
  pool?.kill()
  server.closeAllConnections()
  server.close()
})

async function start() {
  const { port } = server.address() as AddressInfo
  pool = await startPool({
    workload: 'ping',
    settings: { dialect: 'keycast', window: 1 },
    processes: 2,
    urls: [`ws://127.0.0.1:${port}/ws`],
    clientsMax: 10,
    onSecond() {},
  })
  return pool
}

test('every process reports its end', async () => {
  const started = await start()
  expect(started.totals.counts).toMatchObject({ opened: 0, requested: 0 })
  expect(await started.finish()).toHaveLength(2)
  expect(started.unreported()).toBe(0)
})

test('a process that dies while the others end is counted, and takes nothing of theirs with it', async () => {
  const started = await start()
  process.kill(started.pids()[0], 'SIGSTOP')
  const finishing = started.finish()
  process.kill(started.pids()[0], 'SIGKILL')
  expect(await finishing).toHaveLength(1)
  expect(started.unreported()).toBe(1)
})

test('a process that dies before that ends the run, and says how', async () => {
  const started = await start()
  process.kill(started.pids()[1], 'SIGKILL')
  await expect(started.failure).rejects.toThrow('a generator process ended: SIGKILL')
})

test('a signal to the whole group does not end a process before its report', async () => {
  const started = await start()
  for (const pid of started.pids()) for (const signal of ['SIGINT', 'SIGTERM']) process.kill(pid, signal)
  await started.finish()
  expect(started.unreported()).toBe(0)
})
