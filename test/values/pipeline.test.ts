// A client's life from its first subscribe to its resume, with the simulated backend.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { msSince, show } from '../support/figures.ts'
import { ask } from '../support/http.ts'
import { type Gateway, startProvider, startSystem } from '../support/system.ts'

const CHANGE_MS = 1_000
const KEY = 'conversation:1'

const backend = await startBackend()
let provider: Awaited<ReturnType<typeof startProvider>>
let gateway: Gateway

beforeAll(async () => {
  provider = await startProvider({ PROVIDER_DOCUMENT_BYTES: '130000', PROVIDER_CHANGE_MS: String(CHANGE_MS) })
  const system = await startSystem({
    namespaces: {
      conversation: { url: `${provider.origin}/conversations/{id}`, refresh: '100ms', maxAge: '100ms' },
      doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms' },
      text: { url: `${provider.origin}/text/{id}`, refresh: '100ms' },
      binary: { url: `${provider.origin}/binary/{id}`, refresh: '100ms' },
      // So seldom asked that its value stands while a test looks at it.
      steady: { url: `${provider.origin}/conversations/{id}`, refresh: '1h', maxAge: '1h' },
    },
  })
  gateway = system.gateways[0]
})

const getFromBackend = async (path: string) => (await ask(provider.origin + path)).body

/** The bytes of the backend's content inside a value's message. */
const dataOf = (frame: Buffer | undefined) => {
  if (frame === undefined) throw new Error('no value came')
  const marker = '"data":'
  return frame.subarray(frame.indexOf(marker) + marker.length, -1)
}

test('a subscriber is given what GET of the backend returns, byte for byte', async () => {
  const client = await connect(gateway.url)
  expect(await client.subscribe([KEY])).toMatchObject({ type: 'subscribed', keys: [{ key: KEY }] })
  const sight = client.of(KEY)

  // The backend changes each second: what it says is compared with the value of the same revision, when that comes, and
  // on a busy machine with a later one.
  let expected: Buffer
  let revision: number
  do {
    expected = await getFromBackend('/conversations/1')
    revision = JSON.parse(expected.toString()).revision
    await client.reaches(KEY, revision)
  } while (sight.revision !== revision)
  expect(sight.data).toEqual(JSON.parse(expected.toString()))
  expect(dataOf(sight.frame).equals(expected)).toBe(true)
  expect(expected.length).toBeGreaterThan(125_000)
  client.close()
})

test('every change reaches the subscriber', async () => {
  const put = (revision: number) => backend.on('/docs/1', answers.json(documentOf(revision)))
  put(1)
  const client = await connect(gateway.url)
  await client.subscribe(['doc:1'])
  const sight = client.of('doc:1')
  await client.reaches('doc:1', 1)

  const delays = []
  for (let revision = 2; revision <= 5; revision += 1) {
    const changedAt = performance.now()
    put(revision)
    await client.reaches('doc:1', revision)
    delays.push(msSince(changedAt))
  }
  show(`backend change → viewer, refresh 100 ms: ${delays.join(', ')}`)
  expect(sight.revisions).toEqual([1, 2, 3, 4, 5])
  client.close()
})

test('text and bytes arrive as what they are', async () => {
  const client = await connect(gateway.url)
  await client.subscribe(['text:1', 'binary:1'])
  for (const [key, path, encoding] of [
    ['text:1', '/text/1', 'utf8'],
    ['binary:1', '/binary/1', 'base64'],
  ] as const) {
    // Asked again when the backend changed in between.
    let held: string
    do {
      held = (await getFromBackend(path)).toString(encoding)
      const { values } = client.of(key)
      await client.until(() => client.of(key).data === held || client.of(key).values > values, `the content of ${path}`)
    } while (client.of(key).data !== held)
  }
  client.close()
})

test('after an unsubscribe nothing more of the key arrives', async () => {
  const client = await connect(gateway.url)
  await client.subscribe([KEY, 'text:1'])
  await client.until(() => client.of(KEY).values > 0 && client.of('text:1').values > 0, 'the first values')
  expect(await client.unsubscribe([KEY])).toMatchObject({ type: 'ok' })
  const { values } = client.of(KEY)

  // Two more changes of the other key: the unsubscribed one changed as often meanwhile.
  const until = client.of('text:1').values + 2
  await client.until(() => client.of('text:1').values >= until, 'two changes of the other key')
  await client.ping()
  expect(client.of(KEY).values).toBe(values)
  client.close()
})

test('a subscriber that holds the latest version is told so, and not sent it again', async () => {
  const first = await connect(gateway.url)
  await first.subscribe(['steady:1'])
  await first.until(() => first.of('steady:1').values === 1, 'the value')

  const { version } = first.of('steady:1')
  const second = await connect(gateway.url)
  await second.subscribe([{ key: 'steady:1', version }])
  await second.until(() => second.of('steady:1').currents === 1, 'to be told that it holds the latest')
  await second.ping()
  expect(second.of('steady:1')).toMatchObject({ version, values: 0 })
  first.close()
  second.close()
})

test('a get is answered once, with its id', async () => {
  const client = await connect(gateway.url)
  const value = await client.request({ type: 'get', key: 'steady:2' })
  expect(value).toMatchObject({ type: 'value', key: 'steady:2' })
  expect(value.data.revision).toEqual(expect.any(Number))
  expect(await client.request({ type: 'get', key: 'steady:2', version: value.version })).toMatchObject({
    type: 'current',
    version: value.version,
  })
  client.close()
})

test('the same cache answers over HTTP, with validators', async () => {
  const client = await connect(gateway.url)
  const { version, data } = await client.request({ type: 'get', key: 'steady:3' })

  const response = await ask(`${gateway.http}/v1/values/steady:3`)
  expect(response.status).toBe(200)
  expect(response.json()).toEqual(data)
  const etag = response.headers.etag ?? ''
  expect(etag).toBe(`"${version}"`)
  expect(response.headers.age).toMatch(/^\d+$/)
  expect(response.headers['cache-control']).toMatch(/max-age=\d+/)

  const again = await ask(`${gateway.http}/v1/values/steady:3`, { headers: { 'if-none-match': etag } })
  expect(again.status).toBe(304)
  expect(again.body).toHaveLength(0)
  client.close()
})
