import { realWorld } from '@keycast/service'
import Fastify from 'fastify'
import { createNamespaces, createTestGateway } from '../test-support.ts'
import type { Scope } from './http/api-tokens.ts'
import { addInternal } from './http/internal.ts'
import { closeServed, serve } from './http/test-support.ts'

afterEach(closeServed)

const authorization = 'Bearer a-secret'

async function setUp({ scopes = ['put'] }: { scopes?: Scope[] } = {}) {
  const namespaces = {
    tick: { bytesMax: 100, ids: { min: 1, max: 2 } },
    own: { isPerUser: true },
    tasks: { query: { names: ['status'], headers: {} } },
  }
  const { gateway, backbone } = createTestGateway({ namespaces })
  const app = Fastify()
  addInternal(app, {
    ...gateway,
    namespaces: createNamespaces(namespaces).values,
    apiTokens: [{ name: 'backend', scopes, token: 'a-secret' }],
    audit() {},
    wallNow: Date.now,
    turn: realWorld.turn,
  })
  const call = await serve(app)
  const put = (key: string, body: string, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
    call(`/v1/values/${key}`, { method: 'PUT', headers: { authorization, ...headers }, body })
  const remove = (key: string, headers: Record<string, string> = {}) =>
    call(`/v1/values/${key}`, { method: 'DELETE', headers: { authorization, ...headers } })
  const post = (body: string, headers: Record<string, string> = {}) =>
    call('/v1/values', { method: 'POST', headers: { authorization, ...headers }, body })
  return { backbone, put, remove, post }
}

test('a value goes to its owner as the backend wrote it, with its type', async () => {
  const { backbone, put } = await setUp()
  const response = await put('tick:1', '{"n": 1.0}')
  const [{ content, ...rest }] = backbone.handedOver
  expect(rest).toEqual({ key: 'tick:1', rank: undefined })
  expect(content).toMatchObject({ contentType: 'application/json', format: 'json', version: expect.any(String) })
  expect(String(content?.body)).toBe('{"n": 1.0}')
  expect([response.status, response.json()]).toEqual([200, { key: 'tick:1', taken: true, version: content?.version }])
})

test.each([
  ['text/plain', 'text', 'text/plain;charset=utf-8'],
  ['image/png', 'base64', 'image/png'],
  ['application/json; charset=x', 'json', 'application/json'],
])('of %s it is shown as %s', async (type, format, contentType) => {
  const { backbone, put } = await setUp()
  expect((await put('tick:1/2', '"x"', { 'content-type': type })).status).toBe(200)
  expect(backbone.handedOver[0]).toMatchObject({ key: 'tick:1/2', content: { format, contentType } })
})

test('without a type it is just bytes', async () => {
  const { backbone, put } = await setUp()
  await put('tick:1', 'x', {})
  expect(backbone.handedOver[0].content).toMatchObject({ format: 'base64', contentType: 'application/octet-stream' })
})

test('a value is removed', async () => {
  const { backbone, remove } = await setUp()
  const response = await remove('tick:1', { 'keycast-order': '7' })
  expect([response.status, response.json()]).toEqual([200, { key: 'tick:1', taken: true }])
  expect(backbone.handedOver).toEqual([{ key: 'tick:1', content: undefined, rank: 7 }])
})

test('a query beside the key is refused where keys have queries: the value would be that of another key', async () => {
  const { backbone, put, remove } = await setUp()
  for (const response of [await put('tasks:7?status=open', '1'), await remove('tasks:7?status=open')]) {
    expect([response.status, response.json().code]).toEqual([400, 'bad_request'])
  }
  expect(backbone.handedOver).toEqual([])
  expect((await put('tasks:7%3Fstatus=open', '1')).status).toBe(200)
  expect(backbone.handedOver).toMatchObject([{ key: 'tasks:7?status=open' }])
})

test('a value that is older than another is ignored, and the answer says so', async () => {
  const { backbone, put } = await setUp()
  backbone.taken = { outcome: 'older', rank: 9 }
  const response = await put('tick:1', '1', { 'content-type': 'application/json', 'keycast-order': '8' })
  expect([response.status, response.json()]).toEqual([200, { key: 'tick:1', taken: false, order: 9 }])
  expect(backbone.handedOver[0].rank).toBe(8)
})

test('where the owner does not take it the backend is told to come again', async () => {
  const { backbone, put } = await setUp()
  backbone.taken = { code: 'fetcher_unavailable', message: 'no node', retryAfterMs: 1_000 }
  const response = await put('tick:1', '1')
  expect([response.status, response.headers['retry-after'], response.json().code]).toEqual([
    503,
    '1',
    'fetcher_unavailable',
  ])
})

const json = { 'content-type': 'application/json' }

test.each([
  ['no JSON', 'tick:1', '{', json, 400, 'bad_request'],
  ['no content', 'tick:1', '', json, 400, 'bad_request'],
  ['too much', 'tick:1', `"${'x'.repeat(100)}"`, json, 413, 'too_large'],
  ['compressed content', 'tick:1', '1', { ...json, 'content-encoding': 'gzip' }, 400, 'bad_request'],
  ['no number', 'tick:1', '1', { ...json, 'keycast-order': '1.5' }, 400, 'bad_request'],
  ['too high a number', 'tick:1', '1', { ...json, 'keycast-order': '9007199254740992' }, 400, 'bad_request'],
  ['no key', 'tick', '1', json, 400, 'bad_key'],
  ['an unknown namespace', 'tock:1', '1', json, 404, 'unknown_namespace'],
  ["users' own values", 'own:me', '1', json, 400, 'bad_request'],
])('%s is refused, and goes nowhere', async (_, key, body, headers, status, code) => {
  const { backbone, put } = await setUp()
  const response = await put(key, body, headers)
  expect([response.status, response.json().code]).toEqual([status, code])
  expect(backbone.handedOver).toEqual([])
})

test('a token without that scope hands over nothing', async () => {
  const { backbone, put, remove, post } = await setUp({ scopes: ['refresh'] })
  const calls = [put('tick:1', '1'), remove('tick:1'), post('{"key":"tick:1","value":1}')]
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([403, 403, 403])
  expect(backbone.handedOver).toEqual([])
})

describe('a batch', () => {
  const lines = '{"key":"tick:1","value":1,"order":3}\n\n{"key":"tick:2","delete":true}\n'

  test('is handed over line by line, in its order', async () => {
    const { backbone, post } = await setUp()
    const response = await post(lines)
    expect([response.status, response.json()]).toEqual([200, { taken: 2, older: [] }])
    expect(backbone.handedOver).toMatchObject([
      { key: 'tick:1', content: { format: 'json' }, rank: 3 },
      { key: 'tick:2', content: undefined },
    ])
  })

  test('says which lines were older than what there is', async () => {
    const { backbone, post } = await setUp()
    backbone.taken = { outcome: 'older', rank: 9 }
    expect((await post(lines)).json()).toEqual({
      taken: 0,
      older: [
        { line: 1, order: 9 },
        { line: 3, order: 9 },
      ],
    })
  })

  test('says which lines were not taken', async () => {
    const { backbone, post } = await setUp()
    backbone.taken = { code: 'fetcher_unavailable', message: 'no node', retryAfterMs: 1_000 }
    const response = await post(lines)
    expect([response.status, response.headers['retry-after']]).toEqual([503, '1'])
    expect(response.json()).toMatchObject({ code: 'fetcher_unavailable', lines: [1, 3] })
  })

  test('with anything wrong in it is refused as a whole, with what is wrong in which line', async () => {
    const { backbone, post } = await setUp()
    const long = 'x'.repeat(100)
    const response = await post(`${lines}{"key":"tock:1","value":1}\n{\n{"key":"tick:1","value":"${long}"}`)
    expect(response.status).toBe(400)
    expect(response.json()).toMatchObject({ code: 'bad_request', message: 'nothing was changed' })
    const { problems } = response.json()
    expect(problems).toHaveLength(3)
    expect(problems[0]).toMatch(/^line 4: /)
    expect(problems[1]).toBe('line 5: it is no JSON object')
    expect(problems[2]).toMatch(/^line 6: .*100 bytes/)
    expect(backbone.handedOver).toEqual([])
  })

  test.each([
    ['nothing', '', {}, 400],
    ['too many lines', '{"key":"tick:1","value":1}\n'.repeat(10_001), {}, 400],
    ['compressed ones', lines, { 'content-encoding': 'gzip' }, 400],
  ])('of %s is refused', async (_, body, headers, status) => {
    const { backbone, post } = await setUp()
    const response = await post(body, headers as Record<string, string>)
    expect([response.status, response.json().code]).toEqual([status, 'bad_request'])
    expect(backbone.handedOver).toEqual([])
  })
})
