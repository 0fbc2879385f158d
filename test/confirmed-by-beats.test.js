// Keys that are refreshed every 5 s and more: gateways hear of changes only, and know how old everything else is.
import { answers, documentOf, startBackend } from './support/backend.js'
import { connect } from './support/client.js'
import { eventually } from './support/deadline.js'
import { ask } from './support/http.js'
import { startSystem } from './support/system.js'

test('refreshes that bring nothing new are not told key by key, ages stay true, and changes come', async () => {
  const backend = await startBackend()
  const { gateways, fetchers } = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: '5s', maxAge: '20s', timeout: '1s' } },
    gateways: 2,
  })
  const [fetcher] = fetchers
  backend.on('/docs/1', answers.json(documentOf(1)))
  const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(['doc:1'])))
  await Promise.all(viewers.map(viewer => viewer.reaches('doc:1', 1)))
  const confirmations = await fetcher.metric('keycast_fetcher_answers_total{type="current"}')

  await backend.until(asked => asked.length >= 4, 'three refreshes')
  const asOf = backend.asked.length

  // The gateway answers from memory, with an age that says: the backend was asked since.
  await eventually(async () => {
    const { headers } = await ask(`${gateways[0].http}/v1/values/doc:1`)
    return Number(headers.age) <= 5
  }, 'an age of the last refresh')
  expect(await fetcher.metric('keycast_fetcher_answers_total{type="current"}')).toBe(confirmations)
  expect(viewers.map(viewer => viewer.of('doc:1').stale)).toEqual([undefined, undefined])
  expect(asOf).toBeGreaterThanOrEqual(4)

  backend.on('/docs/1', answers.json(documentOf(2)))
  await Promise.all(viewers.map(viewer => viewer.reaches('doc:1', 2)))
  for (const viewer of viewers) viewer.close()
})
