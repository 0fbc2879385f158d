// Workers and fetcher nodes die, hang and come back: viewers converge, and none is ever sent an older value.
import type { ServerResponse } from 'node:http'
import { answers, createGate, documentOf, startBackend } from '../support/backend.ts'
import { type Client, connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { childrenOf, isAlive, pidBehind, signalNow, stopNow } from '../support/processes.ts'
import { type Gateway, type System, startSystem } from '../support/system.ts'

const TIMEOUT_MS = 1_000

const backend = await startBackend()
interface Options {
  fetchers: number
  gateways?: number
  workers?: number
  refresh?: string
}

/** Dozens of keys that are refreshed more often take most of the machine. */
const start = ({ fetchers, gateways = 2, workers = 1, refresh = '500ms' }: Options) =>
  startSystem({
    fetchers,
    gateways,
    env: { FETCHER_WORKERS: String(workers) },
    // A node may answer from memory for long: the asker's version must decide whether it does.
    namespaces: {
      doc: { url: `${backend.origin}/docs/{id}`, refresh, maxAge: '1h', timeout: `${TIMEOUT_MS}ms` },
    },
  })

const put = (id: string, revision: number) => backend.on(`/docs/${id}`, answers.json(documentOf(revision)))

const watchFrom = async (gateways: Gateway[], keys: string[]) => {
  const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(keys)))
  return viewers
}

const converge = async (viewers: Client[], keys: string[], revision: number) => {
  for (const viewer of viewers) for (const key of keys) await viewer.reaches(key, revision)
}

/** The last request for a path: which worker made it. */
const workerBehind = (path: string, workers: () => number[]) => pidBehind(() => backend.askedFor(path), workers)

describe('a worker', () => {
  let system: System
  beforeAll(async () => {
    system = await start({ fetchers: 1, workers: 2, refresh: '100ms' })
  })
  afterAll(() => system.stop())
  const workersNow = () => childrenOf(system.fetchers[0].process.pid)

  test('killed in the middle of a fetch: the fetch is made by another', async () => {
    put('kill', 1)
    const viewers = await watchFrom(system.gateways, ['doc:kill'])
    await converge(viewers, ['doc:kill'], 1)

    const gate = createGate(answers.json(documentOf(2)))
    backend.on('/docs/kill', gate.handler)
    await backend.until(() => gate.held() === 1, 'a fetch under way')
    const worker = await workerBehind('/docs/kill', workersNow)
    // More than one where a busy machine took longer to find the worker than the fetch may.
    const held = gate.held()
    process.kill(worker, 'SIGKILL')
    const killedAt = performance.now()
    await backend.until(() => gate.held() > held, 'the fetch being made again')
    expect(await workerBehind('/docs/kill', workersNow)).not.toBe(worker)
    gate.open()
    await converge(viewers, ['doc:kill'], 2)
    show(`worker killed mid-fetch: converged after ${msSince(killedAt)}`)
    await eventually(() => workersNow().length === 2, 'the replacement')
    for (const viewer of viewers) viewer.close()
  })

  test('stopped in the middle of a fetch: its lease is given away once, it is replaced, and its late answer is void', async () => {
    put('stop', 1)
    put('other', 1)
    const viewers = await watchFrom(system.gateways, ['doc:stop', 'doc:other'])
    await converge(viewers, ['doc:stop', 'doc:other'], 1)

    // The backend answers the worker with revision 2, which lies in the worker's socket while the worker is stopped.
    // Meanwhile the content becomes 3; whatever the first worker might still say must not bring 2 back after it.
    const gate = createGate(answers.json(documentOf(2)))
    const underWay = new Set<ServerResponse>()
    backend.on('/docs/stop', (request, response) => {
      underWay.add(response)
      response.on('close', () => underWay.delete(response))
      gate.handler(request, response)
    })
    const asked = () => backend.askedFor('/docs/stop').length
    let worker: number
    for (;;) {
      await backend.until(() => underWay.size > 0, 'a fetch under way')
      const before = asked()
      worker = await workerBehind('/docs/stop', workersNow)
      await stopNow(worker)
      if (asked() === before && underWay.size === 1) break
      // A busy machine took longer to find it than the fetch may: another worker has been given it.
      signalNow(worker, 'SIGCONT')
    }
    const stoppedAt = performance.now()
    gate.open()
    put('stop', 3)
    put('other', 3)
    await converge(viewers, ['doc:stop', 'doc:other'], 3)
    show(`worker stopped mid-fetch: converged after ${msSince(stoppedAt)} ` + `(timeout ${TIMEOUT_MS} ms + 1 s)`)
    signalNow(worker, 'SIGCONT')
    await eventually(() => !isAlive(worker), 'the end of the stopped worker')
    await eventually(() => workersNow().length === 2, 'the replacement')

    put('stop', 4)
    await converge(viewers, ['doc:stop'], 4)
    for (const viewer of viewers) expect(viewer.of('doc:stop').revisions).toEqual([1, 3, 4])
    for (const viewer of viewers) viewer.close()
  })
})

// Beside each other: each has a system of its own, and waits for the most part.

test.concurrent('a primary killed and started again: gateways say their state again', async () => {
  const { fetchers, gateways, startFetcher, stop } = await start({ fetchers: 1 })
  const [fetcher] = fetchers
  const keys = Array.from({ length: 50 }, (_, index) => `doc:primary-${index}`)
  for (const key of keys) put(key.slice(4), 1)
  const viewers = await watchFrom(gateways, keys)
  await converge(viewers, keys, 1)

  const workers = childrenOf(fetcher.process.pid)
  fetcher.process.signal('SIGKILL')
  const killedAt = performance.now()
  await eventually(() => !workers.some(isAlive), 'the end of the workers of a dead primary')
  for (const key of keys) put(key.slice(4), 2)
  // A key that nobody watched before, asked for while no node is there.
  put('primary-new', 2)
  await viewers[0].subscribe(['doc:primary-new'])

  await startFetcher(fetcher.ports)
  const backAt = performance.now()
  await converge(viewers, keys, 2)
  await viewers[0].reaches('doc:primary-new', 2)
  show(
    `primary killed: down for ${Math.round(backAt - killedAt)} ms, ` +
      `converged ${msSince(backAt)} after it listened again`,
  )
  await stop()
})

test.concurrent('one of two nodes killed for good: the other owns its keys; when it comes back it is asked again; and stops in order', async () => {
  const { fetchers, gateways, startFetcher, stop } = await start({ fetchers: 2 })
  const keys = Array.from({ length: 60 }, (_, index) => `doc:nodes-${index}`)
  for (const key of keys) put(key.slice(4), 1)
  const viewers = await watchFrom(gateways, keys)
  await converge(viewers, keys, 1)
  const [gone, left] = fetchers
  /** The number of the keys that a gateway routes to a node. */
  const ownedBy = async (gateway: Gateway, node: string) => {
    const owners = await Promise.all(keys.map(async key => (await gateway.inspect(key)).owner.node))
    return owners.filter(owner => owner === node).length
  }
  await Promise.all(gateways.map(gateway => gateway.usesAllNodes()))
  expect(await ownedBy(gateways[0], gone.node)).toBeGreaterThan(10)
  expect(await ownedBy(gateways[0], left.node)).toBeGreaterThan(10)

  await gone.process.kill()
  const killedAt = performance.now()
  for (const key of keys) put(key.slice(4), 2)
  await converge(viewers, keys, 2)
  show(`one of two nodes killed: all 60 keys converged after ${msSince(killedAt)}`)
  for (const gateway of gateways) expect(await ownedBy(gateway, left.node)).toBe(keys.length)

  const back = await startFetcher(gone.ports)
  for (const gateway of gateways) {
    await eventually(async () => (await ownedBy(gateway, gone.node)) > 10, 'the node owning keys again')
  }
  const watchedByOther = () => left.metric('keycast_fetcher_watched_keys')
  await eventually(
    async () => (await watchedByOther()) === (await ownedBy(gateways[0], left.node)),
    'the other letting go of them',
  )
  for (const key of keys) put(key.slice(4), 3)
  await converge(viewers, keys, 3)

  // It is the returned node that keeps them fresh.
  const fetches = () => back.metric('keycast_fetcher_fetch_seconds_count')
  const before = await fetches()
  await eventually(async () => (await fetches()) > before + 20, 'fetches by the node that came back')

  // It goes again, and says so. The other still remembers revision 2, of when it owned these keys: no viewer may be given that.
  const stoppedAt = performance.now()
  back.process.signal('SIGTERM')
  for (const gateway of gateways) {
    await eventually(async () => (await ownedBy(gateway, left.node)) === keys.length, 'the other node owning all keys')
  }
  show(`that node stopped in order: its keys were the other's after ${msSince(stoppedAt)}`)
  for (const key of keys) put(key.slice(4), 4)
  await converge(viewers, keys, 4)
  for (const viewer of viewers) for (const key of keys) expect(viewer.of(key).revisions).toEqual([1, 2, 3, 4])
  await stop()
})

test.concurrent('a node that stalls again and again is held down longer each time, and has its keys back', async () => {
  const { fetchers, gateways, nodes, stop } = await start({ fetchers: 2, gateways: 1 })
  const [gateway] = gateways
  const [flapping] = fetchers
  const keys = Array.from({ length: 40 }, (_, index) => `doc:flaps-${index}`)
  const putAll = (revision: number) => {
    for (const key of keys) put(key.slice(4), revision)
  }
  putAll(1)
  const viewers = await watchFrom([gateway], keys)
  await converge(viewers, keys, 1)
  /** The node that each key is asked of. */
  const owners = async () => new Set(await Promise.all(keys.map(async key => (await gateway.inspect(key)).owner.node)))
  const holds = () => gateway.process.log().flatMap(({ node, heldMs = [] }) => (node === flapping.node ? heldMs : []))

  for (let losses = 1; losses <= 2; losses++) {
    flapping.process.signal('SIGSTOP')
    await eventually(async () => (await gateway.metric('keycast_gateway_fetcher_nodes_alive')) === 1, 'the loss')
    flapping.process.signal('SIGCONT')
    await eventually(() => holds().length >= losses, 'the node being heard and held down')
    putAll(1 + losses)
    await converge(viewers, keys, 1 + losses)
    await eventually(async () => (await owners()).has(nodes[0]), 'the node owning keys again')
  }
  expect(holds()[1]).toBeGreaterThan(holds()[0])
  putAll(4)
  await converge(viewers, keys, 4)
  for (const viewer of viewers) for (const key of keys) expect(viewer.of(key).revisions).toEqual([1, 2, 3, 4])
  await stop()
})
