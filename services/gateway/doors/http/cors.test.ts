import { createCounts } from '../../counts.ts'
import { createValue } from '../../topics/values/value.ts'
import { closeServed, createTestApp, serve } from './test-support.ts'

afterEach(closeServed)

const PAGE = 'https://app.example'

const found = {
  value: createValue({
    key: 'tick:1',
    version: 'abc',
    contentType: 'application/json',
    format: 'json',
    body: Buffer.from('{"n":1}'),
  }),
  ageMs: 0,
  maxAgeMs: 5_000,
  store: true,
}

/** Gateway whose keys are found but for `tick:none`, and that breaks at `tick:bug`. @param origins as GATEWAY_ORIGINS has them */
function setUp(origins: string) {
  const caller = { hasToken: false, rights: {}, viewer: undefined, account: undefined, revoked: () => undefined }
  return serve(
    createTestApp({
      origins,
      peerOf: () => ({ address: '', isNamed: false }),
      counts: createCounts(),
      gate: {
        enter(asker, act, key) {
          if (key === 'tick:bug') throw new TypeError('a bug')
          if (key === 'tick:none') return { code: 'not_found' }
          return { asker, act, key, wireKey: key, rights: asker.rights, viewer: asker.viewer } as any
        },
        check: () => undefined,
        recheck: () => undefined,
        isViewers: () => false,
        takesQuery: () => false,
      },
      authenticate: async () => ({ leave() {}, ...caller }) as any,
      values: { fresh: () => found },
      coded: async () => undefined,
      singleFlight: undefined as any,
      histories: { read: async () => ({ code: 'journal_unavailable', retryAfterMs: 1_000 }) },
      streams: {} as any,
      waits: { namespaces: { get: () => undefined }, wallNow: () => 0 } as any,
    }),
  )
}

const answers = [
  ['/v1/values/tick:1', 200],
  ['/%76%31/values/tick:1', 200],
  ['/v1/values/tick:none', 404],
  ['/v1/values/tick:bug', 500],
  ['/v1/values/tick:%zz', 400],
  ['/v1/messages/room:1', 503],
  ['/v1/nothing', 404],
] as const

test.each(answers)('%s, answered %i, may be read by the pages of the origins named alone', async (path, status) => {
  const get = await setUp(`https://other.example, ${PAGE}`)
  const named = await get(path, { headers: { origin: PAGE } })
  expect(named.status).toBe(status)
  expect(named.headers).toMatchObject({
    'access-control-allow-origin': PAGE,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': 'Age, ETag, Keycast-Cursor, Keycast-Stream, Retry-After, WWW-Authenticate',
    vary: 'Origin',
  })
  for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, undefined]) {
    const answer = await get(path, { headers })
    expect([answer.status, answer.headers.vary]).toEqual([status, 'Origin'])
    expect(Object.keys(answer.headers).filter(name => name.startsWith('access-control'))).toEqual([])
  }
})

test.each(answers)('%s, answered %i, may be read by any page with *, without cookies', async (path, status) => {
  const get = await setUp('*')
  const { headers, ...answer } = await get(path)
  expect(answer.status).toBe(status)
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': expect.stringContaining('ETag'),
  })
  expect(headers).not.toHaveProperty('access-control-allow-credentials')
  expect(headers).not.toHaveProperty('vary')
})

test.each(['/v1/wait/tick:1', '/v1/wait/%zz', '/v1/%77ait/tick:1'])(
  '%s may be read by any page whatever is named, and never varies: a cache gives the answer to all',
  async path => {
    const get = await setUp(PAGE)
    const { status, headers } = await get(path, { headers: { origin: 'https://any.example' } })
    expect([status, headers['access-control-allow-origin'], headers.vary]).toEqual([400, '*', undefined])
  },
)

test('a page may ask with a token and a version: the browser is told so before, for two hours', async () => {
  const get = await setUp(PAGE)
  const preflight = (origin: string) =>
    get('/v1/values/tick:1', {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization,if-none-match',
      },
    })
  const { status, headers, body } = await preflight(PAGE)
  expect([status, body.length]).toEqual([204, 0])
  expect(headers).toMatchObject({
    'access-control-allow-origin': PAGE,
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': 'GET, HEAD, POST',
    'access-control-allow-headers': 'Authorization, If-None-Match, Keycast-Stream, Last-Event-ID',
    'access-control-max-age': '7200',
    vary: 'Origin',
  })
  expect((await preflight('https://evil.example')).headers).not.toHaveProperty('access-control-allow-origin')
})

test('the page and the library say nothing of the origins named', async () => {
  const get = await setUp(PAGE)
  const page = await get('/', { headers: { origin: PAGE } })
  expect(page.headers).not.toHaveProperty('access-control-allow-origin')
  const library = await get('/keycast.js', { headers: { origin: 'https://any.example' } })
  expect(library.headers).toMatchObject({ 'access-control-allow-origin': '*' })
  expect(library.headers).not.toHaveProperty('vary')
})
