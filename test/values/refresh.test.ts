// Keys that are fetched only when the backend says that they changed (`refresh: 0`).
import { answers, type Backend, createGate, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { type System, startSystem } from '../support/system.ts'

let backend: Backend
let system: System

beforeAll(async () => {
  backend = await startBackend()
  system = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: 0, maxAge: '100ms', timeout: '10s' } },
    gateways: 2,
    fetchers: 2,
  })
})

const put = (id: string, revision: number) => backend.on(`/docs/${id}`, answers.json(documentOf(revision)))

test('a key that is never refreshed by itself follows POST /v1/refresh, on any gateway', async () => {
  put('told', 1)
  const viewers = await Promise.all(system.gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(['doc:told'])))
  await Promise.all(viewers.map(viewer => viewer.reaches('doc:told', 1)))
  const asked = backend.askedFor('/docs/told').length

  for (const [index, gateway] of system.gateways.entries()) {
    put('told', index + 2)
    await gateway.refresh(['doc:told'])
    await Promise.all(viewers.map(viewer => viewer.reaches('doc:told', index + 2)))
  }
  expect(backend.askedFor('/docs/told')).toHaveLength(asked + 2)
  for (const viewer of viewers) viewer.close()
})

test('after a refresh was acknowledged nobody who comes is given the value from before it', async () => {
  put('left', 1)
  const [{ url, refresh }] = system.gateways
  const first = await connect(url)
  await first.subscribe(['doc:left'])
  await first.reaches('doc:left', 1)
  await first.request({ type: 'unsubscribe', keys: ['doc:left'] })
  const watched = async () => Promise.all(system.fetchers.map(({ metric }) => metric('keycast_fetcher_watched_keys')))
  await eventually(async () => (await watched()).every(count => count === 0), 'the fetcher letting go of the key')

  put('left', 2)
  await refresh(['doc:left'])
  const second = await connect(url)
  await second.subscribe(['doc:left'])
  await second.reaches('doc:left', 2)

  expect(second.of('doc:left').revisions).toEqual([2])
  first.close()
  second.close()
})

test('a refresh that comes while a fetch is reading the old content makes one more follow it', async () => {
  put('late', 1)
  const viewer = await connect(system.gateways[0].url)
  await viewer.subscribe(['doc:late'])
  await viewer.reaches('doc:late', 1)

  // The backend has read revision 2 and is still busy sending it when the content becomes 3.
  const gate = createGate(answers.json(documentOf(2)))
  backend.on('/docs/late', gate.handler)
  const before = backend.askedFor('/docs/late').length
  await system.gateways[0].refresh(['doc:late'])
  await backend.until(() => gate.held() === 1, 'a fetch under way')
  put('late', 3)
  await system.gateways[1].refresh(['doc:late'])
  await system.gateways[0].refresh(['doc:late'])
  gate.open()

  await viewer.reaches('doc:late', 3)
  // Both calls during the fetch are served by the one that follows.
  expect(backend.askedFor('/docs/late')).toHaveLength(before + 2)
  viewer.close()
})

test('without the token nobody can have a key refreshed', async () => {
  const [{ internal }] = system.gateways
  const body = JSON.stringify({ keys: ['doc:told'] })
  const headers = { 'content-type': 'application/json' }
  const asked = backend.asked.length
  for (const authorization of [undefined, 'Bearer wrong']) {
    const response = await ask(`${internal}/v1/refresh`, {
      method: 'POST',
      body,
      headers: authorization ? { ...headers, authorization } : headers,
    })
    expect([401, 403]).toContain(response.status)
  }
  expect(backend.asked).toHaveLength(asked)
})
