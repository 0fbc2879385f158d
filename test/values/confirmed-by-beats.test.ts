// Keys that are refreshed every 5 s and more: gateways hear of changes only, and know how old everything else is.
import { answers, type Backend, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { type System, startSystem } from '../support/system.ts'

let backend: Backend
let system: System

beforeAll(async () => {
  backend = await startBackend()
  system = await startSystem({
    namespaces: {
      doc: { url: `${backend.origin}/docs/{id}`, refresh: '5s', maxAge: '20s', timeout: '1s' },
      calm: { url: `${backend.origin}/calm/{id}`, refresh: '60s', maxAge: '60s', timeout: '1s' },
    },
    gateways: 2,
    fetchers: 2,
  })
})

test('refreshes that bring nothing new are not told key by key, ages stay true, and changes come', async () => {
  const { gateways, fetchers } = system
  const counts = async () =>
    Promise.all(fetchers.map(each => each.metric('keycast_fetcher_answers_total{type="current"}')))
  backend.on('/docs/1', answers.json(documentOf(1)))
  const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(['doc:1'])))
  await Promise.all(viewers.map(viewer => viewer.reaches('doc:1', 1)))
  const confirmations = await counts()

  await backend.until(asked => asked.length >= 3, 'two refreshes')

  // The gateway answers from memory, with an age that says: the backend was asked since.
  await eventually(async () => {
    const { headers } = await ask(`${gateways[0].http}/v1/values/doc:1`)
    return Number(headers.age) <= 5
  }, 'an age of the last refresh')
  expect(await counts()).toEqual(confirmations)
  expect(viewers.map(viewer => viewer.of('doc:1').stale)).toEqual([undefined, undefined])

  backend.on('/docs/1', answers.json(documentOf(2)))
  await Promise.all(viewers.map(viewer => viewer.reaches('doc:1', 2)))
  for (const viewer of viewers) viewer.close()
})

// Last, for it kills a node of the system that all share.
test('a node that dies leaves its keys to another, which asks the backend when it would have', async () => {
  const { gateways, fetchers } = system
  const watched = () => Promise.all(fetchers.map(each => each.metric('keycast_fetcher_watched_keys')))
  await eventually(async () => (await watched()).every(count => count === 0), 'the end of what was watched before')
  // Enough that about half are each node's, whatever its ports: they decide which keys are its own.
  const keys = Array.from({ length: 200 }, (_, id) => `calm:${id}`)
  for (let id = 0; id < keys.length; id++) backend.on(`/calm/${id}`, answers.json(documentOf(1)))
  const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
  for (const viewer of viewers) {
    await viewer.subscribe(keys)
    await Promise.all(keys.map(key => viewer.reaches(key, 1)))
  }
  const [dying, heir] = fetchers
  const moving = await dying.metric('keycast_fetcher_watched_keys')
  expect(moving).toBeGreaterThan(0)

  const asked = backend.asked.length
  await dying.process.kill()
  await eventually(
    async () => (await heir.metric('keycast_fetcher_watched_keys')) === keys.length,
    'the other node to watch all keys',
  )
  // More than one gateway's: each notices the silence for itself. A few keys were due meanwhile, and those are fetched.
  await eventually(
    async () => (await heir.metric('keycast_fetcher_wants_total{met="plan"}')) > moving,
    'both gateways to be answered from the plan of the node that died',
  )
  expect(backend.asked.length - asked).toBeLessThan(moving)

  // The other node notices changes from now on.
  for (let id = 0; id < keys.length; id++) backend.on(`/calm/${id}`, answers.json(documentOf(2)))
  await gateways[0].refresh(keys)
  for (const viewer of viewers) await Promise.all(keys.map(key => viewer.reaches(key, 2)))
  for (const viewer of viewers) viewer.close()
})
