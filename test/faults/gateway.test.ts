// A gateway dies; its clients go to another and lose nothing. A gateway that stands still again and again still notices
// that a fetcher node is dead.
import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd } from '../support/cleanup.ts'
import { connect, connectViewer } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { freePorts } from '../support/free-ports.ts'
import { startService } from '../support/processes.ts'
import { startSystem } from '../support/system.ts'

const backend = await startBackend()
const { configPath, gateways, fetchers, nodes, startGateway } = await startSystem({
  gateways: 2,
  fetchers: 2,
  namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms', timeout: '20s' } },
})

test('the clients of a killed gateway are on another within seconds, from where they were', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => String(index))
  const keys = ids.map(id => `doc:${id}`)
  const steady = 'doc:steady'
  backend.on('/docs/steady', answers.json(documentOf(1)))
  const write = (revision: number) => {
    for (const id of ids) backend.on(`/docs/${id}`, answers.json(documentOf(revision)))
  }
  write(1)
  const [first, second] = gateways
  const viewers = [
    ...(await Promise.all(Array.from({ length: 25 }, () => connectViewer([first.url, second.url], [...keys, steady])))),
    ...(await Promise.all(Array.from({ length: 5 }, () => connectViewer([second.url], [...keys, steady])))),
  ]
  const converge = (revision: number) =>
    eventually(
      () => viewers.every(({ sights }) => keys.every(key => sights.of(key).revision === revision)),
      `revision ${revision} of every key at every viewer`,
    )
  await converge(1)
  await eventually(() => viewers.every(({ sights }) => sights.of(steady).values === 1), 'the steady key everywhere')

  write(2)
  await first.process.kill()
  const killedAt = performance.now()
  write(3)
  await converge(3)
  show(`gateway killed: all 25 clients converged elsewhere after ${msSince(killedAt)}`)

  // They resumed: what had not changed was confirmed, not sent again.
  const moved = viewers.slice(0, 25)
  await eventually(
    () => moved.every(({ sights }) => sights.of(steady).currents === 1),
    'a `current` for the steady key',
  )
  for (const { sights } of viewers) expect(sights.of(steady).values).toBe(1)
  for (const viewer of moved) expect(viewer.connections()).toBe(2)
  for (const viewer of viewers) viewer.stop()
})

test('a gateway that stands still most of the time gives the keys of a dead node to the other all the same', async () => {
  const keys = Array.from({ length: 20 }, (_, index) => `doc:stalled-${index}`)
  const put = (revision: number) => {
    for (const key of keys) backend.on(`/docs/${key.slice(4)}`, answers.json(documentOf(revision)))
  }
  put(1)
  const gateway = await startGateway()
  const viewer = await connect(gateway.url)
  await viewer.subscribe(keys)
  for (const key of keys) await viewer.reaches(key, 1)

  fetchers[0].process.signal('SIGSTOP')
  put(2)
  let isOver = false
  const stalls = (async () => {
    while (!isOver) {
      gateway.process.signal('SIGSTOP')
      await pause(1_700)
      gateway.process.signal('SIGCONT')
      await pause(300)
    }
  })()
  try {
    for (const key of keys) await viewer.reaches(key, 2)
  } finally {
    isOver = true
    await stalls
  }
  fetchers[0].process.signal('SIGCONT')
  viewer.close()
})

test('a gateway whose internal port is taken lets nobody in whom its end would cut', async () => {
  const [port] = await freePorts(1)
  const taken = createServer().listen(0, '127.0.0.1')
  atEnd(() => taken.close())
  await once(taken, 'listening')
  const { port: internalPort } = taken.address() as AddressInfo
  let isOver = false
  let opened = 0
  const knocking = (async () => {
    while (!isOver) {
      const socket = connectTcp(port, '127.0.0.1').on('connect', () => opened++)
      await new Promise(resolve => socket.on('error', () => {}).once('close', resolve))
      await pause(1)
    }
  })()
  const env = { KEYCAST_CONFIG: configPath, FETCHER_NODES: nodes.join(), GATEWAY_PORT: String(port) }
  const started = startService('gateway', { ...env, GATEWAY_INTERNAL_PORT: String(internalPort) })
  await expect(started).rejects.toThrow(`GATEWAY_INTERNAL_PORT=${internalPort}: 127.0.0.1:${internalPort} is in use`)
  isOver = true
  await knocking
  expect(opened).toBe(0)
})
