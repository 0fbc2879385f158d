import { createTestGateway } from '../test-support.ts'

const noText = { contentType: 'application/octet-stream', format: 'base64' as const }

async function setup() {
  const bench = createTestGateway()
  return { ...bench, client: await bench.connect('keycast.v1.bytes') }
}

test('a value is its line and the bytes of its body, whatever they are', async () => {
  const { backbone, client } = await setup()
  expect(await client.ask({ type: 'subscribe', id: 1, keys: ['tick:1'] })).toMatchObject([
    { type: 'subscribed', id: 1 },
  ])
  for (const bytes of [
    Buffer.from('{"a":"\\n"}'),
    Buffer.from([0, 10, 255, 10]),
    Buffer.alloc(0),
    Buffer.alloc(70_000, 7),
  ]) {
    const version = backbone.value('tick:1', bytes, noText)
    expect(await client.received()).toEqual([
      { type: 'value', key: 'tick:1', version, contentType: 'application/octet-stream', bytes },
    ])
  }
})

test('a get is answered with its id, or with text where there is nothing to send', async () => {
  const { backbone, client } = await setup()
  client.send({ type: 'get', id: 'a', key: 'tick:1' })
  const version = backbone.value('tick:1', '{"n":1}')
  const contentType = 'application/json'
  const value = { type: 'value', key: 'tick:1', version, contentType, bytes: Buffer.from('{"n":1}') }
  expect(await client.received()).toEqual([{ ...value, id: 'a' }])
  expect(await client.ask({ type: 'get', key: 'tick:1' })).toEqual([value])
  expect(await client.ask({ type: 'get', id: 2, key: 'tick:1', version })).toEqual([
    { type: 'current', id: 2, key: 'tick:1', version },
  ])
  expect(await client.ask({ type: 'get', id: 3, key: 'no key' })).toMatchObject([{ type: 'error', id: 3 }])
})

test.each([100, 100_000])('a value of %i bytes is one Buffer for all sessions, with the only body', async bodyBytes => {
  const { gateway, backbone, connect } = await setup()
  const clients = await Promise.all([connect('keycast.v1.bytes'), connect('keycast.v1.bytes')])
  for (const each of clients) await each.ask({ type: 'subscribe', keys: ['tick:1'] })
  const written: unknown[] = []
  for (const { connection } of clients) connection._socket.write = bytes => written.push(bytes) > 0

  backbone.value('tick:1', Buffer.alloc(bodyBytes), noText)
  await clients[0].received()

  expect(written).toHaveLength(2)
  expect(written[0]).toBe(written[1])
  expect(gateway.values.fresh('tick:1')?.value?.body.buffer).toBe((written[0] as Buffer).buffer)
})

test('sessions of both kinds on one key are each sent theirs, and the body is held once', async () => {
  const { gateway, backbone, client, connect } = await setup()
  const other = await connect('keycast.v1.json')
  const third = await connect('keycast.v1.bytes')
  for (const each of [client, other, third]) await each.ask({ type: 'subscribe', keys: ['tick:1'] })
  const written: unknown[] = []
  const { write } = other.connection._socket
  other.connection._socket.write = bytes => {
    written.push(bytes)
    return write(bytes)
  }
  const version = backbone.value('tick:1', '{"n":1}')
  const asBytes = [{ type: 'value', version, bytes: Buffer.from('{"n":1}') }]
  expect(await client.received()).toMatchObject(asBytes)
  expect(await other.received()).toEqual([{ type: 'value', key: 'tick:1', version, data: { n: 1 } }])
  expect(await third.received()).toMatchObject(asBytes)
  const { forms, body } = gateway.values.fresh('tick:1')?.value ?? {}
  expect(body?.buffer).toBe((written[0] as Buffer).buffer)
  // The frame that held it before is gone.
  expect(forms?.[1]).toMatchObject({ frame: undefined })
})
