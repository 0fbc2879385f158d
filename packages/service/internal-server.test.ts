import { createContainment } from './containment.ts'
import { createInternalServer } from './internal-server.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics/metrics.ts'

const toClose: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of toClose.splice(0)) await close()
})

interface Given {
  port?: number
  ready?: () => string | undefined
  problems?: () => string[]
}

const setup = ({ port = 0, ready = () => undefined, problems }: Given = {}) => {
  const lines: string[] = []
  const log = createLog({ name: 'keycast-test', destination: { write: line => lines.push(line) } })
  const metrics = createMetrics({ service: 'test' })
  const containment = createContainment({ now: () => 0, ends: ['request'], log })
  containment.export(metrics)
  const server = createInternalServer({ host: '127.0.0.1', port, metrics, ready, problems, containment })
  toClose.push(server.close)

  const request = async (path: string, init?: RequestInit) => {
    const at = server.app.server.address() ?? { port: await server.listen() }
    const response = await fetch(`http://127.0.0.1:${Object(at).port}${path}`, init)
    return { status: response.status, type: response.headers.get('content-type'), body: await response.text() }
  }
  return { ...server, request, lines }
}

test('the metrics are served in the format Prometheus reads', async () => {
  const { request } = setup()
  const { type, body } = await request('/metrics')
  expect(type).toContain('text/plain; version=0.0.4')
  expect(body).toContain('keycast_test_process_cpu_seconds_total{mode="user"}')
})

test('a request that is not there in a minute is given up', async () => {
  expect(setup().app.server.requestTimeout).toBe(60_000)
})

test('a service that is not ready is alive and says why', async () => {
  let reason: string | undefined = 'no fetcher node answers'
  const { request } = setup({ ready: () => reason })
  expect((await request('/health/live')).status).toBe(200)
  const { status, body } = await request('/health/ready')
  expect(status).toBe(503)
  expect(JSON.parse(body)).toEqual({ code: 'not_ready', message: reason })

  reason = undefined
  expect((await request('/health/ready')).status).toBe(200)
})

test('a service that is degraded is sent traffic and says what is wrong', async () => {
  let problems = ['a journal keeps another log']
  const { request } = setup({ problems: () => problems })
  const degraded = await request('/health/ready')
  expect([degraded.status, JSON.parse(degraded.body)]).toEqual([200, { status: 'degraded', problems }])
  problems = []
  expect(JSON.parse((await request('/health/ready')).body)).toEqual({ status: 'ready' })
})

test('a route that fails answers 500 without telling why, and logs why', async () => {
  const { app, request, lines } = setup()
  app.get('/broken', async () => {
    throw new Error('s3cret')
  })
  const { status, body } = await request('/broken')
  expect(status).toBe(500)
  expect(JSON.parse(body)).toEqual({ code: 'internal_error', message: expect.not.stringContaining('s3cret') })
  expect(lines.join('')).toContain('s3cret')
  expect(lines.join('')).toContain('/broken')
  // The next request is served, and tells that one failed.
  const { body: exposition } = await request('/metrics')
  expect(exposition).toContain('keycast_test_unexpected_errors_total{ended="request"} 1')
})

test('a bad request is answered with what is wrong', async () => {
  const { app, request, lines } = setup()
  app.post('/echo', async ({ body }) => body)
  const headers = { 'content-type': 'application/json' }
  const { status, body } = await request('/echo', { method: 'POST', headers, body: '{' })
  expect(status).toBe(400)
  expect(JSON.parse(body)).toEqual({ code: 'bad_request', message: expect.stringContaining('JSON') })
  expect(lines).toEqual([])
})

test('a path that nothing answers has the same shape of error', async () => {
  const { request } = setup()
  const { status, body } = await request('/v1/nothing')
  expect(status).toBe(404)
  expect(JSON.parse(body)).toEqual({ code: 'unknown_path', message: 'nothing answers GET at this path' })
})

test('a path that cannot be read has it, too, and is not repeated', async () => {
  const { request } = setup()
  const { status, body } = await request(`/v1/keys/%zz${'a'.repeat(1_000)}`)
  expect(status).toBe(400)
  expect(JSON.parse(body)).toEqual({
    code: 'bad_request',
    message: expect.stringMatching(/^the path cannot be read.{0,50}$/),
  })
})

test('closing does not wait for connections that a scraper keeps open', async () => {
  const { request, close } = setup()
  expect((await request('/health/live')).status).toBe(200)
  await close()
})

test('a port in use rejects with its number', async () => {
  const port = await setup().listen()
  await expect(setup({ port }).listen()).rejects.toMatchObject({ code: 'EADDRINUSE', port })
})

test('a body of a type that is not read is refused with the header that helps', async () => {
  const { app, request } = setup()
  app.post('/call', () => ({}))
  const headers = { 'content-type': 'application/x-www-form-urlencoded' } // what curl sends by itself
  const { status, body } = await request('/call', { method: 'POST', headers, body: '{}' })
  const message = 'send the body with the header "content-type: application/json"'
  expect([status, JSON.parse(body)]).toEqual([415, { code: 'bad_request', message }])
})
