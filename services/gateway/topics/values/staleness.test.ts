import { createTestGateway } from '../../test-support.ts'
import { askedAtOf, endRefreshes, latestAskedAtOf, planOf } from './staleness.ts'

const subscribe = (...keys: unknown[]) => ({ type: 'subscribe', keys })

// The namespace of createTestGateway: refresh 1 s, timeout 2 s.

/** @param waitMs for which the backend may keep a request */
async function watching({ waitMs }: { waitMs?: number } = {}) {
  const bench = createTestGateway({ namespaces: { tick: { waitMs } } })
  const client = await bench.connect()
  await client.ask(subscribe('tick:1'))
  const version = bench.backbone.value('tick:1', '1')
  await client.received()
  return { ...bench, client, version }
}

test('a value is called stale once the last try failed and it is older than refresh and timeout', async () => {
  const { backbone, client, pass } = await watching()
  await pass(1_000)
  backbone.failed('tick:1', 'backend_error')
  await pass(1_999)
  expect(await client.received()).toEqual([])

  await pass(1)
  expect(await client.received()).toEqual([{ type: 'stale', key: 'tick:1', sinceMs: 3_000, code: 'backend_error' }])

  backbone.failed('tick:1', 'backend_timeout')
  await pass(5_000)
  expect(await client.received()).toEqual([])
})

test('where the backend waits for a change, only a failure or the silence of all is news', async () => {
  const { backbone, client, pass, version } = await watching({ waitMs: 20_000 })
  await pass(22_500)
  expect(await client.received()).toEqual([])
  backbone.current('tick:1', version)
  await pass(3_100)
  backbone.failed('tick:1', 'backend_error')
  expect(await client.received()).toMatchObject([{ type: 'stale', code: 'backend_error' }])
  backbone.current('tick:1', version)
  await pass(24_500)
  expect(await client.received()).toMatchObject([{ type: 'current' }, { type: 'stale', code: 'fetcher_timeout' }])
})

test('a try that fails when the value is old enough is reported at once', async () => {
  const { backbone, client, pass } = await watching()
  await pass(3_000)
  backbone.failed('tick:1', 'backend_timeout')
  expect(await client.received()).toMatchObject([{ type: 'stale', code: 'backend_timeout', sinceMs: 3_000 }])
})

test('a try that fails while the value is young and is made good is not reported', async () => {
  const { backbone, client, pass, version } = await watching()
  await pass(1_000)
  backbone.failed('tick:1', 'backend_error')
  await pass(1_000)
  backbone.current('tick:1', version)
  await pass(2_500)
  expect(await client.received()).toEqual([])
})

test('the age counts from when the backend was asked, not from when its answer came', async () => {
  const { backbone, client, pass, version } = await watching()
  await pass(2_000)
  backbone.current('tick:1', version, { ageMs: 1_500 })
  backbone.failed('tick:1', 'backend_error')
  await pass(1_499)
  expect(await client.received()).toEqual([])
  await pass(1)
  expect(await client.received()).toMatchObject([{ type: 'stale', sinceMs: 3_000 }])
})

test('an answer asked for earlier never makes the known age older', async () => {
  const { backbone, pass, version } = await watching()
  backbone.current('tick:1', version, { ageMs: 900 })
  await pass(10)
  expect(backbone.held('tick:1')).toEqual({ version, ageMs: 10 })
})

test('the end of a problem reaches all subscribers: as current where the value is the same', async () => {
  const { backbone, client, pass, version } = await watching()
  await pass(3_000)
  backbone.failed('tick:1', 'backend_error')
  await client.received()

  backbone.current('tick:1', version)
  expect(await client.received()).toEqual([{ type: 'current', key: 'tick:1', version }])
})

test('the end of a problem reaches all subscribers as the value where that has changed', async () => {
  const { backbone, client, pass } = await watching()
  await pass(3_000)
  backbone.failed('tick:1', 'backend_error')
  await client.received()

  backbone.value('tick:1', '2')
  expect(await client.received()).toMatchObject([{ type: 'value', data: 2 }])
})

test('a problem that ends before it was written is not sent', async () => {
  const { backbone, client, pass, version } = await watching()
  await pass(3_000)
  backbone.failed('tick:1', 'backend_error')
  backbone.value('tick:1', '2')
  backbone.value('tick:1', '1')
  expect(await client.received()).toMatchObject([{ type: 'value', version }])
})

test('so does one that comes to a key of which no fetcher has said anything since it is watched', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', '1')
  await pass(1_001)
  backbone.nodesAlive = 0
  await (await connect()).ask(subscribe('tick:1'))
  await pass(10_000)
  expect(await (await connect()).ask(subscribe('tick:1'))).toMatchObject([
    { type: 'subscribed' },
    { type: 'value', data: 1 },
    { type: 'stale', code: 'fetcher_unavailable' },
  ])
})

test('a later comer gets the value, or word that it holds it, and then stale', async () => {
  const { backbone, connect, pass, version } = await watching()
  await pass(3_000)
  backbone.failed('tick:1', 'backend_error')
  await pass(4_000)

  const later = await connect()
  expect(await later.ask(subscribe('tick:1'))).toMatchObject([
    { type: 'subscribed' },
    { type: 'value', data: 1 },
    { type: 'stale', code: 'backend_error', sinceMs: 7_000 },
  ])
  const holding = await connect()
  expect(await holding.ask(subscribe({ key: 'tick:1', version }))).toMatchObject([
    { type: 'subscribed' },
    { type: 'current', version },
    { type: 'stale', code: 'backend_error' },
  ])
})

test('a subscription to an old value is sent it with stale when the first try fails', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', '1')
  await pass(60_000)
  const client = await connect()
  await client.ask(subscribe('tick:1'))

  backbone.failed('tick:1', 'backend_unreachable')

  expect(await client.received()).toMatchObject([
    { type: 'value', data: 1 },
    { type: 'stale', sinceMs: 60_000, code: 'backend_unreachable' },
  ])
})

test('a subscription to an old value is sent it with stale when the fetcher stays silent', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', '1')
  await pass(60_000)
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  await pass(3_999)
  expect(await client.received()).toEqual([])
  await pass(251)
  expect(await client.received()).toMatchObject([{ type: 'value' }, { type: 'stale', code: 'fetcher_timeout' }])
})

test('when no fetcher node is alive, a value is stale as soon as it is too old', async () => {
  const { backbone, client, pass, version } = await watching()
  backbone.nodesAlive = 0
  await pass(2_999)
  expect(await client.received()).toEqual([])
  await pass(251)
  expect(await client.received()).toMatchObject([{ type: 'stale', code: 'fetcher_unavailable' }])

  backbone.nodesAlive = 1
  backbone.current('tick:1', version)
  expect(await client.received()).toMatchObject([{ type: 'current', version }])
})

test('a fetcher that is alive but silent is given the time its own report takes', async () => {
  const { client, pass } = await watching()
  await pass(3_750)
  expect(await client.received()).toEqual([])
  await pass(250)
  expect(await client.received()).toMatchObject([{ type: 'stale', code: 'fetcher_timeout', sinceMs: 4_000 }])
})

test('a value without refresh is stale when no node is alive to be told of a change', async () => {
  const { backbone, connect, pass } = createTestGateway({ namespaces: { tick: { refreshMs: 0 } } })
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', '1')
  await client.received()
  for (let n = 0; n < 20; n++) await pass(1_000)
  expect(await client.received()).toEqual([])

  backbone.nodesAlive = 0
  await pass(250)
  await pass(1_999)
  expect(await client.received()).toEqual([])
  await pass(1)
  expect(await client.received()).toMatchObject([{ type: 'stale', code: 'fetcher_unavailable' }])

  backbone.nodesAlive = 1
  backbone.value('tick:1', '2')
  await pass(250)
  await client.received()
  backbone.nodesAlive = 0
  for (let n = 0; n < 10; n++) await pass(250)
  expect(await client.received()).toMatchObject([{ type: 'stale', code: 'fetcher_unavailable' }])
})

test('a value without refresh is not stale where the only node was away for a moment', async () => {
  const { backbone, connect, pass } = createTestGateway({ namespaces: { tick: { refreshMs: 0 } } })
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', '1')
  await client.received()
  for (let n = 0; n < 3; n++) {
    await pass(5_000)
    backbone.nodesAlive = 0
    await pass(250)
    await pass(1_500)
    backbone.nodesAlive = 1
  }
  await pass(5_000)
  expect(await client.received()).toEqual([])
})

test('values without refresh are not looked at while a node is alive, however many there are', async () => {
  const { backbone, connect, pass } = createTestGateway({ namespaces: { tick: { refreshMs: 0 } } })
  const client = await connect()
  const keys = Array.from({ length: 100 }, (_, number) => `tick:${number}`)
  await client.ask(subscribe(...keys))
  for (const key of keys) backbone.value(key, '1')
  await pass(5_000) // until the watch would have been given up
  await client.received()
  let looks = 0
  Object.defineProperty(backbone, 'nodesAlive', { get: () => ++looks })
  for (let n = 0; n < 20; n++) await pass(1_000)
  expect(looks).toBeLessThanOrEqual(20)
})

test('a cold key errors at its first failed try, and again only when the reason changes', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))

  backbone.failed('tick:1', 'backend_error')
  expect(await client.received()).toEqual([
    {
      type: 'error',
      key: 'tick:1',
      subscribed: true,
      code: 'backend_error',
      message: 'it was backend_error',
      retryAfterMs: 500,
    },
  ])
  backbone.failed('tick:1', 'backend_error')
  expect(await client.received()).toEqual([])
  backbone.failed('tick:1', 'backend_timeout')
  expect(await client.received()).toMatchObject([{ type: 'error', code: 'backend_timeout' }])

  const later = await connect()
  expect(await later.ask(subscribe('tick:1'))).toMatchObject([{ type: 'subscribed' }, { code: 'backend_timeout' }])
  backbone.value('tick:1', '1')
  expect(await later.received()).toMatchObject([{ type: 'value' }])
  expect(await client.received()).toMatchObject([{ type: 'value' }])
})

test('a cold key that is not answered is an error after timeout and 2 s, and the subscription stands', async () => {
  const { backbone, connect, pass } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  await pass(3_750)
  expect(await client.received()).toEqual([])
  await pass(250)
  expect(await client.received()).toMatchObject([{ type: 'error', code: 'fetcher_timeout', retryAfterMs: 1_000 }])
  await pass(10_000)
  expect(await client.received()).toEqual([])

  backbone.nodesAlive = 0
  await pass(1_250)
  expect(await client.received()).toMatchObject([{ type: 'error', code: 'fetcher_unavailable' }])
  backbone.value('tick:1', '1')
  expect(await client.received()).toMatchObject([{ type: 'value' }])
})

test('a key the backend has no more is an error, and comes back as a whole value even if it is the same', async () => {
  const { backbone, client, version } = await watching()
  backbone.failed('tick:1', 'not_found', { maxAgeMs: 1_000 })
  expect(await client.received()).toMatchObject([{ type: 'error', code: 'not_found', retryAfterMs: 500 }])
  expect(backbone.held('tick:1')).toMatchObject({ version: undefined })
  backbone.failed('tick:1', 'not_found', { maxAgeMs: 1_000 })
  expect(await client.received()).toEqual([])

  expect(backbone.value('tick:1', '1')).toBe(version)
  expect(await client.received()).toMatchObject([{ type: 'value', version, data: 1 }])
})

test('not_found stands also where the fetcher names no time: the subscription waits for a refresh', async () => {
  const { backbone, client } = await watching()
  backbone.failed('tick:1', 'not_found', { maxAgeMs: 3_000, retryAfterMs: undefined })
  expect(await client.received()).toMatchObject([{ code: 'not_found', retryAfterMs: 1_000 }])
})

test('a client that was sent not_found on arrival is sent the value whole when there is one', async () => {
  const { backbone, connect, version } = await watching()
  backbone.failed('tick:1', 'not_found', { maxAgeMs: 1_000 })
  const client = await connect()
  expect(await client.ask(subscribe({ key: 'tick:1', version }))).toMatchObject([{}, { code: 'not_found' }])
  backbone.value('tick:1', '1')
  expect(await client.received()).toMatchObject([{ type: 'value', version }])
})

test('a failure that does not heal ends every subscription, and the watch', async () => {
  const { backbone, connect, client } = await watching()
  const other = await connect()
  await other.ask(subscribe('tick:1'))

  backbone.failed('tick:1', 'backend_refused', { retryAfterMs: undefined })

  for (const each of [client, other]) {
    expect(await each.received()).toEqual([
      { type: 'error', key: 'tick:1', subscribed: false, code: 'backend_refused', message: 'it was backend_refused' },
    ])
  }
  expect(backbone.calls).toEqual(['watch tick:1', 'unwatch tick:1'])
  backbone.value('tick:1', '2')
  expect(await client.received()).toEqual([])
})

test('a get and a subscription to the same failing key are both answered', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  client.send({ type: 'get', id: 1, key: 'tick:1' })
  backbone.failed('tick:1', 'backend_error')
  expect(await client.received()).toMatchObject([
    { type: 'error', id: 1, code: 'backend_error' },
    { type: 'error', key: 'tick:1', code: 'backend_error' },
  ])
})

test('an old problem is not sent to a session that watches the key anew', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.failed('tick:1', 'backend_error')
  await client.received()
  client.send({ type: 'get', id: 1, key: 'tick:1' })
  client.send({ type: 'unsubscribe', keys: ['tick:1'] })
  client.send(subscribe('tick:1'))
  expect(await client.received()).toMatchObject([{ type: 'ok' }, { type: 'subscribed' }])
})

describe('of a key whose fetcher tells of changes only', () => {
  const REFRESH_MS = 10_000

  async function watchingQuietly() {
    const bench = createTestGateway({ namespaces: { tick: { refreshMs: REFRESH_MS, maxAgeMs: 20_000 } } })
    const client = await bench.connect()
    await client.ask(subscribe('tick:1'))
    const confirmations = { untilMs: Number.NEGATIVE_INFINITY }
    const startMs = bench.now()
    const next = { inMs: 4_000, everyMs: REFRESH_MS }
    bench.backbone.value('tick:1', '1', { next, maxAgeMs: 20_000 }, true, confirmations)
    await client.received()
    return { ...bench, client, startMs, confirmations }
  }

  test('the age is that of the last refresh that is over, without any answer', async () => {
    const { gateway, confirmations, startMs, pass } = await watchingQuietly()
    await pass(26_000)
    confirmations.untilMs = startMs + 25_000

    expect(gateway.values.describe('tick:1').value).toMatchObject({ ageMs: 2_000 })
    expect(gateway.values.held('tick:1', 'watch')).toMatchObject({ ageMs: 1_000 })
    expect(gateway.values.fresh('tick:1')).toMatchObject({ ageMs: 2_000 })
  })

  test('a value is not stale while refreshes are over, and is when no more are', async () => {
    const { client, confirmations, startMs, pass } = await watchingQuietly()
    for (let second = 1; second <= 60; second++) {
      await pass(1_000)
      confirmations.untilMs = startMs + second * 1_000 - 500
    }
    expect(await client.received()).toEqual([])

    // Refreshed at 54 s; refresh 10 s, timeout 2 s, a second for a worker, three for beats.
    await pass(9_000)
    expect(await client.received()).toEqual([])
    await pass(2_000)
    expect(await client.received()).toMatchObject([{ type: 'stale', key: 'tick:1' }])
  })

  test('a value that was stale because the fetcher was behind is current once beats confirm it', async () => {
    const { client, confirmations, startMs, pass } = await watchingQuietly()
    await pass(40_000)
    expect(await client.received()).toMatchObject([{ type: 'stale', key: 'tick:1' }])

    confirmations.untilMs = startMs + 45_500
    await pass(6_000)
    expect(await client.received()).toMatchObject([{ type: 'current', key: 'tick:1' }])

    await pass(40_000)
    expect(await client.received()).toMatchObject([{ type: 'stale', key: 'tick:1' }])
  })

  test('a failure ends what was assured: the value ages from the last refresh before it', async () => {
    const { backbone, client, confirmations, startMs, gateway, pass } = await watchingQuietly()
    await pass(15_000)
    confirmations.untilMs = startMs + 14_500
    backbone.failed('tick:1', 'backend_error')
    confirmations.untilMs = startMs + 30_000
    await pass(1_000)

    expect(gateway.values.describe('tick:1').value).toMatchObject({ ageMs: 2_000 })
    await pass(9_999)
    expect(await client.received()).toEqual([])
    await pass(1)
    expect(await client.received()).toMatchObject([{ type: 'stale', code: 'backend_error', sinceMs: 12_000 }])
  })

  test('a key that nobody watches any more is not refreshed: its age goes on from there', async () => {
    const { client, confirmations, startMs, gateway, pass } = await watchingQuietly()
    await pass(5_000)
    confirmations.untilMs = startMs + 5_000
    await client.ask({ type: 'unsubscribe', keys: ['tick:1'] })
    confirmations.untilMs = startMs + 20_000
    await pass(15_000)

    expect(gateway.values.describe('tick:1').value).toMatchObject({ ageMs: 16_000 })
  })

  test('nor is it where a get of it is answered before its node has heard of that', async () => {
    const { client, backbone, confirmations, startMs, gateway, pass } = await watchingQuietly()
    await pass(5_000)
    const got = gateway.singleFlight.want('tick:1')
    await client.ask({ type: 'unsubscribe', keys: ['tick:1'] })
    backbone.value('tick:1', '1', { next: { inMs: 9_000, everyMs: REFRESH_MS } }, true, confirmations)
    await got
    confirmations.untilMs = startMs + 65_000
    await pass(60_000)

    expect(gateway.values.describe('tick:1').value).toMatchObject({ ageMs: 60_000 })
  })

  test.each(['watch', 'get'] as const)('nothing confirms it before the answer to another %s', async type => {
    const { backbone, confirmations, startMs, gateway, pass } = await watchingQuietly()
    await pass(5_000)
    confirmations.untilMs = startMs + 5_000
    expect(backbone.held('tick:1', type)).toMatchObject({ plan: { inMs: 9_000, askedAgoMs: 1_000 } })
    confirmations.untilMs = startMs + 20_000
    await pass(15_000)

    expect(gateway.values.describe('tick:1').value).toMatchObject({ ageMs: 16_000 })
  })
})

/** Asked at 1,000; refreshed at 10,000 and each 5,000 after that. */
function refreshed(untilMs: number) {
  const confirmations = { untilMs }
  return { confirmations, entry: { askedAtMs: 1_000, refreshes: { confirmations, atMs: 10_000, everyMs: 5_000 } } }
}

test.each([
  [Number.NEGATIVE_INFINITY, 1_000],
  [9_999, 1_000],
  [10_000, 10_000],
  [14_999, 10_000],
  [31_000, 30_000],
])('with all refreshes over up to %d the backend was asked at %d', (untilMs, askedAtMs) => {
  expect(askedAtOf(refreshed(untilMs).entry)).toBe(askedAtMs)
})

test('a key that is confirmed one by one has the time it was told', () => {
  expect(askedAtOf({ askedAtMs: 1_000, refreshes: undefined })).toBe(1_000)
  expect(latestAskedAtOf({ askedAtMs: 1_000, refreshes: undefined })).toBe(1_000)
})

test('what may have been asked later is no older for another node', () => {
  expect(latestAskedAtOf(refreshed(12_345).entry)).toBe(12_345)
})

test.each([
  [Number.NEGATIVE_INFINITY, 9_000, 1_000, 8_000],
  [9_999, 9_999, 1, 8_999],
  [10_000, 10_500, 4_500, 500],
  [12_000, 14_000, 1_000, 4_000],
  [12_000, 16_000, 0, 6_000],
])(
  'confirmed up to %d, at %d another node may wait for %d ms: the backend was asked %d ms ago',
  (untilMs, nowMs, inMs, askedAgoMs) => {
    const { entry } = refreshed(untilMs)

    const plan = planOf({ ...entry, store: true, failure: undefined, maxAgeMs: 700 }, nowMs)
    expect(plan).toEqual({ inMs, maxAgeMs: 700, askedAgoMs })
  },
)

test('what may not be stored, fails, or is confirmed one by one, another node asks for at once', () => {
  const { entry } = refreshed(12_000)
  const failure = { problem: { code: 'backend_error', retryAfterMs: 1 }, atMs: 1, isLocal: false } as const
  const kept = { ...entry, store: true, failure: undefined, maxAgeMs: 700 }

  expect(planOf({ ...kept, store: false }, 13_000)).toBeUndefined()
  expect(planOf({ ...kept, failure }, 13_000)).toBeUndefined()
  expect(planOf({ ...kept, refreshes: undefined }, 13_000)).toBeUndefined()
})

test('what was confirmed stays when nothing more is', () => {
  const { entry, confirmations } = refreshed(16_000)

  endRefreshes(entry)
  confirmations.untilMs = 99_000

  expect([askedAtOf(entry), entry.refreshes]).toEqual([15_000, undefined])
})
