import { createTestGateway } from '../test-support.ts'

async function subscribed() {
  const bench = createTestGateway()
  const client = await bench.connect()
  await client.ask({ type: 'subscribe', keys: ['tick:1', 'tick:2'] })
  bench.backbone.value('tick:1', '1')
  bench.backbone.value('tick:2', '1')
  await client.received()
  bench.backbone.calls.length = 0
  return { ...bench, client }
}

test('after ok nothing of the key is sent, not even what was queued before', async () => {
  const { backbone, client } = await subscribed()
  backbone.value('tick:1', '2')
  client.send({ type: 'unsubscribe', id: 'u', keys: ['tick:1'] })
  expect(await client.received()).toEqual([{ type: 'ok', id: 'u' }])

  backbone.value('tick:1', '3')
  expect(await client.received()).toEqual([])
})

test('the last to leave ends the watch', async () => {
  const { backbone, client, connect } = await subscribed()
  const other = await connect()
  await other.ask({ type: 'subscribe', keys: ['tick:1'] })

  await client.ask({ type: 'unsubscribe', keys: ['tick:1', 'tick:2'] })
  expect(backbone.calls).toEqual(['unwatch tick:2'])

  await other.ask({ type: 'unsubscribe', keys: ['tick:1'] })
  expect(backbone.calls).toEqual(['unwatch tick:2', 'unwatch tick:1'])
})

test('a connection that closes has left all its keys', async () => {
  const { backbone, client } = await subscribed()
  client.connection.emit('close', 1001, Buffer.alloc(0))
  expect(backbone.calls).toEqual(['unwatch tick:1', 'unwatch tick:2'])
})

test('keys never subscribed to, or named twice, are no mistake', async () => {
  const { backbone, client } = await subscribed()
  expect(await client.ask({ type: 'unsubscribe', keys: ['tick:2', 'tick:2', 'tick:9', 'no key'] })).toEqual([
    { type: 'ok' },
  ])
  expect(backbone.calls).toEqual(['unwatch tick:2'])
})

test('a client that subscribes again in the same turn is served', async () => {
  const { client } = await subscribed()
  client.send({ type: 'unsubscribe', keys: ['tick:1'] })
  client.send({ type: 'subscribe', keys: ['tick:1'] })
  expect(await client.received()).toMatchObject([
    { type: 'ok' },
    { type: 'subscribed' },
    { type: 'value', key: 'tick:1' },
  ])
})
