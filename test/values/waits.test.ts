// Viewers that wait for changes over plain HTTP, through the cache of docs/deploy/cdn.md: one request of theirs reaches a
// gateway.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { eventually } from '../support/deadline.ts'
import { startEdge } from '../support/edge.ts'
import { ask } from '../support/http.ts'
import { startSystem } from '../support/system.ts'

const WAITERS = 300

/** Keys that one address may open: those of ten sessions. */
const OPENED_MAX = 20

/** A key that was asked for stays open for so long. */
const OPEN_MS = 5_000
const KEY = 'doc:1'

const backend = await startBackend()
backend.on('/docs/1', answers.json(documentOf(1)))
const { gateways, startGateway } = await startSystem({
  namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms', maxAge: '100ms' } },
  gateways: 2,
  env: { GATEWAY_KEYS_PER_SESSION_MAX: '2', GATEWAY_REQUESTS_PER_SECOND_MAX: '1' },
})
const edge = await startEdge(gateways)

/** A viewer as the page's own code: it asks again with what it was answered. */
function startViewer(start: { version: string; cursor: string }) {
  const seen: number[] = []
  let { version, cursor } = start
  let isStopped = false
  const run = (async () => {
    while (!isStopped) {
      const { status, headers, json } = await ask(`${edge}/v1/wait/${KEY}?after=${version}&cursor=${cursor}`)
      if (status === 200) {
        seen.push(json().revision)
        version = String(headers.etag).slice(1, -1)
      }
      if (status === 200 || status === 204) cursor = String(headers['keycast-cursor'])
      else await new Promise(resolve => setTimeout(resolve, 200))
    }
  })()
  return {
    seen,
    async stop() {
      isStopped = true
      await run
    },
  }
}

const answeredByGateways = async () => {
  const counts = await Promise.all(
    gateways.map(({ metric }) => metric('keycast_gateway_http_waits_total{status="200"}').catch(() => 0)),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The backend has another revision from now on, and all viewers see it. */
async function change(revision: number, viewers: ReturnType<typeof startViewer>[]) {
  backend.on('/docs/1', answers.json(documentOf(revision)))
  await eventually(() => viewers.every(({ seen }) => seen.at(-1) === revision), `revision ${revision} at all viewers`)
}

test('a stranger who opens key after key is refused, and whoever waits for those of others is not', async () => {
  const [{ http }] = gateways
  // An edge that has passed is answered at once; the key stays open for some seconds.
  const open = (id: number, address: string) =>
    ask(`${http}/v1/wait/doc:${id}?after=x&cursor=1.1`, { headers: { 'x-forwarded-for': address } })
  const startedAt = performance.now()
  const answered: Awaited<ReturnType<typeof open>>[] = []
  const refused = () => answered.filter(({ status }) => status === 429)
  // More of them until one is refused: a busy machine may take so long that some are closed again.
  while (refused().length === 0) {
    const ids = Array.from({ length: 5 * OPENED_MAX }, (_, n) => answered.length + n)
    answered.push(...(await Promise.all(ids.map(id => open(id, '192.0.2.1')))))
  }
  const passedMs = performance.now() - startedAt
  expect(new Set(refused().map(({ json }) => json().code))).toEqual(new Set(['rate_limited']))
  const opened = answered.length - refused().length
  expect(opened).toBeGreaterThanOrEqual(OPENED_MAX)
  expect(opened).toBeLessThanOrEqual(OPENED_MAX * (1 + Math.floor(passedMs / OPEN_MS)))
  // One that another address has just opened costs nothing; on a busy machine it may be closed already.
  await eventually(async () => {
    const other = await open(answered.length, '192.0.2.2')
    const same = await open(answered.length, '192.0.2.1')
    return other.status !== 429 && same.status !== 429
  }, 'a key that is open')
})

test('a gateway that is stopped answers who waits, also where nobody has a session there', async () => {
  const gateway = await startGateway()
  const { headers } = await ask(`${gateway.http}/v1/values/${KEY}`)
  const [order, edge] = String(headers['keycast-cursor']).split('.')
  // The edge after the next, so that none passes meanwhile.
  const answer = ask(
    `${gateway.http}/v1/wait/${KEY}?after=${String(headers.etag).slice(1, -1)}&cursor=${order}.${Number(edge) + 1}`,
  )
  await eventually(async () => (await gateway.metric('keycast_gateway_waits')) === 1, 'the request waiting')
  gateway.process.signal('SIGTERM')
  expect((await answer).status).toBe(204)
})

test(`${WAITERS} viewers cost the gateways two requests a change at most, and nobody goes back`, async () => {
  const value = await ask(`${gateways[0].http}/v1/values/${KEY}`)
  const start = { version: String(value.headers.etag).slice(1, -1), cursor: String(value.headers['keycast-cursor']) }
  const viewers = Array.from({ length: WAITERS }, () => startViewer(start))
  const waiting = async () => {
    const counts = await Promise.all(gateways.map(({ metric }) => metric('keycast_gateway_waits')))
    return counts.reduce((sum, count) => sum + count, 0) > 0
  }
  await eventually(waiting, 'a request waiting at a gateway')

  // The third is the first content again: a former version that is news.
  for (const revision of [2, 3, 2, 4]) {
    const before = await answeredByGateways()
    await change(revision, viewers)
    expect((await answeredByGateways()) - before).toBeLessThanOrEqual(2)
    await eventually(waiting, 'the next request waiting at a gateway')
  }
  for (const { seen } of viewers) expect(seen).toEqual([2, 3, 2, 4])

  // A gateway dies, perhaps the one where the request waits.
  await gateways[0].process.kill()
  await change(5, viewers)
  for (const { seen } of viewers) expect(seen).toEqual([2, 3, 2, 4, 5])

  backend.on('/docs/1', answers.json(documentOf(6)))
  await Promise.all(viewers.map(viewer => viewer.stop()))
})
