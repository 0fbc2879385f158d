// Deltas from backend to viewer: after every message a viewer holds the bytes that its version names. Each client here
// checks that (support/client.ts).
import { versionOf } from '@keycast/protocol'
import { answers, type Backend, startBackend } from '../support/backend.ts'
import { type Client, connect, connectViewer, createSights, type Sight } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { createRandom } from '../support/random.js'
import { type System, startProvider, startSystem } from '../support/system.ts'

const BYTES = { protocols: ['keycast.v1.bytes'] }
const JSON_KEYS = ['doc:0', 'doc:1', 'doc:2', 'doc:3']
const KEYS = [...JSON_KEYS, 'blob:0', 'blob:1']

let backend: Backend
let system: System

beforeAll(async () => {
  backend = await startBackend()
  const provider = await startProvider({ PROVIDER_DOCUMENT_BYTES: '130000', PROVIDER_CHANGE_MS: '500' })
  system = await startSystem({
    gateways: 2,
    namespaces: {
      doc: { url: `${backend.origin}/doc/{id}`, refresh: 0 },
      blob: { url: `${backend.origin}/blob/{id}`, refresh: 0 },
      conversation: { url: `${provider.origin}/conversations/{id}`, refresh: '50ms' },
    },
  })
})

function createContents(seed: number) {
  const random = createRandom(seed)
  const line = () => `${random.bytes(12).toString('hex')} said something that is longer than that`
  const held = new Map<string, { bytes: Buffer; lines: string[]; revision: number }>()

  /** Changes a content a little, as conversations and files change. */
  function change(key: string) {
    const { bytes, lines, revision } = held.get(key) ?? { bytes: random.bytes(2_000), lines: [line()], revision: 0 }
    const next = { bytes: random.mutate(bytes).subarray(0, 4_000), lines: [...lines], revision: revision + 1 }
    const at = random.integer(lines.length)
    const act = random.integer(10)
    if (act < 5) next.lines.push(line())
    else if (act < 7) next.lines.splice(at, 1, line())
    else if (act < 9) next.lines.splice(at, 1)
    else next.lines.reverse()
    if (next.lines.length > 40) next.lines.shift()
    if (next.lines.length === 0) next.lines.push(line())
    if (key.startsWith('doc')) next.bytes = Buffer.from(JSON.stringify({ revision: next.revision, lines: next.lines }))
    held.set(key, next)
    publish(key, next.bytes)
  }

  return {
    change,
    of: (key: string) => held.get(key)?.bytes as Buffer,
  }
}

/** Sets the backend's content for a key. */
function publish(key: string, bytes: Buffer) {
  const answer = key.startsWith('blob') ? answers.content(bytes, 'application/octet-stream') : answers.json(bytes)
  backend.on(`/${key.replace(':', '/')}`, answer)
}

const versionIn = (viewer: Client | { sights: ReturnType<typeof createSights> }, key: string) =>
  viewer.sights.of(key).version

/** The content inside a value of `keycast.v1.json`. */
function contentInJson({ frame, data }: Sight) {
  if (typeof data === 'string') return Buffer.from(data, 'base64')
  const marker = '"data":'
  return (frame as Buffer).subarray((frame as Buffer).indexOf(marker) + marker.length, -1)
}

const bytesRead = (client: Client) => (client.socket as any)._socket.bytesRead

test('a new message in a conversation of 130 KB costs its viewer under 500 bytes', async () => {
  const [gateway] = system.gateways
  const sent = () => gateway.metric('keycast_gateway_messages_sent_total{type="delta"}')
  const savedBytes = () => gateway.metric('keycast_gateway_delta_saved_bytes_total')
  const key = 'conversation:1'
  const client = await connect(gateway.url, BYTES)
  await client.subscribe([key])
  const sight = client.of(key)
  await client.until(() => sight.deltas > 0, 'the first delta')

  const counted = { sent: await sent(), savedBytes: await savedBytes() }
  let before: { bytes: number; values: number; deltas: number }
  do {
    before = { bytes: bytesRead(client), values: sight.values, deltas: sight.deltas }
    await client.until(() => sight.deltas === before.deltas + 8, 'eight deltas more')
    // Each change of them a delta: a gateway that stood still skips one, and has none from what the client holds.
  } while (sight.values - before.values > 8)
  const bytes = (bytesRead(client) - before.bytes) / 8
  show(`a new message in 130 KB of conversation: ${Math.round(bytes)} bytes to the viewer`)
  expect(bytes).toBeLessThan(500)
  expect(sight.content).toHaveLength(130_000)
  expect(await sent()).toBeGreaterThanOrEqual(counted.sent + 8)
  expect(await savedBytes()).toBeGreaterThan(counted.savedBytes + 8 * 129_000)
  client.close()
})

test('over thousands of changes every viewer holds the bytes its version names, in either subprotocol', async () => {
  const contents = createContents(1)
  const [gateway, other] = system.gateways
  for (const key of KEYS) contents.change(key)
  const steady = await Promise.all([gateway, other].map(({ url }) => connect(url, BYTES)))
  const json = await connect(gateway.url)
  for (const client of [...steady, json]) await client.subscribe(KEYS)
  // Two that lose their connection again and again, and resume by version, at the one gateway or the other.
  const restless = await Promise.all([
    connectViewer([gateway.url, other.url], KEYS, BYTES),
    connectViewer([other.url, gateway.url], KEYS, BYTES),
  ])
  const all = [...steady, json, ...restless]

  const rounds = 400
  for (let round = 1; round <= rounds; round += 1) {
    // Several changes at once leave a gateway with one of them to send, and nobody with the one before it.
    const changed = KEYS.filter((_, index) => round % (index + 1) === 0 || round % 5 === 0)
    for (const key of changed) contents.change(key)
    await gateway.refresh(changed)
    if (round % 7 === 0) restless[0].cut()
    if (round % 11 === 0) restless[1].cut()
    if (round % 3 === 0) await Promise.all(steady.map(client => reached(client, contents)))
  }
  await gateway.refresh(KEYS)
  for (const client of [...steady, json]) await reached(client, contents)
  for (const viewer of restless) {
    const isThere = () => KEYS.every(key => versionIn(viewer, key) === versionIs(key, contents.of(key)))
    await eventually(isThere, 'a viewer that reconnects having the latest of every key')
    viewer.stop()
  }

  for (const viewer of all) {
    for (const key of KEYS) {
      const sight = viewer.sights.of(key)
      expect((viewer === json ? contentInJson(sight) : sight.content)?.equals(contents.of(key))).toBe(true)
    }
  }
  const sum = (what: 'values' | 'deltas') =>
    [...steady, ...restless].flatMap(({ sights }) => KEYS.map(key => sights.of(key)[what])).reduce((a, b) => a + b)
  show(`${sum('values')} versions of ${KEYS.length} keys to ${all.length - 1} viewers, ${sum('deltas')} as deltas`)
  expect(sum('values')).toBeGreaterThan(3_000)
  expect(sum('deltas')).toBeGreaterThan(sum('values') / 2)
  for (const client of [...steady, json]) client.close()
})

/** The version of the backend's content for a key: that of blobs names their type. */
const versionIs = (key: string, content: Buffer) =>
  versionOf(content, key.startsWith('blob') ? 'application/octet-stream' : undefined)

/** Waits until a client holds the latest of every key. */
async function reached(client: Client, contents: ReturnType<typeof createContents>) {
  for (const key of KEYS) {
    const version = versionIs(key, contents.of(key))
    await client.until(() => versionIn(client, key) === version, `the latest of ${key}`)
  }
}

test('a viewer that skipped versions because it did not read is sent the value whole, then deltas again', async () => {
  const random = createRandom(2)
  const key = 'blob:large'
  const [gateway] = system.gateways
  let content: Buffer = random.bytes(200_000)
  const set = async (bytes: Buffer) => {
    content = bytes
    publish(key, content)
    await gateway.refresh([key])
    await reading.until(() => versionIn(reading, key) === versionIs(key, content), 'a reader having the latest')
  }
  const edited = () => Buffer.concat([random.bytes(10), content.subarray(10)])
  const reading = await connect(gateway.url, BYTES)
  const stalled = await connect(gateway.url, BYTES)
  publish(key, content)
  for (const client of [reading, stalled]) {
    await client.subscribe([key])
    await client.until(() => versionIn(client, key) === versionIs(key, content), 'the first version')
  }

  await set(edited())
  await stalled.until(() => stalled.of(key).deltas === 1, 'a delta')
  stalled.stall()
  const conflated = () => gateway.metric('keycast_gateway_conflated_total')
  const before = await conflated()
  const noise = random.bytes(200_000)
  // Nothing is alike in these, so that each goes out whole and fills the sockets on the way.
  for (let n = 1; (await conflated()) < before + 3; n += 1) await set(Buffer.from(noise.map(byte => byte ^ (n * 37))))
  for (let n = 0; n < 5; n += 1) await set(edited())
  stalled.resume()
  await stalled.until(() => versionIn(stalled, key) === versionIs(key, content), 'the latest, once it reads')
  const { deltas, values } = stalled.of(key)
  expect(values).toBeLessThan(reading.of(key).values)

  // The noise took the worker's time for deltas: on a slow machine the first changes after it still go out whole.
  while (stalled.of(key).deltas < deltas + 3) {
    await set(edited())
    await stalled.until(() => versionIn(stalled, key) === versionIs(key, content), 'each change')
  }
  for (const client of [reading, stalled]) client.close()
})

test('a viewer that comes back is sent the delta to what it holds, or told that it holds the latest', async () => {
  const contents = createContents(3)
  const key = 'doc:resumed'
  const [gateway] = system.gateways
  for (let n = 0; n < 20; n += 1) contents.change(key)
  const staying = await connect(gateway.url, BYTES)
  await staying.subscribe([key])
  const latest = () => versionIs(key, contents.of(key))
  await staying.until(() => versionIn(staying, key) === latest(), 'the first version')

  const sights = createSights()
  for (const [changes, expected] of [
    [0, { values: 1, deltas: 0, currents: 0 }],
    [0, { values: 1, deltas: 0, currents: 1 }],
    [1, { values: 2, deltas: 1, currents: 1 }],
    [2, { values: 3, deltas: 1, currents: 1 }],
  ] as const) {
    for (let change = 0; change < changes; change += 1) {
      contents.change(key)
      await gateway.refresh([key])
      await staying.until(() => versionIn(staying, key) === latest(), 'the change')
    }
    const client = await connect(gateway.url, { ...BYTES, sights })
    await client.subscribe([{ key, version: sights.of(key).version }])
    await client.until(
      () => sights.of(key).values + sights.of(key).currents === expected.values + expected.currents,
      'the answer',
    )
    expect(sights.of(key)).toMatchObject(expected)
    expect(sights.of(key).content?.equals(contents.of(key))).toBe(true)
    client.close()
  }
  staying.close()
})

test('a gateway or a fetcher that is killed leaves no viewer with wrong bytes, and deltas go on', async () => {
  const contents = createContents(4)
  for (const key of KEYS) contents.change(key)
  const system = await startSystem({
    namespaces: {
      doc: { url: `${backend.origin}/doc/{id}`, refresh: '100ms' },
      blob: { url: `${backend.origin}/blob/{id}`, refresh: '100ms' },
    },
  })
  let [gateway] = system.gateways
  let [fetcher] = system.fetchers
  const urls = [gateway.url]
  const viewer = await connectViewer(urls, KEYS, BYTES)
  const deltas = () => KEYS.reduce((sum, key) => sum + viewer.sights.of(key).deltas, 0)
  const isThere = () => KEYS.every(key => versionIn(viewer, key) === versionIs(key, contents.of(key)))
  /** Changes go on until so many deltas came. */
  const change = async (count: number) => {
    for (const until = deltas() + count; deltas() < until; ) {
      for (const key of KEYS) contents.change(key)
      await eventually(isThere, 'the viewer having every change')
    }
  }

  await change(30)
  await gateway.process.kill()
  gateway = await system.startGateway()
  urls[0] = gateway.url
  await change(30)
  await fetcher.process.kill()
  for (const key of KEYS) contents.change(key)
  fetcher = await system.startFetcher(fetcher.ports)
  await eventually(isThere, 'the viewer having what changed meanwhile')
  await change(30)
  for (const key of KEYS) expect(viewer.sights.of(key).content?.equals(contents.of(key))).toBe(true)
  expect(await fetcher.metric('keycast_fetcher_deltas_total{result="made"}')).toBeGreaterThan(0)
  viewer.stop()
  await system.stop()
})
