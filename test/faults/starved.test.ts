// Workers that get hardly any CPU are left to their work, and those that start to their start. A worker that hangs is not.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { availableParallelism } from 'node:os'
import { createGate, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { childrenOf, isAlive, killAtEnd, killNow, pidBehind } from '../support/processes.ts'
import { startSystem } from '../support/system.ts'

/** The CPU that starved processes share with many that take all they get. */
const CPU = '0'

/** A process is left with one or two percent of that CPU. */
const HOGS = 60

const backend = await startBackend()
const { fetchers, gateways } = await startSystem({
  gateways: 1,
  fetchers: 1,
  // A request that its worker holds must not time out before a busy machine has found that worker.
  namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms', timeout: '20s' } },
  fetcherEnv: {
    FETCHER_WORKERS: '2',
    // A real endless loop in a real worker.
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent("process.on('SIGUSR2',()=>{for(;;);})")}`,
  },
})
const [fetcher] = fetchers
const keys = Array.from({ length: 60 }, (_, index) => `doc:${index}`)
/** Without an ETag, so that each fetch costs a worker a millisecond or two. */
const largeOf = (revision: number) => {
  const body = documentOf(revision, 130_000)
  const headers = { 'content-type': 'application/json' }
  return (_: unknown, response: ServerResponse) => response.writeHead(200, headers).end(body)
}
const put = (revision: number) => {
  for (const key of keys) backend.on(`/docs/${key.slice(4)}`, largeOf(revision))
}
put(1)
const viewer = await connect(gateways[0].url)
await viewer.subscribe(keys)
const converge = async (revision: number) => {
  for (const key of keys) await viewer.reaches(key, revision)
}
const workersNow = () => childrenOf(fetcher.process.pid).sort()
const killed = () => fetcher.metric('keycast_fetcher_worker_restarts_total{reason="silent"}')

/** Takes nearly all of that CPU for a while. Each hog is a session of its own: some kernels share a CPU by session. */
async function hog(seconds: number) {
  const command = ['-c', CPU, 'timeout', String(seconds), 'sh', '-c', 'while :; do :; done']
  const hogs = Array.from({ length: HOGS }, () => spawn('taskset', command, { detached: true, stdio: 'inherit' }))
  killAtEnd(() => {
    for (const { pid } of hogs) killNow(-(pid as number))
  })
  await Promise.all(hogs.map(child => once(child, 'exit')))
}

/** Puts all threads of a process on some CPUs. */
function pin(pid: number, cpus: string) {
  execFileSync('taskset', ['-acp', cpus, String(pid)])
}

const ANY_CPU = `0-${availableParallelism() - 1}`

test('workers that get hardly any CPU are left to their work and to their start, and go on when they get some', async () => {
  await converge(1)
  const [gone, working] = workersNow()
  pin(working, CPU)
  // A process starts on the CPU of the one that starts it.
  pin(fetcher.process.pid, CPU)
  process.kill(gone, 'SIGKILL')
  const starting = await eventually(() => workersNow().find(pid => pid !== gone && pid !== working), 'the successor')
  pin(fetcher.process.pid, ANY_CPU)
  put(2)
  // Longer than a worker may take to start.
  await hog(17)
  await eventually(async () => (await fetcher.metric('keycast_fetcher_workers')) === 2, 'the successor taking leases')
  expect(workersNow()).toEqual([working, starting].sort())
  expect(await killed()).toBe(0)
  await converge(2)
})

test('a worker that hangs in an endless loop is killed, and its lease is given away', async () => {
  for (const worker of workersNow()) pin(worker, ANY_CPU)
  put(3)
  await converge(3)
  const gate = createGate(largeOf(4))
  backend.on('/docs/7', gate.handler)
  await backend.until(() => gate.held() === 1, 'a fetch under way')
  const worker = await pidBehind(() => backend.askedFor('/docs/7'), workersNow)
  process.kill(worker, 'SIGUSR2')
  const hungAt = performance.now()
  await backend.until(() => gate.held() === 2, 'the fetch being made again')
  show(`worker in an endless loop: its fetch was made again after ${msSince(hungAt)}`)
  gate.open()
  await viewer.reaches('doc:7', 4)
  await eventually(() => !isAlive(worker), 'the end of the worker that hangs')
  expect(await killed()).toBe(1)
})
