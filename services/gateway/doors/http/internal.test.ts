import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { FetcherUnavailable } from '@keycast/backbone'
import { realWorld } from '@keycast/service'
import Fastify from 'fastify'
import { createTestGate } from '../../gate/test-gate.ts'
import { createNamespaces } from '../../test-support.ts'
import type { ApiToken } from './api-tokens.ts'
import { addInternal } from './internal.ts'
import { closeServed, serve } from './test-support.ts'

afterEach(closeServed)

const bearer = { authorization: 'Bearer secret' }
const json = { ...bearer, 'content-type': 'application/json' }
const described = {
  key: 'tick:1',
  owner: { node: '127.0.0.1:7001:7002', alive: true },
  watched: true,
  subscribers: 3,
  waiters: 1,
  stale: true,
  value: { version: 'abc', contentType: 'application/json', bytes: 7, ageMs: 4_200, maxAgeMs: 1_000, store: true },
  lastFailure: { code: 'backend_error' as const, message: 'it said 500', retryAfterMs: 800, agoMs: 300 },
}

async function setup({
  apiTokens = [{ name: 'ops', scopes: ['admin'], token: 'secret' }],
  refresh = async () => {},
  known = {},
  revoke = { outcome: 'added', sessions: 2 },
  shareRevocation,
  shareClosing,
  audit,
}: {
  apiTokens?: ApiToken[]
  refresh?: () => Promise<void>
  known?: Partial<typeof described>
  revoke?: ReturnType<Parameters<typeof addInternal>[1]['revoke']>
  shareRevocation?: Parameters<typeof addInternal>[1]['shareRevocation']
  shareClosing?: Parameters<typeof addInternal>[1]['shareClosing']
  audit?: (line: string) => void
} = {}) {
  const audited: unknown[] = []
  const revoked: unknown[] = []
  const asked: unknown[] = []
  const explained: unknown[] = []
  const no = { allowed: false, asked: [] }
  const refreshed: string[][] = []
  const refreshedUsers: unknown[] = []
  const app = Fastify()
  const namespaces = createNamespaces({
    tick: { refreshMs: 1_000, maxAgeMs: 1_000, ids: { min: 1, max: 2 } },
    own: { isPerUser: true },
    tasks: { query: { names: ['status'], headers: {} } },
  })
  addInternal(app, {
    apiTokens,
    audit: audit ?? (line => audited.push(JSON.parse(line))),
    askAgain: change => {
      asked.push(change)
      return 2
    },
    endAddress: address => (address === '192.0.2.7' ? 3 : 0),
    namespaces: namespaces.values,
    gate: createTestGate({ namespaces: namespaces.all }),
    explain: async (key, viewer) => {
      explained.push({ key, viewer })
      if ('keys' in viewer) return { problem: 'read 0 "room" has no namespace' }
      return { key, user: null, verbs: { read: no, publish: no, join: no } }
    },
    shareClosing,
    wallNow: () => 1_800_000_000_000,
    turn: realWorld.turn,
    revoke: revocation => {
      revoked.push(revocation)
      return revoke
    },
    shareRevocation,
    values: { describe: key => ({ ...described, ...known, key }) },
    ownValues: { countOf: () => 3 },
    publishes: undefined as any,
    rooms: undefined as any,
    backbone: {
      handOver: undefined as any,
      refresh: (keys, { users }) => {
        refreshed.push(keys)
        refreshedUsers.push(users)
        return refresh()
      },
    },
  })
  const call = await serve(app)
  const post = (body: unknown, headers = json) =>
    call('/v1/refresh', { method: 'POST', headers, body: JSON.stringify(body) })
  const postRevoke = (body: unknown, headers = json) =>
    call('/v1/revoke', { method: 'POST', headers, body: JSON.stringify(body) })
  return { app, call, post, postRevoke, refreshed, refreshedUsers, revoked, asked, explained, audited }
}

describe.each(['/v1/keys/tick:1', '/v1/refresh', '/v1/access', '/v1/revoke'])('the guard of %s', path => {
  const method = path.startsWith('/v1/keys') ? 'GET' : 'POST'

  test.each([
    ['no token', {}],
    ['a wrong one', { authorization: 'Bearer wrong' }],
    ['another scheme', { authorization: 'Basic secret' }],
    ['the token alone', { authorization: 'secret' }],
    ['an empty one', { authorization: 'Bearer ' }],
    ['one that is longer', { authorization: 'Bearer secret1' }],
  ])('%s is answered with 401', async (_, headers) => {
    const { call, refreshed } = await setup()
    const response = await call(path, { method, headers: headers as any })
    expect(response.status).toBe(401)
    expect(response.headers['www-authenticate']).toBe('Bearer')
    expect(response.json().code).toBe('unauthorized')
    expect(refreshed).toEqual([])
  })

  test('without a token set every call is refused, with the reason', async () => {
    const { call } = await setup({ apiTokens: [] })
    const response = await call(path, { method, headers: { authorization: 'Bearer undefined' } })
    expect(response.status).toBe(403)
    expect(response.json().message).toContain('API_TOKENS')
  })
})

test('the scheme may be in any case', async () => {
  const { call } = await setup()
  expect((await call('/v1/keys/tick:1', { headers: { authorization: 'bearer secret' } })).status).toBe(200)
})

test('keys whose content changed are passed on, each once, and 202 says the fetcher has them', async () => {
  const { post, refreshed } = await setup()
  const response = await post({ keys: ['tick:1', 'tick:2', 'tick:1'] })
  expect(response.status).toBe(202)
  expect(response.json()).toEqual({ keys: 2 })
  expect(refreshed).toEqual([['tick:1', 'tick:2']])
})

test('users may be named whose values alone are fetched', async () => {
  const { post, refreshed, refreshedUsers } = await setup()
  expect((await post({ keys: ['own:1'], users: ['ann', 'bob'] })).status).toBe(202)
  expect(refreshed).toEqual([['own:1']])
  expect(refreshedUsers).toEqual([['ann', 'bob']])
})

test('where no node can be reached, 503 says when to try again', async () => {
  const { post } = await setup({ refresh: () => Promise.reject(new FetcherUnavailable('no node is alive')) })
  const response = await post({ keys: ['tick:1'] })
  expect(response.status).toBe(503)
  expect(response.headers['retry-after']).toBe('1')
  expect(response.json()).toMatchObject({ code: 'fetcher_unavailable', message: 'no node is alive' })
})

test.each([
  ['no list', {}, /at least one key/],
  ['an empty list', { keys: [] }, /at least one key/],
  ['a list that is the body', ['tick:1'], /at least one key/],
  ['null', null, /at least one key/],
  ['a number among the keys', { keys: ['tick:1', 2] }, /keys\[1\]: a key is a string/],
  ['a key that breaks the grammar', { keys: ['tick:../x'] }, /keys\[0\]: .*segment/],
  ['a key of no namespace', { keys: ['room:1'] }, /keys\[0\]: no namespace "room" here/],
  ['users of a value for all', { keys: ['own:1', 'tick:1'], users: ['ann'] }, /tick:1 has one value for all/],
  ['no user', { keys: ['own:1'], users: [] }, /users must be a list/],
  ['a number among the users', { keys: ['own:1'], users: [7] }, /users must be a list/],
  ['too many users', { keys: ['own:1'], users: Array(1_001).fill('ann') }, /at most 1000 users/],
  ['too many keys', { keys: Array.from({ length: 5_001 }, (_, index) => `tick:${index}`) }, /at most 5000/],
])('%s is refused, and nothing is refreshed', async (_, body, problem) => {
  const { post, refreshed } = await setup()
  const response = await post(body)
  expect(response.status).toBe(400)
  expect(response.json().problems.join()).toMatch(problem)
  expect(refreshed).toEqual([])
})

test('the longest keys allowed fit into one call', async () => {
  const { post, refreshed } = await setup()
  const keys = Array.from({ length: 5_000 }, (_, index) => `tick:${String(index).padStart(255, '0')}`)
  expect((await post({ keys })).status).toBe(202)
  expect(refreshed[0]).toHaveLength(5_000)
})

test('a list that is wrong throughout is not repeated throughout', async () => {
  const { post } = await setup()
  const response = await post({ keys: Array.from({ length: 1_000 }, () => 'x') })
  expect(response.json().problems).toHaveLength(10)
})

test('a body that is no JSON is refused', async () => {
  const { call } = await setup()
  const response = await call('/v1/refresh', { method: 'POST', headers: json, body: '{' })
  expect(response.status).toBe(400)
})

test('a key is described so that its state can be understood', async () => {
  const { call } = await setup()
  const response = await call('/v1/keys/tick:a/b', { headers: bearer })
  expect(response.status).toBe(200)
  expect(response.json()).toEqual({
    key: 'tick:a/b',
    owner: { node: '127.0.0.1:7001:7002', alive: true },
    watched: true,
    sessionsWatching: 3,
    getsWaiting: 1,
    held: true,
    stale: true,
    version: 'abc',
    ageMs: 4_200,
    maxAgeMs: 1_000,
    store: true,
    bytes: 7,
    contentType: 'application/json',
    lastFailure: { code: 'backend_error', message: 'it said 500', retryAfterMs: 800, agoMs: 300 },
    namespace: { refreshMs: 1_000, maxAgeMs: 1_000, timeoutMs: 2_000, bytesMax: 4_194_304 },
  })
})

test('a query beside the key is refused where keys have queries: the state would be that of another key', async () => {
  const { call } = await setup()
  expect((await call('/v1/keys/tasks:7?status=open', { headers: bearer })).status).toBe(400)
  const { key } = (await call('/v1/keys/tasks:7%3Fstatus=open', { headers: bearer })).json()
  expect(key).toBe('tasks:7?status=open')
})

test('a key nothing is known of is described too', async () => {
  const known = { value: undefined, lastFailure: undefined, owner: { node: undefined, alive: false } } as any
  const { call } = await setup({ known })
  const answer = (await call('/v1/keys/tick:1', { headers: bearer })).json()
  expect(answer).toMatchObject({ held: false, owner: { node: null, alive: false } })
  expect(answer).not.toHaveProperty('version')
  expect(answer).not.toHaveProperty('lastFailure')
})

test('a key of no namespace is not found', async () => {
  const { call } = await setup()
  expect((await call('/v1/keys/room:1', { headers: bearer })).status).toBe(404)
})

test('a user is revoked from now on, unless a time is said, and the answer says how far that reaches', async () => {
  const { postRevoke, revoked } = await setup()
  const response = await postRevoke({ sub: 'ann' })
  expect(response.status).toBe(200)
  expect(response.json()).toEqual({
    sub: 'ann',
    before: 1_800_000_030, // a clock of an issuer may be so far ahead
    sessionsEnded: 2,
    reach: 'this gateway: call each one',
  })
  await postRevoke({ sub: 'ann', before: 1_700_000_000 })
  await postRevoke({ jti: 'j' })
  expect(revoked).toEqual([{ sub: 'ann', before: 1_800_000_030 }, { sub: 'ann', before: 1_700_000_000 }, { jti: 'j' }])
})

test('a revocation that says nothing of use is refused', async () => {
  const { postRevoke, revoked } = await setup()
  expect((await postRevoke({ user: 'ann' })).status).toBe(400)
  expect((await postRevoke({ sub: 'ann', before: 1_800_000_000_000 })).json().message).toContain('milliseconds')
  expect(revoked).toEqual([])
})

test('a revocation that finds the list full is refused aloud', async () => {
  const { postRevoke } = await setup({ revoke: { outcome: 'full', sessions: 0 } })
  const response = await postRevoke({ jti: 'j' })
  expect(response.status).toBe(507)
  expect(response.json()).toMatchObject({ code: 'revocations_full' })
})

describe('POST /v1/access with ask', () => {
  const ask = (body: object) => ({ method: 'POST', headers: json, body: JSON.stringify(body) })

  test.each([{ user: 'ann' }, { key: 'tick:1' }, { user: 'ann', key: 'tick:1' }])(
    'has backends asked again about %j, and says where',
    async change => {
      const { call, asked, audited } = await setup({ apiTokens: [{ name: 'b', scopes: ['revoke'], token: 'secret' }] })
      const response = await call('/v1/access', ask({ ask: change }))
      expect(response.status).toBe(200)
      expect(response.json()).toEqual({ ...change, decisions: 2, reach: 'this gateway: call each one' })
      expect(asked).toEqual([change])
      expect(audited).toMatchObject([{ caller: 'b', path: '/v1/access', body: { ask: change }, status: 200 }])
    },
  )

  test.each([{}, { user: '' }, { key: 7 }, { users: ['ann'] }, null])('refuses %j, and asks nobody', async change => {
    const { call, asked } = await setup()
    expect((await call('/v1/access', ask({ ask: change }))).status).toBe(400)
    expect(asked).toEqual([])
  })

  test.each([
    ['revoke', { user: 'ann', token: 'x.y.z' }],
    ['access', { ask: { user: 'ann' }, token: 'x.y.z' }],
  ])('no token that is sent to /v1/%s by mistake is recorded', async (path, body) => {
    const { call, audited } = await setup()
    await call(`/v1/${path}`, ask(body))
    expect(audited).toMatchObject([{ path: `/v1/${path}`, body: { token: '…' } }])
  })

  test('one nested 8,000 deep is refused and recorded, without what is in it', async () => {
    const { call, audited } = await setup()
    const body = `{"ask":{"user":${'['.repeat(8_000)}${']'.repeat(8_000)}}}`
    expect((await call('/v1/access', { method: 'POST', headers: json, body })).status).toBe(400)
    expect(audited).toMatchObject([{ path: '/v1/access', body: { ask: { user: '[…]' } }, status: 400 }])
  })

  test('without it the call is for admins alone, and leaves no line', async () => {
    const { call, audited } = await setup({ apiTokens: [{ name: 'b', scopes: ['revoke'], token: 'secret' }] })
    expect((await call('/v1/access', ask({ key: 'tick:1' }))).status).toBe(403)
    expect(audited).toEqual([])
  })
})

describe('POST /v1/access', () => {
  test.each([
    [{ key: 'tick:1', token: 'a.b.c' }, { token: 'a.b.c' }],
    [{ key: 'tick:1', sub: 'ann' }, { sub: 'ann' }],
    [{ key: 'tick:1' }, {}],
  ])('%j is explained', async (body, viewer) => {
    const { call, explained } = await setup()
    const response = await call('/v1/access', { method: 'POST', headers: json, body: JSON.stringify(body) })
    expect(response.status).toBe(200)
    expect(response.json()).toMatchObject({ key: 'tick:1', verbs: { read: { allowed: false } } })
    expect(explained).toEqual([{ key: 'tick:1', viewer }])
  })

  test.each([
    [{ token: 'a.b.c' }, 'the body must be'],
    [{ key: 'tick:1', token: 'a.b.c', sub: 'ann' }, 'the body must be'],
    [{ key: 'tick:1', sub: { length: { valueOf: 1, toString: 1 } } }, 'the body must be'],
    [{ key: 'tick:1', sub: 'ann', keys: { read: ['room'] } }, 'has no namespace'],
  ])('%j is answered with 400', async (body, why) => {
    const { call } = await setup()
    const response = await call('/v1/access', { method: 'POST', headers: json, body: JSON.stringify(body) })
    expect(response.status).toBe(400)
    expect(response.json().message).toContain(why)
  })
})

describe('POST /v1/revoke where a journal keeps the list', () => {
  test('the answer says that every gateway is told', async () => {
    const shared: unknown[] = []
    const { postRevoke } = await setup({ shareRevocation: async revocation => void shared.push(revocation) })
    const response = await postRevoke({ jti: 'j' })
    expect(response.status).toBe(200)
    expect(response.json()).toEqual({ jti: 'j', sessionsEnded: 2, reach: 'every gateway' })
    expect(shared).toEqual([{ jti: 'j' }])
  })

  test('where the journal is away, the caller learns what holds so far and that it has to call again', async () => {
    const { postRevoke, revoked } = await setup({
      shareRevocation: async () => ({ code: 'journal_unavailable', message: 'it is away' }),
    })
    const response = await postRevoke({ jti: 'j' })
    expect(response.status).toBe(503)
    expect(response.json()).toMatchObject({ code: 'journal_unavailable', retryAfterMs: 1_000 })
    expect(response.json().message).toContain('at this gateway alone, which ended 2 sessions: it is away. Call again')
    expect(revoked).toEqual([{ jti: 'j' }])
  })

  test('a revocation that has no place is not told to others', async () => {
    const shared: unknown[] = []
    const { postRevoke } = await setup({
      revoke: { outcome: 'full', sessions: 0 },
      shareRevocation: async revocation => void shared.push(revocation),
    })
    expect((await postRevoke({ jti: 'j' })).status).toBe(507)
    expect(shared).toEqual([])
  })
})

describe('scopes', () => {
  const all: ApiToken[] = [
    { name: 'ops', scopes: ['admin'], token: 'of-admin' },
    { name: 'backend', scopes: ['refresh', 'publish'], token: 'of-refresh' },
    { name: 'desk', scopes: ['revoke'], token: 'of-revoke' },
  ]
  const calls: [call: string, path: string, method: string, tokens: string[]][] = [
    ['refresh', '/v1/refresh', 'POST', ['of-admin', 'of-refresh']],
    ['publish', '/v1/publish', 'POST', ['of-admin', 'of-refresh']],
    ['revoke', '/v1/revoke', 'POST', ['of-admin', 'of-revoke']],
    ['close', '/v1/close', 'POST', ['of-admin', 'of-revoke']],
    ['access', '/v1/access', 'POST', ['of-admin']],
    ['keys', '/v1/keys/tick:1', 'GET', ['of-admin']],
    ['rooms', '/v1/rooms/nothing', 'GET', ['of-admin']],
    ['deletion of a room', '/v1/rooms/nothing', 'DELETE', ['of-admin']],
    ["deletion of a user's messages", '/v1/users/%00/messages', 'DELETE', ['of-admin']],
  ]

  test.each(calls)('%s is for those whose scope it is', async (_, path, method, admitted) => {
    const { call } = await setup({ apiTokens: all })
    for (const { token } of all) {
      const response = await call(path, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(method === 'POST' && { 'content-type': 'application/json' }) },
        body: method === 'POST' ? '{}' : undefined,
      })
      if (admitted.includes(token)) expect([path, token, response.status]).not.toContain(403)
      else expect([response.status, response.json().code]).toEqual([403, 'scope_missing'])
    }
  })

  test('what was done to people is recorded with who did it, and what was tried; what a backend does is not', async () => {
    const { call, postRevoke, post, audited } = await setup({ apiTokens: all })
    const as = (token: string) => ({ authorization: `Bearer ${token}`, 'content-type': 'application/json' })
    await postRevoke({ sub: 'bob', before: 1_800_000_000 }, as('of-revoke'))
    await postRevoke({ sub: 'bob' }, as('of-refresh'))
    await postRevoke({ sub: 'bob' }, as('of-nobody'))
    await post({ keys: ['tick:1'] }, as('of-refresh'))
    await call('/v1/keys/tick:1', { headers: as('of-admin') })
    await call('/v1/close', { method: 'POST', headers: as('of-admin'), body: '{"address":"192.0.2.7"}' })
    const at = new Date(1_800_000_000_000).toISOString()
    expect(audited).toEqual([
      {
        at,
        caller: 'desk',
        method: 'POST',
        path: '/v1/revoke',
        body: { sub: 'bob', before: 1_800_000_000 },
        status: 200,
      },
      { at, caller: 'backend', method: 'POST', path: '/v1/revoke', status: 403 },
      { at, caller: 'ops', method: 'POST', path: '/v1/close', body: { address: '192.0.2.7' }, status: 200 },
    ])
  })
})

test('a caller that does not wait for its answer is recorded, too', async () => {
  const [asked, recorded] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()]
  const told = Promise.withResolvers<undefined>()
  const shareRevocation = () => {
    asked.resolve()
    return told.promise
  }
  const { app } = await setup({ shareRevocation, audit: line => recorded.resolve(JSON.parse(line)) })
  const { port } = app.server.address() as AddressInfo
  const [caller, [atServer]] = [connect(port, '127.0.0.1'), await once(app.server, 'connection')]
  const body = '{"sub":"ann"}'
  const head = ['POST /v1/revoke HTTP/1.1', 'Host: x', 'Authorization: Bearer secret', 'Content-Type: application/json']
  caller.write([...head, `Content-Length: ${body.length}`, '', body].join('\r\n'))
  await asked.promise
  caller.destroy()
  await once(atServer, 'close')
  told.resolve(undefined)
  expect(await recorded.promise).toMatchObject({ caller: 'ops', path: '/v1/revoke', body: { sub: 'ann' }, status: 200 })
})

test('the other gateways close those of the address as well, or the answer says that they may not have', async () => {
  const told: string[] = []
  const problem: { now?: { code: 'journal_unavailable' } } = {}
  const shareClosing = async (address: string) => {
    told.push(address)
    return problem.now
  }
  const { call } = await setup({ shareClosing })
  const close = () => call('/v1/close', { method: 'POST', headers: json, body: '{"address":"192.0.2.7"}' })
  expect((await close()).json()).toEqual({ address: '192.0.2.7', sessionsEnded: 3, reach: 'every gateway' })
  problem.now = { code: 'journal_unavailable' }
  const alone = await close()
  expect([alone.status, alone.json().code]).toEqual([503, 'journal_unavailable'])
  expect(alone.json().message).toContain('closed at this gateway alone, which ended 3 sessions')
  expect(told).toEqual(['192.0.2.7', '192.0.2.7'])
})

test('the sessions of an address are closed, and what is no address is refused', async () => {
  const { call } = await setup()
  const close = (body: unknown) => call('/v1/close', { method: 'POST', headers: json, body: JSON.stringify(body) })
  expect((await close({ address: '192.0.2.7' })).json()).toMatchObject({ address: '192.0.2.7', sessionsEnded: 3 })
  for (const body of [{}, { address: 'ann' }, { address: 7 }, []]) {
    const response = await close(body)
    expect([response.status, response.json().code]).toEqual([400, 'bad_request'])
  }
})
