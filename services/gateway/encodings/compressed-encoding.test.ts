// Sessions that negotiated compression beside those that did not, in a whole gateway.
import { randomBytes } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import type { Settings } from '../settings.ts'
import { createTestGateway, readFrames } from '../test-support.ts'
import { createValue } from '../topics/values/value.ts'
import { createCompressed } from './compressed-encoding.ts'
import { plainEncodings } from './index.ts'

const DEFLATE = 'permessage-deflate'

const documentOf = (n: number, bytes = 20_000) => JSON.stringify({ n, text: `good morning ${n} `.repeat(bytes / 16) })

async function setup(settings?: Partial<Settings>) {
  const { connect, backbone, turn, ...rest } = createTestGateway({ settings })
  const plain = await connect()
  const deflated = await connect('', DEFLATE)
  const bytes = await connect('keycast.v1.bytes', DEFLATE)
  return {
    ...rest,
    backbone,
    connect,
    turn,
    plain,
    deflated,
    bytes,
    /** The messages that arrive once zlib's threads are done. */
    async compressed(client: typeof plain): Promise<any[]> {
      for (;;) {
        const received = await client.received()
        if (received.length > 0) return received
        await new Promise(resolve => setTimeout(resolve, 1))
      }
    },
  }
}

test('sessions of each kind are sent the same value, and uncompressed ones do not wait', async () => {
  const { backbone, plain, deflated, bytes, compressed } = await setup()
  for (const client of [plain, deflated, bytes]) await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  const body = documentOf(1)
  const version = backbone.value('tick:1', body)
  expect(await plain.received()).toEqual([{ type: 'value', key: 'tick:1', version, data: JSON.parse(body) }])
  expect(await compressed(deflated)).toEqual([
    { type: 'value', key: 'tick:1', version, data: JSON.parse(body), compressed: true },
  ])
  expect(await compressed(bytes)).toMatchObject([{ version, bytes: Buffer.from(body), compressed: true }])

  // A later session uses the same form.
  await deflated.ask({ type: 'unsubscribe', keys: ['tick:1'] })
  expect(await deflated.ask({ type: 'subscribe', keys: ['tick:1'] })).toMatchObject([
    { type: 'subscribed' },
    { version, compressed: true },
  ])
})

test('a get is answered as it is while nothing is compressed, and compressed with its id after', async () => {
  const { backbone, deflated, bytes, turn } = await setup()
  for (const client of [deflated, bytes]) {
    client.send({ type: 'get', id: 'first', key: 'tick:1' })
    const version = backbone.value('tick:1', documentOf(1))
    const [first] = await client.received()
    expect(first).toMatchObject({ id: 'first', version })
    expect(first.compressed).toBeUndefined()
    let next
    do {
      await turn()
      ;[next] = await client.ask({ type: 'get', id: 'é2', key: 'tick:1' })
    } while (!next.compressed)
    expect(next).toEqual({ ...first, id: 'é2', compressed: true })
    const [without] = await client.ask({ type: 'get', key: 'tick:1' })
    const { id: _, ...rest } = next
    expect(without).toEqual(rest)
  }
})

test('messages and small values are sent as they are', async () => {
  const { backbone, deflated, compressed } = await setup()
  await deflated.ask({ type: 'subscribe', keys: ['tick:1', 'tick:2'] })
  backbone.value('tick:1', '{"n":1}')
  expect((await compressed(deflated))[0].compressed).toBeUndefined()
  backbone.value('tick:2', documentOf(2, 1_100))
  expect((await compressed(deflated))[0].compressed).toBe(true)
  backbone.current('tick:1', 'another')
  expect((await deflated.ask({ type: 'ping', id: 1 }))[0].compressed).toBeUndefined()
})

test('content that does not become smaller is sent as it is', async () => {
  const { backbone, bytes, compressed } = await setup()
  await bytes.ask({ type: 'subscribe', keys: ['tick:1'] })
  const noise = randomBytes(20_000)
  backbone.value('tick:1', noise, { contentType: 'image/jpeg', format: 'base64' })
  const [received] = await compressed(bytes)
  expect(received.bytes.equals(noise)).toBe(true)
  expect(received.compressed).toBeUndefined()
})

test('a version overtaken while it is compressed is never sent; what is sent last is the latest', async () => {
  const { backbone, deflated, compressed } = await setup()
  await deflated.ask({ type: 'subscribe', keys: ['tick:1'] })
  const seen = []
  for (let n = 1; n <= 30; n++) {
    backbone.value('tick:1', documentOf(n))
    seen.push(...(await deflated.received()))
  }
  while (seen.at(-1)?.data.n !== 30) seen.push(...(await compressed(deflated)))
  const numbers = seen.map(({ data }) => data.n)
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
})

test('a session that ends, unsubscribes or meets a problem while it waits is sent nothing it should not be', async () => {
  const { backbone, deflated, connect, compressed, turn } = await setup()
  const gone = await connect('', DEFLATE)
  const leaving = await connect('', DEFLATE)
  for (const client of [deflated, gone, leaving]) await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  // 8 MB take a while.
  backbone.value('tick:1', documentOf(1, 8_000_000))
  await turn()
  gone.connection.terminate()
  expect(await leaving.ask({ type: 'unsubscribe', id: 1, keys: ['tick:1'] })).toEqual([{ type: 'ok', id: 1 }])
  backbone.failed('tick:1', 'not_found')
  expect(await compressed(deflated)).toMatchObject([{ type: 'error', code: 'not_found' }])
  expect(await leaving.received()).toEqual([])
  expect(gone.connection.writes).toEqual([])

  const version = backbone.value('tick:1', documentOf(2))
  expect(await compressed(deflated)).toMatchObject([{ type: 'value', version }])
})

test('a confirmation does not overtake the value it confirms', async () => {
  const { backbone, deflated, compressed } = await setup()
  await deflated.ask({ type: 'subscribe', keys: ['tick:1'] })
  const version = backbone.value('tick:1', documentOf(1))
  deflated.send({ type: 'subscribe', id: 2, keys: [{ key: 'tick:1', version }] })
  const received = await compressed(deflated)
  while (received.length < 2) received.push(...(await compressed(deflated)))
  expect(received.map(({ type }) => type)).toEqual(['subscribed', 'value'])
  expect(await deflated.received()).toEqual([])
})

test('a session that does not read is sent the latest, compressed, when it does', async () => {
  const { backbone, deflated, compressed } = await setup()
  await deflated.ask({ type: 'subscribe', keys: ['tick:1', 'tick:2'] })
  deflated.connection.stuck = true
  backbone.value('tick:1', documentOf(0, 10_000_000))
  await compressed(deflated)
  for (let n = 1; n <= 20; n++) {
    backbone.value('tick:1', documentOf(n))
    backbone.value('tick:2', documentOf(n))
    expect(await deflated.received()).toEqual([])
  }
  deflated.connection.drain()
  const received = await compressed(deflated)
  while (received.length < 2) received.push(...(await compressed(deflated)))
  expect(received).toMatchObject([
    { data: { n: 20 }, compressed: true },
    { data: { n: 20 }, compressed: true },
  ])
})

test('any head makes one frame with the same blocks', async () => {
  const value = createValue({
    key: 'tick:1',
    version: 'v',
    contentType: 'application/json',
    format: 'json',
    body: Buffer.from('{}'),
  })
  const rest = Buffer.from([0, 1, 0, 0xfe, 0xff, 0x7d, 0])
  expect(inflateRawSync(Buffer.concat([rest, Buffer.from([0, 0, 0xff, 0xff])]), { finishFlush: 2 }).toString()).toBe(
    '}',
  )
  const form = { start: undefined, blocks: rest, savedBytes: 0, isPlain: false, waiting: [] }
  value.forms[9] = form
  const encoding = createCompressed(plainEncodings[1], 9, {
    compression: { formOf: () => form },
    counts: { sentCompressed: 0, savedBytes: 0 },
  })
  for (const id of [undefined, 1, 'x'.repeat(128)]) {
    const pieces: Buffer[] = []
    const bytes = encoding.addAnswer(value, id, pieces)
    const frame = Buffer.concat(pieces)
    expect(bytes).toBe(frame.length)
    expect(readFrames(frame)).toMatchObject([
      { type: 'value', version: 'v', bytes: Buffer.from('}'), compressed: true },
    ])
  }
})
