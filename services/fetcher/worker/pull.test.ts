import { randomBytes } from 'node:crypto'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { versionOf } from '@keycast/protocol'
import { realWorld } from '@keycast/service'
import { eventually } from '../../../test/support/deadline.ts'
import { answering, cleanUp, json, secret, setup } from './pull.fixture.ts'

afterEach(cleanUp)

test('200 with JSON is a value, its bytes as they came', async () => {
  const body = '{ "a": 1.0 }\n'
  const { pull, requests } = await setup(
    answering(200, { ...json, etag: 'W/"7"', 'cache-control': 'max-age=10', age: '4' }, body),
  )

  expect(await pull()).toEqual({
    result: {
      kind: 'value',
      status: 200,
      version: versionOf(Buffer.from(body)),
      contentType: 'application/json',
      format: 'json',
      etag: 'W/"7"',
      lastModified: undefined,
      maxAgeMs: 6_000,
      store: true,
    },
    body: Buffer.from(body),
  })
  expect(requests).toHaveLength(1)
})

test('a result says when its request was sent, the last one where it was redirected, and nothing where none was', async () => {
  let arrivedAt = 0
  const { pull, times } = await setup((request, response) => {
    arrivedAt = realWorld.hostNow()
    if (request.url === '/conversations/1') response.writeHead(302, { location: '/there' }).end()
    else response.writeHead(200, json).end('1')
  })
  const before = realWorld.hostNow()
  await pull({ redirects: true })
  await pull({ url: 'http://127.0.0.1:1/' })
  const [askedAt] = times as number[]
  expect(askedAt).toBeGreaterThan(before)
  expect(askedAt).toBeLessThanOrEqual(arrivedAt)
  expect(times[1]).toBeUndefined()
})

test('from a backend that waited, it says a time while that had not answered', async () => {
  let arrivedAt = 0
  let answeredAt = 0
  const { pull, times } = await setup((_, response) => {
    arrivedAt = realWorld.hostNow()
    setTimeout(() => {
      answeredAt = realWorld.hostNow()
      response.writeHead(200, json).end('1')
    }, 300)
  })
  await pull({ waitSeconds: 20, etag: '"v1"' })
  const [askedAt] = times as number[]
  expect(askedAt).toBeLessThanOrEqual(answeredAt)
  expect(askedAt).toBeGreaterThan(arrivedAt)
})

test('a request carries the headers of its namespace and has a trace of its own', async () => {
  const { pull, requests } = await setup(answering(200, json, '1'))

  await pull({ headers: { authorization: secret, accept: 'application/hal+json', 'x-tenant': 'é' } })

  const { method, url, headers } = requests[0]
  expect({ method, url }).toEqual({ method: 'GET', url: '/conversations/1' })
  expect(headers).toMatchObject({
    authorization: secret,
    accept: 'application/hal+json',
    'x-tenant': 'é',
    'accept-encoding': 'gzip, br',
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
    connection: 'keep-alive',
  })
  expect(headers).not.toHaveProperty('if-none-match')
  expect(headers).not.toHaveProperty('if-modified-since')
})

test('a lease with a body is a POST of JSON', async () => {
  const bodies: string[] = []
  const { pull, requests } = await setup((request, response) => {
    let sent = ''
    request.on('data', chunk => {
      sent += chunk
    })
    request.on('end', () => {
      bodies.push(sent)
      response.writeHead(200, json).end('{"data":1}')
    })
  })

  const { result } = await pull({}, '{"id":"é"}')
  await pull({ headers: { 'content-type': 'application/graphql+json' } }, '{}')

  expect(result).toMatchObject({ kind: 'value', format: 'json' })
  expect(bodies).toEqual(['{"id":"é"}', '{}'])
  expect(requests.map(({ method, headers }) => `${method} ${headers['content-type']}`)).toEqual([
    'POST application/json',
    'POST application/graphql+json',
  ])
})

test('validators go back as they came, the entity tag before the date', async () => {
  const { pull, requests } = await setup(answering(304))
  const date = 'Sun, 06 Nov 1994 08:49:37 GMT'

  await pull({ version: 'v', etag: 'W/"é,1"', lastModified: date })
  await pull({ version: 'v', lastModified: date })

  expect(requests[0].headers['if-none-match']).toBe('W/"é,1"')
  expect(requests[0].headers).not.toHaveProperty('if-modified-since')
  expect(requests[1].headers['if-modified-since']).toBe(date)
})

test('a backend is asked to wait, and says whether it did', async () => {
  for (const [applied, waited] of [
    ['wait=20', true],
    ['respond-async, Wait=10', true],
    ['respond-async', false],
    ['waiting', false],
    [undefined, false],
  ] as const) {
    const { pull, requests } = await setup((request, response) => {
      if (applied) response.setHeader('preference-applied', applied)
      if (request.headers['if-none-match']) response.writeHead(304).end()
      else response.writeHead(200, json).end('1')
    })
    expect((await pull({ version: 'v', etag: '"1"', waitSeconds: 20 })).result).toMatchObject({
      kind: 'current',
      waited,
    })
    expect((await pull({ version: 'v', waitSeconds: 20 })).result).toMatchObject({ kind: 'value', waited })
    expect((await pull()).result).not.toHaveProperty('waited', true)
    expect(requests.map(({ headers }) => headers.prefer)).toEqual(['wait=20', 'wait=20', undefined])
  }
})

test('304 is current, and keeps the validators it does not repeat', async () => {
  const { pull, requests } = await setup(answering(304, { 'cache-control': 'no-store' }))

  expect(await pull({ version: 'v', etag: '"1"' })).toEqual({
    result: {
      kind: 'current',
      status: 304,
      etag: '"1"',
      lastModified: undefined,
      maxAgeMs: undefined,
      store: false,
    },
  })
  expect(requests).toHaveLength(1)
})

test('304 that names what the value has become since the backend compared keeps the validators that it was asked with', async () => {
  const date = 'Sun, 06 Nov 1994 08:49:37 GMT'
  const { pull } = await setup(answering(304, { etag: '"2"', 'last-modified': 'Mon, 07 Nov 1994 08:49:37 GMT' }))

  const { result } = await pull({ version: 'v', etag: '"1"', lastModified: date })

  expect(result).toMatchObject({ kind: 'current', etag: '"1"', lastModified: date })

  // An ETag is asked for before a date: the next 304 would be to that of the newer value.
  const dated = await pull({ version: 'v', lastModified: date })
  expect(dated.result).toMatchObject({ kind: 'current', etag: undefined, lastModified: date })
})

test('304 without Cache-Control leaves it to the primary what it knows: a value that may not be stored stays so', async () => {
  const { pull } = await setup(answering(304))

  const { result } = await pull({ version: 'v', etag: '"1"' })

  expect(result).toMatchObject({ kind: 'current', store: undefined, maxAgeMs: undefined })
})

test('304 that nobody asked for is an error of the backend', async () => {
  const { pull } = await setup(answering(304))

  expect((await pull({ version: 'v' })).result).toMatchObject({
    kind: 'failed',
    code: 'backend_error',
    status: 304,
  })
})

test('200 with the bytes of the version held is current, and their validators are the new ones', async () => {
  const { pull } = await setup(answering(200, { ...json, etag: '"2"' }, '{}'))

  const { result, body } = await pull({ version: versionOf(Buffer.from('{}')), etag: '"1"' })

  expect(result).toMatchObject({ kind: 'current', status: 200, etag: '"2"' })
  expect(body).toBeUndefined()
})

const later = new Date(Date.now() + 60_000).toUTCString()
const now = new Date(Date.parse(later) - 60_000).toUTCString()

test.each([
  [404, { 'cache-control': 'max-age=5' }, { code: 'not_found', maxAgeMs: 5_000 }],
  [410, {}, { code: 'not_found' }],
  [204, {}, { code: 'not_found' }],
  [429, {}, { code: 'backend_throttled', retryAfterMs: undefined }],
  [429, { 'retry-after': '7' }, { code: 'backend_throttled', retryAfterMs: 7_000 }],
  [429, { 'retry-after': later, date: now }, { code: 'backend_throttled', retryAfterMs: 60_000 }],
  [401, {}, { code: 'backend_refused' }],
  [301, { location: 'http://127.0.0.1:1/' }, { code: 'backend_redirect' }],
  [500, {}, { code: 'backend_error' }],
  [503, { 'retry-after': '2' }, { code: 'backend_error', retryAfterMs: 2_000 }],
])('%i with %j is told as it is meant, after one request', async (status, headers, expected) => {
  const { pull, requests } = await setup(answering(status, headers))

  const { result, body } = await pull()

  expect(result).toMatchObject({ kind: 'failed', status, ...expected })
  expect(body).toBeUndefined()
  expect(requests).toHaveLength(1)
})

test('a slow answer within the deadline is a value', async () => {
  const { pull } = await setup((_, response) => {
    response.writeHead(200, json).write('[')
    setTimeout(() => response.end(']'), 150)
  })

  expect((await pull({ timeoutMs: 5_000 })).result.kind).toBe('value')
})

test('an answer that came while this process stood still is a value, though its deadline passed meanwhile', async () => {
  const { pull } = await setup((_, response) => {
    response.writeHead(200, json).end('1')
    for (const until = performance.now() + 300; performance.now() < until; );
  })

  expect((await pull({ timeoutMs: 200 })).result.kind).toBe('value')
})

test.each([
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['BR', brotliCompressSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
])('%s content is inflated, be it short or long', async (encoding, compress) => {
  for (const content of ['{"a":1}', JSON.stringify(randomBytes(8_000).toString('hex'))]) {
    const { pull } = await setup(answering(200, { ...json, 'content-encoding': encoding }, compress(content)))

    const { result, body } = await pull({ bytesMax: 20_000 })

    expect(result).toMatchObject({ kind: 'value', version: versionOf(Buffer.from(content)) })
    expect(String(body)).toBe(content)
  }
})

test('each request has another trace, and those that it is redirected to have the same', async () => {
  const { pull, requests } = await setup((request, response) => {
    if (request.url === '/conversations/1') response.writeHead(302, { location: '/to' }).end()
    else response.writeHead(500).end()
  })
  const traces = () => requests.map(({ headers }) => headers.traceparent)

  const { result } = await pull({ redirects: true })
  await pull()

  expect(traces()[1]).toBe(traces()[0])
  expect(traces()[2]).not.toBe(traces()[0])
  expect(result).toMatchObject({ kind: 'failed', traceparent: traces()[0] })
})

test('304 and 404 that name an encoding but have no body are read', async () => {
  const { pull } = await setup((request, response) =>
    response.writeHead(request.headers['if-none-match'] ? 304 : 404, { 'content-encoding': 'gzip' }).end(),
  )

  expect((await pull({ version: 'v', etag: '"1"' })).result.kind).toBe('current')
  expect((await pull()).result).toMatchObject({ code: 'not_found' })
})

test('text is transcoded by the charset of its type', async () => {
  const { pull } = await setup(answering(200, { 'content-type': 'text/plain; charset=latin1' }, Buffer.from([0xe9])))

  const { result, body } = await pull()

  expect(result).toMatchObject({ format: 'text', contentType: 'text/plain;charset=utf-8' })
  expect(String(body)).toBe('é')
})

test('content without a type is bytes', async () => {
  const { pull } = await setup((_, response) => response.end('{}'))

  expect((await pull()).result).toMatchObject({ format: 'base64', contentType: 'application/octet-stream' })
})

test('connections are kept and used again, after failures of the backend too', async () => {
  const answers = [answering(200, json, '1'), answering(304), answering(404, {}, 'page'), answering(500, {}, 'page')]
  let next = 0
  const { pull, connections } = await setup((request, response) => answers[next++](request, response))

  for (const _ of answers) await pull({ version: 'v', etag: '"1"' })

  expect(connections()).toBe(1)
})

test('an idle connection is closed from our side first', async () => {
  const { pull, server } = await setup(answering(200, json, '1'))
  server.keepAliveTimeout = 0 // never
  const closed = new Promise(resolve => server.once('connection', socket => socket.once('close', resolve)))

  await pull()

  await closed
})

test('a proxy of the environment is not used', async () => {
  const { pull } = await setup(answering(200, json, '1'))
  const before = process.env
  const proxy = 'http://127.0.0.1:1'
  process.env = { ...before, HTTP_PROXY: proxy, http_proxy: proxy, no_proxy: '', NO_PROXY: '' }
  try {
    expect((await pull()).result.kind).toBe('value')
  } finally {
    process.env = before
  }
})

test('of large bodies that come together one is read each turn, and others wait for none', async () => {
  const turns: (() => void)[] = []
  let body = JSON.stringify('x'.repeat(300_000))
  const { pull, requests } = await setup((_, response) => void response.writeHead(200, json).end(body), {
    turn: run => turns.push(run),
  })
  let read = 0
  const count = () => read++
  const pulls = Array.from({ length: 3 }, () => pull({ bytesMax: 400_000 }).then(count))
  await eventually(() => requests.length === 3 && turns.length === 1, 'a large body')
  body = '1'
  await pull()
  for (let turn = 1; turn <= 3; turn++) {
    expect(read).toBe(turn - 1)
    await eventually(() => turns.length === turn, 'the next turn')
    turns[turn - 1]()
    await eventually(() => read === turn, 'a body')
  }
  await Promise.all(pulls)
})

const zipped = { ...json, 'content-encoding': 'gzip' }
const large = gzipSync(JSON.stringify('x'.repeat(300_000)))
/** Little comes of it. */
const largeAsSent = Buffer.concat([gzipSync('1'), ...Array(15_000).fill(gzipSync(''))])

test.each([
  ['inflated', large],
  ['as they are sent', largeAsSent],
])('bodies that are large %s are read two at a time, and one whose turn does not come is not', async (_, body) => {
  const turns: (() => void)[] = []
  const overAt: number[] = []
  const timers: (() => void)[] = []
  let sent = large
  const { pull } = await setup((_, response) => void response.writeHead(200, zipped).end(sent), {
    turn: run => turns.push(run),
    now: () => 0,
    after(ms, run) {
      overAt.push(ms)
      timers.push(run)
      return () => {}
    },
  })
  const ends: string[] = []
  const pullOne = async () => {
    const { result } = await pull({ bytesMax: 400_000 })
    ends.push(result.kind === 'failed' ? result.code : result.kind)
  }
  const pulls = [pullOne(), pullOne(), pullOne()]
  await eventually(() => timers.length === 1, 'one waits')
  sent = body
  pulls.push(pullOne())
  await eventually(() => timers.length === 2, 'another waits')
  expect(overAt).toEqual([10_000, 10_000])
  for (const isOver of timers) isOver()
  await eventually(() => ends.length === 2, 'their time is over')
  expect(ends).toEqual(['fetcher_timeout', 'fetcher_timeout'])
  for (let turn = 1; turn <= 2; turn++) {
    await eventually(() => turns.length === turn, 'the next turn')
    turns[turn - 1]()
  }
  await Promise.all(pulls)
  expect(ends.slice(2)).toEqual(['value', 'value'])
})
