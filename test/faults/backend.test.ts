// Every way in which a backend can fail: cached values are served and marked stale, a cold key gets the error, and all
// of it recovers with the backend.
import { answers, type Backend, documentOf, startBackend } from '../support/backend.ts'
import { type Client, connect } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { startSystem } from '../support/system.ts'

const REFRESH_MS = 200
const TIMEOUT_MS = 500
const BYTES_MAX = 100_000

/** Of a backend that a busy machine must not make too late. */
const PATIENT_MS = 10_000

/** What viewers are told of a backend that does not answer in time. */
const SLOW = 'backend_timeout'

const elsewhere = await startBackend()
const latin1 = Buffer.from('{"revision":9,"word":"café"}', 'latin1')

/** Faults of a backend, and the code that viewers are told. */
const faults: {
  name: string
  code: string
  begin: (backend: Backend) => unknown
  end?: (backend: Backend) => unknown
}[] = [
  { name: 'is down', code: 'backend_unreachable', begin: backend => backend.down(), end: backend => backend.up() },
  { name: 'answers 500', code: 'backend_error', begin: backend => backend.failWith(answers.status(500)) },
  { name: 'answers 503', code: 'backend_error', begin: backend => backend.failWith(answers.status(503)) },
  { name: 'hangs', code: 'backend_timeout', begin: backend => backend.failWith(answers.silence()) },
  {
    name: 'drips a byte at a time',
    code: 'backend_timeout',
    begin: backend => backend.failWith(answers.drip(documentOf(9), 50)),
  },
  {
    name: 'cuts its answers short',
    code: 'backend_unreachable',
    begin: backend => backend.failWith(answers.cutShort(documentOf(9, 10_000))),
  },
  {
    name: 'sends JSON that does not parse',
    code: 'invalid_content',
    begin: backend => backend.failWith(answers.content('{"revision":9', 'application/json')),
  },
  {
    name: 'sends JSON in Latin-1',
    code: 'invalid_content',
    begin: backend => backend.failWith(answers.content(latin1, 'application/json')),
  },
  { name: 'refuses', code: 'backend_refused', begin: backend => backend.failWith(answers.status(403)) },
  {
    name: 'sends a body over the cap',
    code: 'too_large',
    begin: backend => backend.failWith(answers.json(documentOf(9, BYTES_MAX + 1))),
  },
  {
    name: 'redirects',
    code: 'backend_redirect',
    begin: backend => backend.failWith(answers.status(302, { location: `${elsewhere.origin}/` })),
  },
]

// A backend of its own for each, so that the rest one needs after many failures is no concern of the others.
const backends = await Promise.all(faults.map(() => startBackend()))
const [storm, throttling, slow, odd, losing] = await Promise.all([1, 2, 3, 4, 5].map(() => startBackend()))

const namespaceOf = (backend: Backend, timeoutMs = TIMEOUT_MS) => ({
  url: `${backend.origin}/docs/{id}`,
  refresh: `${REFRESH_MS}ms`,
  timeout: `${timeoutMs}ms`,
  maxBytes: String(BYTES_MAX),
  maxAge: '100ms',
})
const { gateways, fetchers } = await startSystem({
  gateways: 2,
  namespaces: {
    ...Object.fromEntries(backends.map((backend, index) => [`fault-${index}`, namespaceOf(backend)])),
    storm: namespaceOf(storm),
    throttling: namespaceOf(throttling, PATIENT_MS),
    slow: namespaceOf(slow),
    odd: namespaceOf(odd),
    losing: namespaceOf(losing),
  },
})

// Beside each other: each waits for the most part.
test.concurrent.each(faults.map((fault, index) => ({ ...fault, index })))(
  'a backend that $name: viewers are told $code, and converge when it is well again',
  async fault => {
    const backend = backends[fault.index]
    const held = `fault-${fault.index}:held`
    const cold = `fault-${fault.index}:cold`
    backend.on('/docs/held', answers.json(documentOf(1)))
    backend.on('/docs/cold', answers.json(documentOf(1)))
    const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
    await Promise.all(viewers.map(viewer => viewer.subscribe([held])))
    await Promise.all(viewers.map(viewer => viewer.reaches(held, 1)))

    // A viewer with the value is told that it is stale; a new one is given the value and told the same.
    const end = fault.end ?? (() => backend.failWith(undefined))
    let late: Client
    for (;;) {
      await fault.begin(backend)
      for (const viewer of viewers) {
        await viewer.until(() => viewer.of(held).stale, 'to be told that the value is stale')
      }
      late = await connect(gateways[0].url)
      await late.subscribe([held])
      await late.until(() => late.of(held).stale, 'a later comer to be told that the value is stale')
      const codes = [...viewers, late].map(viewer => viewer.of(held).stale.code)
      if (fault.code === SLOW || !codes.includes(SLOW)) break
      // On a busy machine the backend was late before it failed, and a viewer is told of the first problem alone.
      late.close()
      await end(backend)
      for (const viewer of viewers) await viewer.until(() => !viewer.of(held).stale, 'the value being fresh')
    }
    for (const viewer of viewers) {
      expect(viewer.of(held).stale).toMatchObject({ code: fault.code, sinceMs: expect.any(Number) })
      expect(viewer.of(held).stale.sinceMs).toBeGreaterThanOrEqual(REFRESH_MS + TIMEOUT_MS)
    }
    expect(late.of(held)).toMatchObject({ values: 1, revision: 1, stale: { code: fault.code } })
    // Nothing is held of the cold key: its viewer gets the error, and the subscription stands.
    await late.subscribe([cold])
    const mayBe = [fault.code, 'backend_unavailable']
    await late.until(() => mayBe.includes(late.of(cold).error?.code), `one of ${mayBe.join()} for the cold key`)
    expect(late.of(cold).error.retryAfterMs).toEqual(expect.any(Number))

    backend.on('/docs/held', answers.json(documentOf(2)))
    backend.on('/docs/cold', answers.json(documentOf(2)))
    await end(backend)
    const wellAt = performance.now()
    await Promise.all([...viewers, late].map(viewer => viewer.reaches(held, 2)))
    await late.reaches(cold, 2)
    show(`a backend that ${fault.name}: converged ${msSince(wellAt)} after its return`)
    for (const viewer of [...viewers, late]) {
      // A busy machine may time out once more.
      await viewer.until(() => !viewer.of(held).stale, 'the value being fresh')
      viewer.close()
    }
    for (const viewer of viewers) expect(viewer.of(held).revisions).toEqual([1, 2])
  },
)

test.concurrent.each([404, 410])(
  'a backend that answers %s has said what holds: viewers are told, and see it come back',
  async status => {
    const path = `/docs/${status}`
    const key = `losing:${status}`
    losing.on(path, answers.json(documentOf(1)))
    const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
    await Promise.all(viewers.map(viewer => viewer.subscribe([key])))
    await Promise.all(viewers.map(viewer => viewer.reaches(key, 1)))

    losing.on(path, answers.status(status))
    const late = await connect(gateways[0].url)
    await viewers[0].until(() => viewers[0].of(key).error, 'to be told that there is nothing')
    await late.subscribe([key])
    for (const viewer of [...viewers, late]) {
      await viewer.until(() => viewer.of(key).error, 'to be told that there is nothing')
      // The subscription stands: the key is asked for again.
      expect(viewer.of(key).error).toMatchObject({ code: 'not_found', retryAfterMs: expect.any(Number) })
    }
    expect(late.of(key).values).toBe(0)

    losing.on(path, answers.json(documentOf(2)))
    for (const viewer of [...viewers, late]) {
      await viewer.reaches(key, 2)
      viewer.close()
    }
  },
)

test('a redirect is never followed', () => {
  expect(elsewhere.asked).toEqual([])
})

test.concurrent('a backend that asks for patience with Retry-After is given it', async () => {
  throttling.on('/docs/1', answers.json(documentOf(1)))
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['throttling:1'])
  await viewer.reaches('throttling:1', 1)

  const refusedAt: number[] = []
  throttling.failWith((request, response) => {
    refusedAt.push(performance.now())
    answers.status(429, { 'retry-after': '2' })(request, response)
  })
  await viewer.until(() => viewer.of('throttling:1').stale, 'to be told that the value is stale')
  expect(viewer.of('throttling:1').stale.code).toBe('backend_throttled')
  throttling.on('/docs/1', answers.json(documentOf(2)))
  throttling.failWith(undefined)
  await viewer.reaches('throttling:1', 2)

  const askedAt = throttling.askedFor('/docs/1').map(({ at }) => at)
  expect(refusedAt.length).toBeGreaterThan(0)
  for (const at of refusedAt) {
    expect((askedAt.find(next => next > at) as number) - at).toBeGreaterThanOrEqual(2_000)
  }
  viewer.close()
})

test.concurrent('a backend slow to the very edge of the timeout: whatever comes through, nobody goes back', async () => {
  let revision = 0
  // From well inside the timeout to beyond it, over and over, and another revision with every request.
  const delaysMs = [TIMEOUT_MS / 5, TIMEOUT_MS - 100, TIMEOUT_MS - 10, TIMEOUT_MS, TIMEOUT_MS + 10, TIMEOUT_MS + 100]
  let turn = 0
  slow.on('/docs/1', (request, response) => {
    revision += 1
    const document = answers.json(documentOf(revision))
    answers.slowly(() => delaysMs[turn++ % delaysMs.length], document)(request, response)
  })
  const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(['slow:1'])))
  await slow.until(() => turn >= 2 * delaysMs.length, 'two turns of all delays')
  await viewers[0].until(() => viewers[0].of('slow:1').values > 0, 'an answer coming through')

  slow.on('/docs/1', answers.json(documentOf(1_000)))
  for (const viewer of viewers) {
    await viewer.reaches('slow:1', 1_000)
    viewer.close()
  }
})

test('a BOM is cut, text is transcoded, and what is no text travels as bytes', async () => {
  odd.on('/docs/bom', answers.content(Buffer.from('\ufeff{"revision":1}'), 'application/json'))
  odd.on('/docs/latin1', answers.content(Buffer.from('café', 'latin1'), 'text/plain; charset=iso-8859-1'))
  odd.on('/docs/bytes', answers.content(Buffer.from([0xff, 0x00, 0x80]), 'text/plain'))
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['odd:bom', 'odd:latin1', 'odd:bytes'])
  for (const key of ['odd:bom', 'odd:latin1', 'odd:bytes']) await viewer.until(() => viewer.of(key).values > 0, key)
  expect(viewer.of('odd:bom').data).toEqual({ revision: 1 })
  expect(viewer.of('odd:latin1').data).toBe('café')
  expect(Buffer.from(viewer.of('odd:bytes').data, 'base64')).toEqual(Buffer.from([0xff, 0x00, 0x80]))
  viewer.close()
})

test.concurrent('a backend down for 100 watched keys is not stormed, and is back within a second or two', async () => {
  const ids = Array.from({ length: 100 }, (_, index) => String(index))
  const keys = ids.map(id => `storm:${id}`)
  for (const id of ids) storm.on(`/docs/${id}`, answers.json(documentOf(1)))
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(keys)
  for (const key of keys) await viewer.reaches(key, 1)

  storm.failWith(answers.status(503))
  for (const key of keys) await viewer.until(() => viewer.of(key).stale, `${key} to be said stale`)
  const breaker = `keycast_fetcher_breaker_open{origin="${storm.origin}",namespace="storm"}`
  await eventually(async () => (await fetchers[0].metric(breaker)) === 1, 'the breaker being open')
  // Everything has failed by now: in the next three seconds only probes may go out, where 100 keys at a refresh of
  // 200 ms would make 1,500 requests.
  const before = storm.asked.length
  await pause(3_000)
  const duringRest = storm.asked.length - before
  expect(duringRest).toBeLessThan(50)

  for (const id of ids) storm.on(`/docs/${id}`, answers.json(documentOf(2)))
  storm.failWith(undefined)
  const wellAt = performance.now()
  for (const key of keys) await viewer.reaches(key, 2)
  show(
    `backend down for 100 keys: ${duringRest} requests in 3 s, ` + `all converged ${msSince(wellAt)} after its return`,
  )
  await eventually(() => keys.every(key => viewer.of(key).stale === undefined), 'no key being stale')
  viewer.close()
})
