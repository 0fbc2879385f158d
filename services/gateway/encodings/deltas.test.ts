// Deltas: which sessions are sent one, and that a client that applies them always has the bytes of that version.
import type { Delta } from '@keycast/backbone'
import { versionOf } from '@keycast/protocol'
import { applyDelta, createDelta } from 'fossil-delta'
import { randomNumbers } from '../../../test/support/random.js'
import { createTestGateway } from '../test-support.ts'
import { createValue, valueBytes } from '../topics/values/value.ts'

const K = 'tick:1'
const PAD = 'lorem ipsum dolor '.repeat(200)

const body = (n: number, pad: string = PAD) => Buffer.from(JSON.stringify({ n, pad }))

/** Made once for all tests, some of which go back and forth between the same few. */
const deltas = new Map<string, Buffer>()

function deltaOf(from: Buffer, to: Buffer): Delta {
  const version = versionOf(from)
  const pair = `${version} ${versionOf(to)}`
  const bytes = deltas.get(pair) ?? Buffer.from(createDelta(from, to))
  deltas.set(pair, bytes)
  return { from: version, bytes }
}

const subscribe = (key: string, version: string) => ({
  type: 'subscribe',
  keys: [{ key, version }],
})

async function setup() {
  const bench = createTestGateway()
  const change = (n: number, from?: number) =>
    bench.backbone.value(K, body(n), { delta: from ? deltaOf(body(from), body(n)) : undefined })
  return { ...bench, change, speakBytes: () => bench.connect('keycast.v1.bytes') }
}

const types = async (client: { received: () => Promise<any[]> }) => (await client.received()).map(({ type }) => type)

test('a session that was sent the version before is sent the delta, every such session the same Buffer', async () => {
  const { speakBytes, change } = await setup()
  const [first, second] = [await speakBytes(), await speakBytes()]
  for (const client of [first, second]) await client.ask({ type: 'subscribe', keys: [K] })
  const from = change(1)
  for (const client of [first, second]) expect(await types(client)).toEqual(['value'])

  const version = change(2, 1)
  const [message] = await first.received()
  const { bytes, ...line } = message
  expect(line).toEqual({ type: 'delta', key: K, from, version, contentType: 'application/json' })
  expect(Buffer.from(applyDelta(body(1), bytes))).toEqual(body(2))
  expect(second.connection.writes.at(-1)?.length).toBeLessThan(250)
  expect(await second.received()).toEqual([message])
})

test('sessions that speak JSON, hold nothing, or hold another version are sent all of it', async () => {
  const { connect, speakBytes, change } = await setup()
  const [json, conflated] = [await connect(), await speakBytes()]
  for (const client of [json, conflated]) await client.ask({ type: 'subscribe', keys: [K] })
  change(1)
  for (const client of [json, conflated]) expect(await types(client)).toEqual(['value'])
  change(2, 1)
  change(3, 2)
  const [late, resumed] = [await speakBytes(), await speakBytes()]
  late.send({ type: 'subscribe', keys: [K] })
  resumed.send(subscribe(K, versionOf(body(1))))
  expect(await types(json)).toEqual(['value'])
  expect(await types(conflated)).toEqual(['value'])
  for (const client of [late, resumed]) expect(await types(client)).toEqual(['subscribed', 'value'])
})

test('after having been sent all of it, or current, a session is sent deltas again', async () => {
  const { speakBytes, change } = await setup()
  const [first, second] = [await speakBytes(), await speakBytes()]
  await first.ask({ type: 'subscribe', keys: [K] })
  change(1)
  change(2)
  expect(await types(first)).toEqual(['value'])
  second.send(subscribe(K, versionOf(body(2))))
  expect(await types(second)).toEqual(['subscribed', 'current'])
  for (let n = 3; n < 10; n++) {
    change(n, n - 1)
    for (const client of [first, second]) expect(await types(client)).toEqual(['delta'])
  }
})

test('a client that comes back with the version before is sent the delta', async () => {
  const { speakBytes, change } = await setup()
  const [watching, resumed, waiting] = [await speakBytes(), await speakBytes(), await speakBytes()]
  // Nothing is held yet: this one is answered when the first value comes.
  waiting.send(subscribe(K, versionOf(body(1))))
  change(2, 1)
  expect(await types(waiting)).toEqual(['subscribed', 'delta'])
  await watching.ask({ type: 'subscribe', keys: [K] })
  resumed.send(subscribe(K, versionOf(body(1))))
  expect(await types(resumed)).toEqual(['subscribed', 'delta'])
})

test('a client that is subscribed and names another version than it was sent is sent the value whole', async () => {
  const { speakBytes, change } = await setup()
  const client = await speakBytes()
  await client.ask({ type: 'subscribe', keys: [K] })
  change(1)
  await client.received()
  // The new version is on its way when it says that it holds the one before.
  change(2, 1)
  expect(await types(client)).toEqual(['delta'])
  client.send(subscribe(K, versionOf(body(1))))
  expect(await types(client)).toEqual(['subscribed', 'value'])
  change(3, 2)
  client.send({ type: 'subscribe', keys: [K] })
  expect(await types(client)).toEqual(['subscribed', 'value'])
})

test('after `not_found` the value is sent whole', async () => {
  const { speakBytes, backbone, change } = await setup()
  const client = await speakBytes()
  await client.ask({ type: 'subscribe', keys: [K] })
  change(1)
  await client.received()
  backbone.failed(K, 'not_found')
  change(2, 1)
  expect(await types(client)).toEqual(['value'])
})

test('no delta starts from the answer to a get', async () => {
  const { speakBytes, change } = await setup()
  const client = await speakBytes()
  await client.ask({ type: 'subscribe', keys: [K] })
  change(1)
  await client.received()
  change(2, 1)
  client.send({ type: 'get', id: 7, key: K })
  expect(await client.received()).toMatchObject([
    { type: 'value', id: 7 },
    { type: 'delta', from: versionOf(body(1)) },
  ])
})

test('a session that negotiated compression is sent deltas as they are, and does not wait for the value', async () => {
  const { connect, change } = await setup()
  const client = await connect('keycast.v1.bytes', 'permessage-deflate')
  await client.ask(subscribe(K, versionOf(body(1))))
  change(2, 1)
  const [message] = await client.received()
  expect(message).toMatchObject({ type: 'delta', version: versionOf(body(2)) })
  expect(message).not.toHaveProperty('compressed')
})

test('a delta counts in the cache', () => {
  const value = {
    key: K,
    version: 'w',
    contentType: 'text/plain',
    format: 'text' as const,
    body: body(2),
  }
  const bytes = Buffer.alloc(100)
  const counted = valueBytes(createValue({ ...value, delta: { from: 'v', bytes } })) - valueBytes(createValue(value))
  expect(counted).toBeGreaterThan(bytes.length)
})

test.each([0, 1, 2, 3, 4, 5, 6, 7])(
  'whatever happens, every version is the one its bytes have, seed %i',
  async seed => {
    const random = randomNumbers(seed)
    const { backbone, connect } = await setup()
    const contents = Array.from({ length: 6 }, (_, n) => body(n, PAD.repeat(4)))
    let latest = contents[0]
    let deltasTaken = 0
    const viewers = await Promise.all(
      Array.from({ length: 4 }, async () => ({
        client: await connect('keycast.v1.bytes'),
        held: undefined as Buffer | undefined,
      })),
    )
    for (const { client } of viewers) client.send({ type: 'subscribe', keys: [K] })
    backbone.value(K, latest)

    for (let step = 0; step < 150; step++) {
      const viewer = viewers[Math.floor(random() * viewers.length)]
      const { connection } = viewer.client
      const act = random()
      if (act < 0.5) {
        const from = latest
        latest = contents[Math.floor(random() * contents.length)]
        backbone.value(K, latest, { delta: random() < 0.9 ? deltaOf(from, latest) : undefined })
      } else if (act < 0.6) {
        connection.stuck = !connection.stuck
        if (!connection.stuck) connection.drain()
      } else if (act < 0.7) {
        viewer.client.send(viewer.held ? subscribe(K, versionOf(viewer.held)) : { type: 'subscribe', keys: [K] })
      } else if (act < 0.75) {
        // The client loses its connection and returns with the version that it holds.
        connection.terminate()
        viewer.client = await connect('keycast.v1.bytes')
        viewer.client.send(viewer.held ? subscribe(K, versionOf(viewer.held)) : { type: 'subscribe', keys: [K] })
      } else if (act < 0.78) {
        backbone.failed(K, 'not_found')
        backbone.value(K, latest)
      }
      for (const each of viewers) {
        if (each.client.connection.stuck) continue
        for (const message of await each.client.received()) {
          if (message.type === 'value') each.held = Buffer.from(message.bytes)
          if (message.type === 'delta') {
            deltasTaken++
            if (!each.held || message.from !== versionOf(each.held)) throw new Error('a delta from what is not held')
            each.held = Buffer.from(applyDelta(each.held, message.bytes))
          }
          if (message.version && each.held && versionOf(each.held) !== message.version)
            throw new Error(`${message.version} is not the version of the bytes held`)
        }
        if (!each.held?.equals(latest)) throw new Error('a viewer does not hold the latest')
      }
    }
    expect(deltasTaken).toBeGreaterThan(50)
  },
)
