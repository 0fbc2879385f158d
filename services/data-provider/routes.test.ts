import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { noContainment } from '@keycast/service'
import { createInternalServer } from '@keycast/service/internal-server'
import { createMetrics } from '@keycast/service/metrics'
import { createDocuments } from './documents.ts'
import { createFaults } from './faults.ts'
import { addRoutes } from './routes.ts'
import { createStats } from './stats.ts'

const NOW_MS = Date.UTC(2026, 5, 1, 12)

const toClose: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of toClose.splice(0)) await close()
})

interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: unknown
  signal?: AbortSignal
}

/** A backend on a free port, asked over a socket: tests see the same as a fetcher. */
const setup = async () => {
  const metrics = createMetrics({ service: 'provider' })
  const server = createInternalServer({
    host: '127.0.0.1',
    port: 0,
    metrics,
    ready: () => undefined,
    containment: noContainment,
  })
  const stats = createStats(() => NOW_MS)
  const faults = createFaults({ latencyMs: 0, jitterMs: 0, hangRate: 0, errorRate: 0, garbageRate: 0 })
  let nowMs = NOW_MS
  addRoutes(server.app, {
    documents: createDocuments({ changeMs: 5_000 }),
    faults,
    stats,
    metrics,
    documentBytes: 10_000,
    now: () => nowMs,
    monotonicNs: () => 12_345_678_901n,
  })
  const port = await server.listen()
  toClose.push(server.close)

  const ask = async (path: string, { method = 'GET', headers = {}, body, signal }: Asked = {}) => {
    const type = body === undefined ? undefined : { 'content-type': 'application/json' }
    const sent = request({
      host: '127.0.0.1',
      port,
      path,
      method,
      headers: { ...type, ...headers },
      signal,
      agent: false,
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const received = await buffer(response)
    return {
      status: response.statusCode,
      headers: response.headers,
      body: received,
      json: () => JSON.parse(received.toString()),
    }
  }
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { ask, pass, stats, faults, close: server.close }
}

test.each([
  ['/conversations/1', 'application/json; charset=utf-8'],
  ['/text/1', 'text/plain; charset=utf-8'],
  ['/binary/1', 'application/octet-stream'],
])('%s is content with its type, length and validators', async (path, type) => {
  const { ask } = await setup()
  const { status, headers, body } = await ask(path)
  expect(status).toBe(200)
  expect(body).toHaveLength(10_000)
  expect(headers).toMatchObject({
    'content-type': type,
    'content-length': '10000',
    etag: expect.stringMatching(/^".+"$/),
    'last-modified': 'Mon, 01 Jun 2026 12:00:00 GMT',
    'cache-control': 'public',
  })
})

test('a copy is confirmed with 304 until the content changes', async () => {
  const { ask, pass } = await setup()
  const { headers } = await ask('/conversations/1')
  const validators: Record<string, string>[] = [
    { 'if-none-match': String(headers.etag) },
    { 'if-modified-since': String(headers['last-modified']) },
  ]
  for (const validator of validators) {
    const confirmed = await ask('/conversations/1', { headers: validator })
    expect(confirmed).toMatchObject({ status: 304, headers: { etag: headers.etag } })
    expect(confirmed.body).toHaveLength(0)
  }
  pass(5_000)
  for (const validator of validators) expect((await ask('/conversations/1', { headers: validator })).status).toBe(200)
})

test('an id may have segments, and be as long as a key allows', async () => {
  const { ask } = await setup()
  for (const id of ['a/b/c', 'A-Z.a_z~0', 'x'.repeat(255)]) {
    expect((await ask(`/conversations/${id}`)).json().id).toBe(id)
  }
})

test.each(['', '%22', 'a%20b', '/a', 'a/', 'x'.repeat(256)])('the id "%s" is not found', async id => {
  const { ask } = await setup()
  expect((await ask(`/conversations/${id}`)).status).toBe(404)
})

test('a request may ask for another length, within bounds', async () => {
  const { ask } = await setup()
  expect((await ask('/conversations/1?bytes=1000')).body).toHaveLength(1_000)
  expect((await ask('/binary/1?bytes=5000000')).body).toHaveLength(5_000_000)
  for (const bytes of ['999', '16777217', '1e4', '', '-5']) {
    expect((await ask(`/conversations/1?bytes=${bytes}`)).status).toBe(400)
  }
})

test('a tick has the time in two forms and must not be cached', async () => {
  const { ask } = await setup()
  const { headers, json } = await ask('/ticks/1')
  expect(json()).toEqual({ ns: '12345678901', at: '2026-06-01T12:00:00.000Z', id: '1' })
  expect(headers['cache-control']).toBe('no-store')
  expect(headers).not.toHaveProperty('etag')
})

test('the counters show how often each path was requested, and how it was answered', async () => {
  const { ask } = await setup()
  const { headers } = await ask('/conversations/1')
  await ask('/conversations/1', { headers: { 'if-none-match': String(headers.etag) } })
  await ask('/ticks/1')
  const stats = (await ask('/stats?log=1')).json()
  expect(stats).toMatchObject({
    requests: { conversations: { total: 2, full: 1, notModified: 1, failed: 0 }, ticks: { total: 1 } },
    byKey: { '/conversations/1': { total: 2 }, '/ticks/1': { total: 1 } },
    concurrencyMax: 1,
    log: [{ path: '/conversations/1' }, { status: 304 }, { path: '/ticks/1', atMs: NOW_MS, status: 200 }],
  })
  expect((await ask('/stats/reset', { method: 'POST' })).status).toBe(204)
  expect((await ask('/stats')).json()).toMatchObject({ requests: {}, byKey: {} })
  expect((await ask('/metrics')).body.toString()).toContain(
    'keycast_provider_requests_total{route="conversations",status="304"} 1',
  )
})

test('faults start and end as they are set', async () => {
  const { ask } = await setup()
  await ask('/faults', { method: 'POST', body: { errorRate: 1 } })
  expect((await ask('/conversations/1')).status).toBe(500)
  await ask('/faults', { method: 'POST', body: { errorRate: 0, garbageRate: 1 } })
  const garbage = await ask('/conversations/1')
  expect(garbage).toMatchObject({ status: 200, headers: { 'content-type': 'application/json; charset=utf-8' } })
  expect(garbage.json).toThrow(SyntaxError)

  const mended = await ask('/faults', { method: 'POST', body: { garbageRate: 0 } })
  expect(mended.json()).toEqual({ latencyMs: 0, jitterMs: 0, hangRate: 0, errorRate: 0, garbageRate: 0 })
  expect((await ask('/conversations/1')).status).toBe(200)
  expect((await ask('/stats')).json().requests.conversations).toEqual({ total: 3, full: 1, notModified: 0, failed: 2 })
})

test('an invalid fault is refused', async () => {
  const { ask } = await setup()
  const { status, json } = await ask('/faults', { method: 'POST', body: { errorRate: 7 } })
  expect(status).toBe(400)
  expect(json()).toEqual({ code: 'bad_request', message: expect.stringContaining('errorRate') })
})

test('requests are answered in parallel, delayed ones too', async () => {
  const { ask, faults } = await setup()
  faults.change({ latencyMs: 20 })
  const answers = await Promise.all([1, 2, 3].map(id => ask(`/ticks/${id}`)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await ask('/stats')).json().concurrencyMax).toBe(3)
})

test('a hanging request is never answered, and ends when the client gives up', async () => {
  const { ask, faults, stats } = await setup()
  faults.change({ hangRate: 1 })
  const patience = new AbortController()
  const asked = ask('/ticks/1', { signal: patience.signal })
  while (stats.concurrency() === 0) await new Promise(setImmediate)
  patience.abort()
  await expect(asked).rejects.toThrow()
  while (stats.concurrency() > 0) await new Promise(setImmediate)
  expect((await ask('/stats')).json().byKey['/ticks/1']).toEqual({ total: 1, full: 0, notModified: 0, failed: 0 })
})

test('it can be stopped while requests hang', async () => {
  const { ask, faults, stats, close } = await setup()
  faults.change({ hangRate: 1 })
  const asked = ask('/ticks/1')
  asked.catch(() => {})
  while (stats.concurrency() === 0) await new Promise(setImmediate)
  await close()
  await expect(asked).rejects.toThrow('socket hang up')
})
