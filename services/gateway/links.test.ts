// Keys whose values the journal keeps, in a gateway that has fetchers, too: each kind goes its own way, and is stale by itself.
import { versionOf } from '@keycast/protocol'
import { createPolicy, createTestGateway, readAs } from './test-support.ts'

const contentOf = (text: string) => {
  const body = Buffer.from(text)
  return { version: versionOf(body), contentType: 'application/json', format: 'json' as const, body }
}

async function setup() {
  const bench = createTestGateway({ namespaces: { tick: { refreshMs: 0 } }, pushed: { price: {} } })
  const client = await bench.connect()
  const handOver = (key: string, text: string) =>
    bench.gateway.backbone.handOver({ key, content: contentOf(text) }, { deadlineMs: 1_000 })
  return { ...bench, client, handOver }
}

test('a key that is handed over is watched at the journal alone, and one that is fetched at the fetcher alone', async () => {
  const { backbone, client, handOver } = await setup()
  const [subscribed, error] = await client.ask({ type: 'subscribe', id: 1, keys: ['price:1', 'tick:1'] })
  expect([subscribed.type, error]).toMatchObject(['subscribed', { type: 'error', key: 'price:1', code: 'not_found' }])
  expect(backbone.calls).toEqual(['watch tick:1'])
  expect(await handOver('price:1', '1')).toEqual({ outcome: 'taken' })
  expect(await handOver('tick:1', '2')).toEqual({ outcome: 'taken' })
  expect(backbone.handedOver.map(({ key }) => key)).toEqual(['tick:1'])
  expect(await client.received()).toMatchObject([{ type: 'value', key: 'price:1', data: 1 }])
})

test('a get of one that is handed over is answered by the journal', async () => {
  const { backbone, client, handOver } = await setup()
  await handOver('price:1', '7')
  expect(await client.ask({ type: 'get', id: 1, key: 'price:1' })).toMatchObject([{ type: 'value', id: 1, data: 7 }])
  expect(backbone.calls).toEqual([])
})

test('while no fetcher is there it is fresh, and while no journal is there it is stale, and the other way round', async () => {
  const { backbone, journal, client, handOver, pass } = await setup()
  await handOver('price:1', '1')
  await client.ask({ type: 'subscribe', id: 1, keys: ['price:1', 'tick:1'] })
  backbone.value('tick:1', '2')
  await client.received()
  await pass(60_000)
  expect(await client.received()).toEqual([])

  backbone.nodesAlive = 0
  for (let seconds = 0; seconds < 5; seconds++) await pass(1_000)
  expect(await client.received()).toMatchObject([{ type: 'stale', key: 'tick:1', code: 'fetcher_unavailable' }])

  journal.setAway(true)
  for (let seconds = 0; seconds < 5; seconds++) await pass(1_000)
  expect(await client.received()).toMatchObject([{ type: 'stale', key: 'price:1', code: 'journal_unavailable' }])
})

test('a namespace that was removed, and added again, is watched anew', async () => {
  const { gateway, client, handOver, pass } = await setup()
  await handOver('price:1', '1')
  await client.ask({ type: 'subscribe', id: 1, keys: ['price:1'] })
  const file = (pushed: object) => readAs({ tick: { refreshMs: 0 } }, {}, { other: {}, ...pushed })
  gateway.takeOver(file({}), createPolicy())
  expect(await client.received()).toMatchObject([{ type: 'error', code: 'unknown_namespace', subscribed: false }])
  gateway.takeOver(file({ price: {} }), createPolicy())
  await client.ask({ type: 'subscribe', id: 2, keys: ['price:1'] })
  for (let seconds = 0; seconds < 10; seconds++) await pass(1_000)
  expect(await client.received()).toEqual([])
})
