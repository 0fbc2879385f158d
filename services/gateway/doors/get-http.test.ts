import type { Problem } from '@keycast/protocol'
import { type Containment, createContainment, noContainment } from '@keycast/service'
import { createCounts } from '../counts.ts'
import type { Codings } from '../encodings/codings.ts'
import type { Found, Result } from '../topics/values/cache.ts'
import { createValue } from '../topics/values/value.ts'
import { closeServed, createTestApp, serve } from './http/test-support.ts'

afterEach(closeServed)

const body = Buffer.from('{"n":1}')
const value = createValue({ key: 'tick:1', version: 'abc', contentType: 'application/json', format: 'json', body })
const found: Found = { value, ageMs: 1_900, maxAgeMs: 5_900, store: true }

const failed = (problem: Partial<Problem>): Result => ({
  problem: {
    code: 'backend_error',
    message: 'it said 500',
    ...problem,
  },
})

/** @param given the answers of memory, the fetcher, the grammar and the token */
async function setup({
  fresh,
  later,
  refused,
  coded = async () => undefined,
  caller = { hasToken: false, rights: {} },
  containment = noContainment,
}: {
  fresh?: Result
  later?: Result
  refused?: Result
  coded?: Codings
  caller?: any
  containment?: Containment
} = {}) {
  const asked: string[] = []
  const counts = createCounts()
  const app = createTestApp({
    peerOf: () => ({ address: '', isNamed: false }),
    containment,
    counts,
    gate: {
      enter(asker, act, key) {
        expect(act).toBe('get')
        asked.push(`enter ${key}`)
        const { rights, viewer } = asker
        const wireKey = key.startsWith('own:') ? `${key} ${viewer?.name}` : key
        return (
          refused?.problem ?? {
            asker,
            act,
            key,
            wireKey,
            rights,
            grants: rights?.grants,
            viewer,
            namespace: undefined,
            authorize: undefined,
          }
        )
      },
      check: () => undefined,
      recheck: ({ asker }) => asker.revoked?.(),
      isViewers: key => key.startsWith('own:'),
      takesQuery: key => key.startsWith('tasks:'),
    },
    histories: undefined as any,
    waits: { wallNow: () => 0 } as any,
    coded,
    streams: {} as any,
    authenticate: async () => ({ revoked: () => undefined, leave() {}, ...caller }),
    values: {
      fresh: key => {
        asked.push(`fresh ${key}`)
        return fresh
      },
    },
    singleFlight: {
      want: async key => {
        asked.push(`want ${key}`)
        if (!later) throw new Error('nobody should have been asked')
        return later
      },
    },
  })
  return { asked, counts, server: app.server, get: await serve(app) }
}

test('a request whose token is revoked while it waits is sent nothing of the value', async () => {
  const revoked = () => ({ code: 'token_refused', message: 'the token is not accepted' })
  const { get } = await setup({ later: found, caller: { hasToken: true, rights: {}, revoked } })
  const response = await get('/v1/values/tick:1')
  expect([response.status, response.json().code]).toEqual([401, 'token_refused'])
  expect(response.headers).not.toHaveProperty('etag')
})

test('a request has ten seconds to come in, its body as well as its header', async () => {
  const { server } = await setup()
  // Node takes the longer of the two for a request with its body.
  expect([server.requestTimeout, server.headersTimeout]).toEqual([10_000, 10_000])
})

test('a value held and fresh is answered from memory, as the backend gave it', async () => {
  const { get, asked } = await setup({ fresh: found })
  const response = await get('/v1/values/tick:1')
  expect(response.status).toBe(200)
  expect(response.body).toEqual(body)
  expect(response.headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': '7',
    etag: '"abc"',
    age: '2',
    'cache-control': 'max-age=5',
  })
  expect(asked).toEqual(['enter tick:1', 'fresh tick:1'])
})

test('a value not held is asked of the fetcher', async () => {
  const { get, asked } = await setup({ later: found })
  expect((await get('/v1/values/tick:1')).body).toEqual(body)
  expect(asked.at(-1)).toBe('want tick:1')
})

test.each(['text/plain; charset=utf-8', 'text/html', 'application/octet-stream', 'image/png'])(
  'content of type %s keeps its type and may run nothing',
  async contentType => {
    const { get } = await setup({ fresh: { ...found, value: { ...value, contentType } } })
    const { headers } = await get('/v1/values/text:1')
    expect(headers['content-type']).toBe(contentType)
    expect(headers['content-security-policy']).toContain('sandbox')
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['cross-origin-resource-policy']).toBe('same-origin')
  },
)

describe('a value that compresses', () => {
  const large = createValue({
    key: 'tick:1',
    version: 'abc',
    contentType: 'application/json',
    format: 'json',
    body: Buffer.from(JSON.stringify('good morning '.repeat(100))),
  })
  const encoding = (accepted: string) => ({ headers: { 'accept-encoding': accepted } })

  test.each(['br', 'gzip'] as const)('is sent in %s where the client prefers it', async coding => {
    const { get } = await setup({ fresh: { ...found, value: large }, coded: async (_, coding) => Buffer.from(coding) })
    const response = await get('/v1/values/tick:1', encoding(`${coding}, *;q=0.1`))
    expect(String(response.body)).toBe(coding)
    expect(response.headers).toMatchObject({
      'content-encoding': coding,
      'content-length': String(coding.length),
      'content-type': 'application/json',
      etag: 'W/"abc"',
      vary: 'Accept-Encoding',
    })
    const head = await get('/v1/values/tick:1', { ...encoding(coding), method: 'HEAD' })
    expect(head.headers).toMatchObject({ 'content-encoding': coding, 'content-length': String(coding.length) })
  })

  test('is sent as it is where nothing is gained, or the client asks for that, and varies all the same', async () => {
    const { get } = await setup({ fresh: { ...found, value: large } })
    for (const accepted of ['gzip', 'identity']) {
      const { body, headers } = await get('/v1/values/tick:1', encoding(accepted))
      expect(body.equals(large.body)).toBe(true)
      expect(headers).toMatchObject({ etag: '"abc"', vary: 'Accept-Encoding' })
      expect(headers).not.toHaveProperty('content-encoding')
    }
  })

  test('is answered 304 in any coding, with the tag that it would be sent with, and is not compressed for it', async () => {
    const coded = jest.fn<ReturnType<Codings>, Parameters<Codings>>()
    const { get } = await setup({ fresh: { ...found, value: large }, coded })
    for (const [accepted, etag] of [
      ['gzip', 'W/"abc"'],
      ['identity', '"abc"'],
    ]) {
      const headers = { 'accept-encoding': accepted, 'if-none-match': 'W/"abc"' }
      const response = await get('/v1/values/tick:1', { headers })
      expect(response.status).toBe(304)
      expect(response.headers).toMatchObject({ etag, vary: 'Accept-Encoding' })
    }
    expect(coded).not.toHaveBeenCalled()
  })

  test('is not sent to one whose token is revoked while it is compressed', async () => {
    let isRevoked = false
    const revoked = () => (isRevoked ? { code: 'token_refused' } : undefined)
    const { get } = await setup({
      fresh: { ...found, value: large },
      caller: { hasToken: true, rights: {}, revoked },
      coded: async () => {
        isRevoked = true
        return Buffer.from('secret')
      },
    })
    expect((await get('/v1/values/tick:1', encoding('gzip'))).status).toBe(401)
  })

  test.each([
    ['small', { body: large.body.subarray(0, 1_023) }, 'tick:1'],
    ['no text', { format: 'base64' as const }, 'tick:1'],
    ["a user's own", {}, 'own:1'],
  ])('is never compressed where it is %s', async (_, given, key) => {
    const coded = jest.fn<ReturnType<Codings>, Parameters<Codings>>()
    const { get } = await setup({ fresh: { ...found, value: { ...large, ...given } }, coded })
    const { headers } = await get(`/v1/values/${key}`, encoding('gzip'))
    expect(headers).not.toHaveProperty('content-encoding')
    expect(headers.vary ?? '').not.toContain('Accept-Encoding')
    expect(coded).not.toHaveBeenCalled()
  })
})

test('a body of 130 KB arrives whole', async () => {
  const large = Buffer.alloc(130_000, 'x')
  const { get } = await setup({ fresh: { ...found, value: { ...value, body: large } } })
  expect((await get('/v1/values/text:1')).body.equals(large)).toBe(true)
})

test('a value that must not be stored says so', async () => {
  const { get } = await setup({ fresh: { ...found, store: false } })
  expect((await get('/v1/values/tick:1')).headers['cache-control']).toBe('no-store')
})

test.each(['"abc"', 'W/"abc"', '"x", "abc"', '*'])('If-None-Match: %s is answered 304, without a body', async tag => {
  const { get } = await setup({ fresh: found })
  const response = await get('/v1/values/tick:1', { headers: { 'if-none-match': tag } })
  expect(response.status).toBe(304)
  expect(response.body).toHaveLength(0)
  expect(response.headers).toMatchObject({ etag: '"abc"', 'cache-control': 'max-age=5', age: '2' })
})

test('another version than the one named is sent whole', async () => {
  const { get } = await setup({ fresh: found })
  expect((await get('/v1/values/tick:1', { headers: { 'if-none-match': '"old"' } })).status).toBe(200)
})

test('HEAD tells all but the body', async () => {
  const { get } = await setup({ fresh: found })
  const response = await get('/v1/values/tick:1', { method: 'HEAD' })
  expect(response.headers).toMatchObject({ 'content-length': '7', etag: '"abc"', 'content-type': 'application/json' })
  expect(response.body).toHaveLength(0)
})

test.each([
  ['/v1/values/file:a/b/c.txt', 'file:a/b/c.txt'],
  ['/v1/values/file%3Aa%2Fb', 'file:a/b'],
  ['/v1/values/file:a?at=1', 'file:a'],
  [`/v1/values/file:${'x'.repeat(255)}`, `file:${'x'.repeat(255)}`],
  ['/v1/values/file:%252e%252e', 'file:%2e%2e'],
  ['/v1/values/file:a/../b', 'file:a/../b'],
  ['/v1/values/', ''],
])('%s names the key %s: decoded once', async (path, key) => {
  const { get, asked } = await setup({ fresh: found })
  await get(path)
  expect(asked[0]).toBe(`enter ${key}`)
})

test('a query beside the key is refused where keys have queries: it is meant as a part of the key', async () => {
  const { get, asked } = await setup({ fresh: found })
  const refused = await get('/v1/values/tasks:7?status=open')
  expect([refused.status, refused.json().code]).toEqual([400, 'bad_request'])
  expect(refused.json().message).toContain('%3F')
  expect(asked).toEqual(['enter tasks:7'])
  expect((await get('/v1/values/tasks:7%3Fstatus=open')).status).toBe(200)
  expect(asked.at(-1)).toBe('fresh tasks:7?status=open')
  // Programs that poll send such a thing past caches.
  expect((await get('/v1/values/tick:1?_=1795333665478')).status).toBe(200)
})

test('a key that breaks the grammar is refused, and the fetcher is not asked', async () => {
  const { get, asked } = await setup({ refused: failed({ code: 'bad_key', message: 'the id is empty' }) })
  const response = await get('/v1/values/tick:')
  expect(response.status).toBe(400)
  expect(response.json()).toEqual({ code: 'bad_key', message: 'the id is empty' })
  expect(asked).toEqual(['enter tick:'])
})

test('percent-encoding that is broken is a bad key too', async () => {
  const { get } = await setup()
  const response = await get('/v1/values/tick:%zz')
  expect(response.status).toBe(400)
  expect(response.json().code).toBe('bad_key')
})

test.each([
  ['unknown_namespace', 404],
  ['not_found', 404],
  ['backend_throttled', 429],
  ['backend_error', 502],
  ['backend_unavailable', 503],
  ['fetcher_unavailable', 503],
  ['backend_timeout', 504],
  ['fetcher_timeout', 504],
])('%s is answered with %i and when to come back', async (code, status) => {
  const problem = failed({ code: code as any, retryAfterMs: 1_200 })
  const { get } = await setup({ later: problem })
  const response = await get('/v1/values/tick:1')
  expect(response.status).toBe(status)
  expect(response.headers).toMatchObject({ 'retry-after': '2', 'cache-control': 'no-store' })
  expect(response.json()).toEqual({ code, message: 'it said 500', retryAfterMs: 1_200 })
})

test('a problem that does not heal by itself names no time', async () => {
  const { get } = await setup({ later: failed({ code: 'backend_refused' }) })
  const response = await get('/v1/values/tick:1')
  expect(response.headers['retry-after']).toBeUndefined()
  expect(response.json()).toEqual({ code: 'backend_refused', message: 'it said 500' })
})

test('an unknown path is answered with the known ones', async () => {
  const { get } = await setup()
  const response = await get('/v2/values/tick:1')
  expect(response.status).toBe(404)
  expect(response.json()).toMatchObject({ code: 'unknown_path' })
  expect(response.json().message).toContain('/v1/values/{key}')
})

test('requests are counted by status, and those for keys that may exist by whether memory could answer', async () => {
  const held = await setup({ fresh: found })
  await held.get('/v1/values/tick:1')
  await held.get('/v1/values/tick:1', { headers: { 'if-none-match': '"abc"' } })
  expect(held.counts).toMatchObject({ httpHits: 2, httpMisses: 0, httpValues: { 200: 1, 304: 1, 502: 0 } })

  const failing = await setup({ later: failed({}) })
  await failing.get('/v1/values/tick:1')
  expect(failing.counts).toMatchObject({ httpHits: 0, httpMisses: 1, httpValues: { 200: 0, 502: 1 } })

  const refused = await setup({ refused: failed({ code: 'bad_key' }) })
  await refused.get('/v1/values/tick:')
  expect(refused.counts).toMatchObject({ httpHits: 0, httpMisses: 0, httpValues: { 400: 1 } })
})

test('what came for a token is kept by nobody but its browser, and for no other token', async () => {
  const { get } = await setup({ fresh: found, caller: { hasToken: true, rights: {} } })
  const { headers } = await get('/v1/values/tick:1')
  expect(headers).toMatchObject({ 'cache-control': 'private, max-age=5', vary: 'Authorization, Cookie' })
  const { get: getAnonymously } = await setup({ fresh: found })
  expect((await getAnonymously('/v1/values/tick:1')).headers.vary).toBeUndefined()
})

test("a user's own value is kept by nobody, nor is it that there is none; it is asked for by that user's name", async () => {
  const caller = { hasToken: true, rights: {}, viewer: { name: 'ann' } }
  const { get, asked } = await setup({ fresh: found, caller })
  const { headers } = await get('/v1/values/own:inbox')
  expect(headers).toMatchObject({ 'cache-control': 'private, no-store', vary: 'Authorization, Cookie' })
  expect(asked).toContain('fresh own:inbox ann')
  const etag = String(headers.etag)
  const again = await get('/v1/values/own:inbox', { headers: { 'if-none-match': etag } })
  expect(again.status).toBe(304)
  expect(again.headers['cache-control']).toBe('private, no-store')
  const none = await setup({ later: failed({ code: 'not_found' }), caller })
  expect((await none.get('/v1/values/own:inbox')).headers).toMatchObject({
    'cache-control': 'no-store',
    vary: 'Authorization, Cookie',
  })
  const anybody = { hasToken: false, rights: {}, viewer: { name: 'anonymous' } }
  const open = await setup({ fresh: found, caller: anybody })
  expect((await open.get('/v1/values/own:inbox')).headers).toMatchObject({
    'cache-control': 'private, no-store',
    vary: 'Authorization, Cookie',
  })
})

test.each([
  ['refused', { code: 'token_refused', message: 'm' }, 401, 401, 'Bearer error="invalid_token"'],
  ['not to be checked now', { code: 'token_refused', message: 'm', retryAfterMs: 1_500 }, 503, 503, undefined],
  ['good, its user too busy', { code: 'rate_limited', message: 'm', retryAfterMs: 1_500 }, undefined, 429, undefined],
] as [string, any, number | undefined, number, string | undefined][])(
  'a token that is %s is answered before the key is looked at',
  async (_, problem, given, status, challenge) => {
    const { get, asked } = await setup({ fresh: found, caller: { hasToken: true, problem, status: given } })
    const response = await get('/v1/values/tick:1')
    expect(response.status).toBe(status)
    expect(response.headers['www-authenticate']).toBe(challenge)
    expect(response.headers['retry-after']).toBe(problem.retryAfterMs === undefined ? undefined : '2')
    expect(response.headers.vary).toBe('Authorization, Cookie')
    expect(asked).toEqual([])
  },
)

test.each([
  ['unauthenticated', 401, 'Bearer'],
  ['forbidden', 403, undefined],
])('a key that is %s is answered %i', async (code, status, challenge) => {
  const { get } = await setup({ fresh: found, refused: failed({ code: code as any }) })
  const response = await get('/v1/values/tick:1')
  expect(response.status).toBe(status)
  expect(response.headers['www-authenticate']).toBe(challenge)
})

test('an error while a request is handled is answered with 500 and counted, and the next request is served', async () => {
  const containment = createContainment({ now: () => 0, ends: ['request'], log: { error() {} } as any })
  let isBroken = true
  const caller = {
    hasToken: false,
    rights: {},
    get viewer() {
      if (isBroken) throw new TypeError('a bug')
      return undefined
    },
  }
  const { get } = await setup({ fresh: found, caller, containment })
  const response = await get('/v1/values/tick:1')
  expect([response.status, response.json().code]).toEqual([500, 'internal_error'])
  expect(containment.counts).toEqual({ request: 1, process: 0 })
  isBroken = false
  expect((await get('/v1/values/tick:1')).status).toBe(200)
})
