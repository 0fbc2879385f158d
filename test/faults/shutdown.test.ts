// SIGTERM: every service stops in order, tells its peers, and exits with 0.
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { answers, createGate, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually, within } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { ask } from '../support/http.ts'
import { childrenOf, isAlive, type ServiceProcess } from '../support/processes.ts'
import { startProvider, startSystem } from '../support/system.ts'

/** How long a gateway that stops waits for answers (services/gateway/doors/http/connections.ts). */
const ANSWERS_MS_MAX = 2_000

const backend = await startBackend()
const big = answers.json(documentOf(1, 130_000))
for (let id = 0; id < 100; id += 1) backend.on(`/docs/${id}`, big)
for (const id of ['hanging', 'under-way']) backend.on(`/docs/${id}`, answers.silence())
const url = `${backend.origin}/docs/{id}`
const namespaces = {
  doc: { url, refresh: '100ms', timeout: '500ms' },
  patient: { url, timeout: '60s' },
}

const stop = async (process: ServiceProcess) => {
  const at = performance.now()
  process.signal('SIGTERM')
  const { code, signal } = await within(process.exited, `${process.name} ending after SIGTERM`)
  show(`${process.name}: SIGTERM → exit ${code ?? signal} in ${msSince(at)}`)
  return { code, signal }
}

const { fetchers, startGateway } = await startSystem({ namespaces, gateways: 0, env: { FETCHER_WORKERS: '2' } })
const [fetcher] = fetchers

test('a gateway tells its clients that it closes, closes with 1012, takes its leave of the fetcher, and exits with 0', async () => {
  const gateway = await startGateway()
  const clients = await Promise.all(Array.from({ length: 50 }, () => connect(gateway.url)))
  await Promise.all(clients.map(client => client.subscribe(['doc:1', 'patient:hanging'])))
  await Promise.all(clients.map(client => client.reaches('doc:1', 1)))

  const stopped = stop(gateway.process)
  for (const client of clients) {
    expect((await client.gone()).code).toBe(1012)
    expect(client.closing()).toEqual({ type: 'closing', reconnectAfterMs: expect.any(Number) })
  }
  expect(await stopped).toEqual({ code: 0, signal: null })
  const said = await eventually(
    () => fetcher.process.log().find(({ msg }) => /^a gateway (said goodbye|fell silent)$/.test(msg)),
    'the fetcher noticing that the gateway is gone',
  )
  expect(said.msg).toBe('a gateway said goodbye')
})

test.each(['reads nothing', 'reads nothing and ends its own side'])(
  'a gateway with a client that %s exits with 0 too',
  async does => {
    const gateway = await startGateway()
    const client = await connect(gateway.url)
    const before = backend.askedFor('/docs/99').length
    client.stall()
    client.send({ type: 'subscribe', keys: Array.from({ length: 100 }, (_, id) => `doc:${id}`) })
    await eventually(() => backend.askedFor('/docs/99').length > before, 'the values being fetched')
    if (does.includes('ends')) client.halfClose()
    expect(await stop(gateway.process)).toEqual({ code: 0, signal: null })
  },
)

test('what a gateway was asked over HTTP is answered before it ends, and its connection with the answer', async () => {
  const agent = new Agent({ keepAlive: true })
  let answer: IncomingMessage | undefined
  let isOver = false
  for (let turn = 0; !isOver; turn++) {
    const gateway = await startGateway()
    const late = createGate(big)
    backend.on(`/docs/late-${turn}`, late.handler)
    const asked = once(get(`${gateway.http}/v1/values/patient:late-${turn}`, { agent }), 'response').then(
      ([answer]) => answer as IncomingMessage,
      () => undefined,
    )
    await backend.until(() => late.held() > 0, 'the backend being asked')
    const stoppedAt = performance.now()
    const stopped = stop(gateway.process)
    await eventually(() => gateway.process.log().some(({ msg }) => msg === 'stopping'), 'the gateway stopping')
    late.open()
    const openedMs = performance.now() - stoppedAt
    answer = await asked
    answer?.resume()
    expect(await stopped).toEqual({ code: 0, signal: null })
    // A busy machine may have the backend answer later than the gateway waits for it.
    isOver = answer?.statusCode === 200 || openedMs < ANSWERS_MS_MAX / 2
  }
  expect([answer?.statusCode, answer?.headers.connection]).toEqual([200, 'close'])
  agent.destroy()
})

test('a fetcher with a fetch under way exits with 0 and leaves no worker behind', async () => {
  const client = await connect((await startGateway()).url)
  await client.subscribe(['doc:1', 'patient:under-way'])
  await client.reaches('doc:1', 1)
  await backend.until(() => backend.askedFor('/docs/under-way').length > 0, 'a fetch that hangs')
  const workers = childrenOf(fetcher.process.pid)
  expect(workers).toHaveLength(2)

  expect(await stop(fetcher.process)).toEqual({ code: 0, signal: null })
  await eventually(() => !workers.some(isAlive), 'the end of the workers')
  // The gateway lives on and says that the value is getting old.
  await client.ping()
  await client.until(() => client.of('doc:1').stale, 'to be told that the value is stale')
  client.close()
})

test('the simulated backend with a request under way exits with 0', async () => {
  const provider = await startProvider({ PROVIDER_LATENCY_MS: '300' })
  const answered = ask(`${provider.origin}/conversations/1`).then(
    ({ status }) => status,
    () => 'cut',
  )
  await eventually(async () => (await provider.stats()).requests.conversations.total > 0, 'the request under way')
  expect(await stop(provider.process)).toEqual({ code: 0, signal: null })
  expect([200, 'cut']).toContain(await answered)
})
