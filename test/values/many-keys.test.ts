// A backend that is asked for very many keys at once: what is asked at a time is bounded, and cold keys come first.
import { answers, createGate, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startSystem } from '../support/system.ts'

/** @param prefix namespace and colon, and the beginning of the ids */
const keysOf = (count: number, prefix: string) => Array.from({ length: count }, (_, index) => `${prefix}${index}`)

test('1,000 cold keys asked at once are fetched in parallel, as many at a time as a backend may be asked', async () => {
  const backend = await startBackend()
  const { gateways, fetchers } = await startSystem({
    env: { FETCHER_WORKERS: '2', FETCHER_IN_FLIGHT_MAX: '256' },
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: 0, timeout: '20s' } },
  })
  const gate = createGate(answers.json(documentOf(1)))
  backend.failWith(gate.handler)
  const keys = keysOf(1_000, 'doc:')
  const client = await connect(gateways[0].url)
  await client.subscribe(keys)
  await backend.until(() => gate.held() === 256, '256 requests at a time')
  await eventually(
    async () => (await fetchers[0].metric('keycast_fetcher_fetches_waiting{lane="cold"}')) === 1_000 - 256,
    'the other keys waiting',
  )
  expect(gate.held()).toBe(256)
  gate.open()
  await client.until(() => keys.every(key => client.of(key).values === 1), 'every value')
  expect(backend.asked.length).toBe(1_000)
})

test('a backend that hangs takes as many requests as one may be sent, and another backend is asked at once', async () => {
  const [hung, well] = [await startBackend(), await startBackend()]
  const { gateways } = await startSystem({
    env: { FETCHER_WORKERS: '1', FETCHER_IN_FLIGHT_MAX: '200' },
    namespaces: {
      hung: { url: `${hung.origin}/{id}`, refresh: 0, timeout: '60s' },
      well: { url: `${well.origin}/{id}`, refresh: 0 },
    },
  })
  hung.failWith(answers.silence())
  well.on('/1', answers.json(documentOf(1)))
  const client = await connect(gateways[0].url)
  await client.subscribe(keysOf(400, 'hung:'))
  await hung.until(asked => asked.length === 200, '200 requests at a time')
  await client.subscribe(['well:1'])
  await client.reaches('well:1', 1)
  expect(hung.asked).toHaveLength(200)
  client.close()
})

test('with 3,000 watched keys a cold key is fetched before any refresh that waits', async () => {
  const backend = await startBackend()
  const { gateways, fetchers } = await startSystem({
    // So few that the limit is always this.
    env: { FETCHER_IN_FLIGHT_MAX: '16' },
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: '5s', timeout: '20s' } },
  })
  const waiting = (lane: 'cold' | 'refresh') => fetchers[0].metric(`keycast_fetcher_fetches_waiting{lane="${lane}"}`)
  const keys = keysOf(3_000, 'doc:')
  const content = answers.json(documentOf(1, 2_000))
  for (const key of keys) backend.on(`/docs/${key.slice(4)}`, content)
  const client = await connect(gateways[0].url)
  await client.subscribe(keys)
  await client.until(() => client.received() > 3_000 && keys.every(key => client.of(key).values === 1), 'every value')

  // On a backend that answers at once.
  const tookMs = []
  for (let turn = 0; turn < 20; turn += 1) {
    backend.on(`/docs/cold-${turn}`, content)
    const askedAt = performance.now()
    await client.subscribe([`doc:cold-${turn}`])
    await client.reaches(`doc:cold-${turn}`, 1)
    tookMs.push(performance.now() - askedAt)
  }
  const inOrder = tookMs.sort((a, b) => a - b).map(ms => ms.toFixed(1))
  show(`3,000 watched keys, 20 cold ones in turn: median ${inOrder[10]} ms, ${inOrder[0]} to ${inOrder[19]} ms`)

  // On one that answers nothing until told: what may be under way is taken up, by refreshes alone or by new keys too,
  // and more refreshes wait.
  for (const coldUnderWay of [0, 6]) {
    const gate = createGate(content)
    const others = keysOf(coldUnderWay, 'doc:other-')
    for (const key of others) backend.on(`/docs/${key.slice(4)}`, gate.handler)
    if (others.length > 0) await client.subscribe(others)
    await backend.until(() => gate.held() === coldUnderWay, 'the new keys being asked for')
    backend.failWith(gate.handler)
    await eventually(async () => (await waiting('refresh')) > 50, 'refreshes waiting')
    // One on its way to the backend would be taken for the next one that is started.
    await backend.until(() => gate.held() === 16, 'all that may be under way')
    const before = backend.asked.length
    const path = `/docs/colder-${coldUnderWay}`
    client.send({ type: 'subscribe', keys: [`doc:${path.slice(6)}`] })
    await eventually(async () => backend.asked.length > before || (await waiting('cold')) === 1, 'the cold key waiting')
    if (backend.asked.length === before) gate.releaseOne()
    await backend.until(asked => asked.length > before, 'a further request')
    expect(backend.asked[before].path).toBe(path)
    backend.failWith(undefined)
    gate.open()
    backend.on(path, content)
    await client.reaches(`doc:${path.slice(6)}`, 1)
  }
  client.close()
})
