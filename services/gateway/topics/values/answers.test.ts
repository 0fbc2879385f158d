import type { Answer } from '@keycast/backbone'
import type { Namespace } from '@keycast/service'
import { createNamespaces, createTestGateway, noKind } from '../../test-support.ts'
import { applyAnswer } from './answers.ts'
import { createEntry } from './cache.ts'
import { askedAtOf } from './staleness.ts'

test('the answer to a watch answers no get: it may have waited for seconds in a gateway that stood still', async () => {
  const { gateway, backbone, turn } = createTestGateway()
  let result: string | undefined
  void gateway.singleFlight.want('tick:1').then(({ value }) => {
    result = String(value?.body)
  })
  backbone.value('tick:1', '1', { ageMs: 0, maxAgeMs: 500 }, false)
  await turn()
  expect(result).toBeUndefined()

  backbone.value('tick:1', '2')
  await turn()
  expect(result).toBe('2')
})

test('an answer for a key that is no longer wanted is dropped', async () => {
  const { gateway, backbone, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  await pass(10_000)
  backbone.value('tick:1', '1')
  expect(gateway.values.describe('tick:1').value).toBeUndefined()
})

test('a value that comes again with the same version keeps its frames', () => {
  const { gateway, backbone } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', '1')
  const value = gateway.values.fresh('tick:1')?.value
  backbone.value('tick:1', '1')
  expect(value).toBeDefined()
  expect(gateway.values.fresh('tick:1')?.value).toBe(value)
})

test('word of a version that was dropped since makes the gateway ask for its bytes', () => {
  const { gateway, backbone } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.current('tick:1', 'gone')
  expect(backbone.calls).toEqual(['get tick:1', 'get tick:1'])
  backbone.value('tick:1', '1')
  backbone.current('tick:1', 'gone')
  expect(backbone.calls).toHaveLength(2)
})

test('maxAge and store are those of the latest answer', () => {
  const { gateway, backbone } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '1')
  void gateway.singleFlight.want('tick:1')
  backbone.current('tick:1', version, { maxAgeMs: 10, ageMs: 5 })
  expect(gateway.values.fresh('tick:1')).toMatchObject({ maxAgeMs: 10, ageMs: 0 })
})

test('keys that were never found take their part of the cache and no more: keys of others get in', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 1024 ** 2 } })
  const [stranger, user] = [await connect(), await connect()]
  const invented = Array.from({ length: 2_000 }, (_, index) => `tick:invented-${index}`)
  for (let first = 0; first < invented.length; first += 500) {
    const keys = invented.slice(first, first + 500)
    stranger.send({ type: 'subscribe', keys })
    for (const key of keys) backbone.failed(key, 'not_found')
  }
  const errors = (await stranger.received()).filter(({ type }) => type === 'error')
  expect(errors.filter(({ code, subscribed }) => code === 'not_found' && subscribed)).toHaveLength(128)
  expect(errors.filter(({ code, subscribed }) => code === 'capacity' && !subscribed)).toHaveLength(2_000 - 128)

  await user.ask({ type: 'subscribe', keys: ['tick:1'] })
  backbone.value('tick:1', '1')
  expect(await user.received()).toMatchObject([{ type: 'value', key: 'tick:1' }])
})

test('a key that was there is not counted among those never found', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 1024 ** 2 } })
  const client = await connect()
  const keys = Array.from({ length: 200 }, (_, index) => `tick:${index}`)
  client.send({ type: 'subscribe', keys })
  for (const key of keys) backbone.value(key, '1')
  await client.received()
  for (const key of keys) backbone.failed(key, 'not_found')
  expect((await client.received()).filter(({ subscribed }) => subscribed)).toHaveLength(200)
})

const namespace = createNamespaces().fetched.get('tick') as Namespace
const good = { key: 'tick:1', ageMs: 100, maxAgeMs: 1_000, store: true }
const value = (version: string, rest = {}) =>
  ({
    type: 'value',
    version,
    contentType: 'application/json',
    format: 'json',
    body: Buffer.from('1'),
    ...good,
    ...rest,
  }) as Answer
const current = (version: string, rest = {}) => ({ type: 'current', version, ...good, ...rest }) as Answer
const failed = (code: string, rest = {}) =>
  ({
    type: 'failed',
    key: 'tick:1',
    code,
    message: 'm',
    ageMs: 0,
    ...rest,
  }) as Answer

const setup = () => createEntry('tick:1', namespace, noKind)

test('a value is held with the time the backend was asked for it', () => {
  const entry = setup()
  expect(applyAnswer(entry, value('a', { maxAgeMs: 5, store: false }), 10_000)).toBe('value')
  expect(entry).toMatchObject({ askedAtMs: 9_900, maxAgeMs: 5, store: false, value: { version: 'a' } })
})

test('the same version again only confirms', () => {
  const entry = setup()
  applyAnswer(entry, value('a'), 10_000)
  const held = entry.value
  expect(applyAnswer(entry, value('a'), 11_000)).toBe('confirmed')
  expect(applyAnswer(entry, current('a'), 12_000)).toBe('confirmed')
  expect(entry.value).toBe(held)
  expect(entry.askedAtMs).toBe(11_900)
})

test('a version confirmed under a higher number has that one from then on, and never a lower one', () => {
  const entry = setup()
  applyAnswer(entry, value('a', { order: 5 }), 10_000)
  applyAnswer(entry, current('a', { order: 7 }), 11_000)
  expect(entry.value?.order).toBe(7)
  applyAnswer(entry, value('a', { order: 6 }), 12_000)
  expect(entry.value?.order).toBe(7)
})

test('the time asked never moves back', () => {
  const entry = setup()
  applyAnswer(entry, value('a'), 10_000)
  applyAnswer(entry, current('a', { ageMs: 5_000 }), 10_001)
  expect(entry.askedAtMs).toBe(9_900)
})

test('word of a version that is not held changes nothing', () => {
  const entry = setup()
  expect(applyAnswer(entry, current('a'), 10_000)).toBeUndefined()
  applyAnswer(entry, value('b'), 10_000)
  expect(applyAnswer(entry, current('a'), 20_000)).toBeUndefined()
  expect(entry.askedAtMs).toBe(9_900)
})

test('a failure leaves the value there is, and a good answer ends it', () => {
  const entry = setup()
  applyAnswer(entry, value('a'), 10_000)
  expect(applyAnswer(entry, failed('backend_error', { retryAfterMs: 499.2 }), 11_000)).toBe('failed')
  expect(entry).toMatchObject({
    askedAtMs: 9_900,
    value: { version: 'a' },
    failure: { problem: { code: 'backend_error', retryAfterMs: 500 }, atMs: 11_000 },
  })
  applyAnswer(entry, current('a'), 12_000)
  expect(entry.failure).toBeUndefined()
})

test('a failure that will not be tried again is refused, one to be tried at once is not', () => {
  expect(applyAnswer(setup(), failed('capacity'), 10_000)).toBe('refused')
  expect(applyAnswer(setup(), failed('backend_error', { retryAfterMs: 0 }), 10_000)).toBe('failed')
})

test('that there is nothing takes the place of a value, and is good for its time', () => {
  const entry = setup()
  applyAnswer(entry, value('a'), 10_000)
  expect(applyAnswer(entry, failed('not_found', { ageMs: 10, maxAgeMs: 7 }), 11_000)).toBe('gone')
  expect(entry).toMatchObject({ value: undefined, askedAtMs: 10_990, maxAgeMs: 7 })
  expect(entry.failure?.problem).toMatchObject({ code: 'not_found', retryAfterMs: namespace.refreshMs })
  expect(applyAnswer(entry, value('a'), 12_000)).toBe('value')
})

describe('of a key that another node keeps as it was', () => {
  const next = { inMs: 4_000, everyMs: 5_000 }
  const kept = (version: string) => ({
    type: 'kept' as const,
    key: 'tick:1',
    version,
    next,
  })

  test('the age is the one known before, until that node has confirmed more', () => {
    const entry = setup()
    const before = { untilMs: 12_000 }
    applyAnswer(entry, value('a', { next: { inMs: 1_000, everyMs: 5_000 } }), 10_000, before)
    const confirmations = { untilMs: Number.NEGATIVE_INFINITY }

    expect(applyAnswer(entry, kept('a'), 20_000, confirmations)).toBe('kept')
    before.untilMs = 99_000
    expect(askedAtOf(entry)).toBe(11_000)
    confirmations.untilMs = 24_500
    expect(askedAtOf(entry)).toBe(24_000)
  })

  test('nothing more confirms it where that node does not say when it asks', () => {
    const entry = setup()
    const confirmations = { untilMs: 12_000 }
    applyAnswer(entry, value('a', { next: { inMs: 1_000, everyMs: 5_000 } }), 10_000, confirmations)

    expect(applyAnswer(entry, { ...kept('a'), next: undefined }, 13_000)).toBe('kept')
    confirmations.untilMs = 99_000
    expect(askedAtOf(entry)).toBe(11_000)
  })

  test.each(['b', undefined])('it is asked for where the gateway holds %s by now', version => {
    const entry = setup()
    if (version) applyAnswer(entry, value(version), 10_000)

    expect(applyAnswer(entry, kept('a'), 11_000, { untilMs: 0 })).toBeUndefined()
  })

  test('it is asked for where its subscribers may have been told of a problem', () => {
    const entry = setup()
    applyAnswer(entry, value('a'), 10_000)
    applyAnswer(entry, failed('backend_error', { retryAfterMs: 1_000 }), 11_000)

    expect(applyAnswer(entry, kept('a'), 12_000, { untilMs: 0 })).toBeUndefined()
  })
})
