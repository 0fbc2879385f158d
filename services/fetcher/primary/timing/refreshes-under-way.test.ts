import { TURN_MS } from '@keycast/service'
import { keysOf, setup, short } from '../test-support.ts'
import { OVERDUE_MS } from './refreshes-under-way.ts'
import { TICK_MS } from './timer-wheel.ts'

const K = 'doc:1'
const PERIOD_MS = 10_000

/** A key that link `a` watches and has been sent, refreshed half a period from now. */
function watching({ quiet = true, refreshMs = PERIOD_MS, maxAgeMs = 60_000 } = {}) {
  const primary = setup({ namespaces: { doc: { refreshMs, maxAgeMs, timeoutMs: 5_000 } } })
  primary.onWatch('a', { key: K, held: undefined, quiet })
  primary.value(K, 'v1')
  const [first] = primary.take('a')
  const lag = () => primary.lagsMs?.()?.doc
  return { ...primary, first, lag }
}

/** Turns the clock until the key is leased. */
function untilLeased({ pass, leased }: ReturnType<typeof watching>) {
  for (let ticks = 0; leased().length === 0; ticks++) {
    if (ticks > 2_000) throw new Error('the key is not refreshed')
    pass(TICK_MS)
  }
}

test('a quiet watch is told when the key is asked for again, and nothing more while it stays as it is', () => {
  const primary = watching()
  expect(primary.first).toMatchObject({ type: 'value', next: { inMs: PERIOD_MS / 2, everyMs: PERIOD_MS } })

  for (let period = 0; period < 3; period++) {
    untilLeased(primary)
    primary.current(K)
    expect(primary.take('a')).toEqual([])
  }
  expect(primary.asked(K)).toBe(4)
})

test('a watch of a gateway that does not understand that is told each time', () => {
  const primary = watching({ quiet: false })
  expect(primary.first).not.toHaveProperty('next')
  untilLeased(primary)
  primary.current(K)
  expect(primary.sent('a')).toEqual(['current v1'])
})

test('a key that is refreshed more often is confirmed each time', () => {
  const primary = watching({ refreshMs: 1_000 })
  expect(primary.first).toMatchObject({ next: undefined })
  untilLeased(primary)
  primary.current(K)
  expect(primary.sent('a')).toEqual(['current v1'])
  expect(primary.lagsMs?.()).toBeUndefined()
})

test('changes are told, and when it goes on', () => {
  const primary = watching()
  untilLeased(primary)
  primary.value(K, 'v2')
  expect(primary.take('a')).toMatchObject([{ type: 'value', version: 'v2', next: { everyMs: PERIOD_MS } }])
})

test('so is that the version may be used for less long', () => {
  const primary = watching()
  untilLeased(primary)
  primary.current(K, { maxAgeMs: 100 })
  expect(primary.take('a')).toMatchObject([{ type: 'current', maxAgeMs: 100 }])
})

test('a failure is told, and its end, though the version is the same', () => {
  const primary = watching()
  untilLeased(primary)
  primary.fail(K, 'backend_error')
  expect(primary.sent('a')).toEqual(['backend_error'])
  untilLeased(primary)
  primary.current(K)
  expect(primary.take('a')).toMatchObject([{ type: 'current', next: { everyMs: PERIOD_MS } }])
})

test('all refreshes are over up to now, unless one is under way: then up to when it was due', () => {
  const primary = watching()
  expect(primary.lag()).toBeLessThanOrEqual(TICK_MS)
  untilLeased(primary)
  primary.pass(500)
  expect(primary.lag()).toBeGreaterThanOrEqual(500)
  expect(primary.lag()).toBeLessThanOrEqual(500 + TICK_MS)
  primary.current(K)
  expect(primary.lag()).toBeLessThanOrEqual(TICK_MS)
})

test('a refresh that takes long is told of by itself, and holds up no other', () => {
  const primary = watching()
  untilLeased(primary)
  primary.pass(OVERDUE_MS + TICK_MS)

  expect(primary.lag()).toBeLessThanOrEqual(TICK_MS)
  const [overdue] = primary.take('a')
  expect(overdue).toMatchObject({ type: 'current', version: 'v1', next: undefined })
  expect((overdue as { ageMs: number }).ageMs).toBeGreaterThan(PERIOD_MS / 2)

  primary.current(K)
  expect(primary.take('a')).toMatchObject([{ type: 'current', next: { everyMs: PERIOD_MS } }])
})

test('a watch that comes while one is under way is told of its end: the next is a period later', () => {
  const primary = watching()
  untilLeased(primary)
  primary.onWatch('b', { key: K, held: undefined, quiet: true })
  expect(primary.take('b')).toMatchObject([{ type: 'value', version: 'v1', next: undefined }])
  primary.current(K)
  expect(primary.take('b')).toMatchObject([{ type: 'current', ageMs: 0, next: { everyMs: PERIOD_MS } }])
  expect(primary.take('a')).toEqual([])
})

test('whoever waits for one that takes long is given what it brings, and nothing older', () => {
  const primary = watching({ maxAgeMs: 0 })
  untilLeased(primary)
  primary.get('b', K)
  primary.pass(OVERDUE_MS + TICK_MS)

  primary.lagsMs?.()
  expect(primary.sent('b')).toEqual([])
  primary.value(K, 'v2')
  expect(primary.sent('b')).toEqual(['value v2'])
})

test('with many that take long none of them waits for all to be told of', () => {
  const keys = keysOf(10)
  const primary = setup({ namespaces: { doc: { refreshMs: PERIOD_MS } }, markDueMs: 1 })
  for (const key of keys) primary.onWatch('a', { key, held: undefined, quiet: true })
  for (const key of keys) primary.value(key, 'v1')
  primary.take('a')
  primary.pass(PERIOD_MS)
  primary.freeze(2 * OVERDUE_MS)

  const before = primary.now()
  primary.lagsMs?.()
  expect(primary.now() - before).toBeLessThanOrEqual(TURN_MS)
  for (let beat = 0; beat < 10; beat++) primary.lagsMs?.()
  expect(primary.take('a')).toHaveLength(keys.length)
})

test('refreshes that wait to be sent hold up what is said of all: nothing is told of each', () => {
  const primary = setup({ namespaces: { doc: { refreshMs: PERIOD_MS } }, inFlightMax: 1 })
  for (const key of [K, 'doc:2']) {
    primary.onWatch('a', { key, held: undefined, quiet: true })
    primary.value(key, 'v1')
  }
  primary.take('a')
  untilLeased(primary as any)
  primary.pass(OVERDUE_MS / 2)
  primary.pass(OVERDUE_MS)
  primary.lagsMs?.()
  expect(primary.take('a').map(short)).toEqual(['current v1'])
  expect(primary.lagsMs?.()?.doc).toBeGreaterThan(OVERDUE_MS)
})

test('what was asked for before the refresh was due is told with its age', () => {
  const primary = watching()
  primary.pass(PERIOD_MS / 2 - 5 * TICK_MS)
  primary.onRefresh(K)
  expect(primary.leased()).toEqual([K])
  primary.pass(10 * TICK_MS)
  primary.current(K)
  expect(primary.take('a')).toMatchObject([{ type: 'current', version: 'v1' }])
})

test('so is what was asked for before it was due again', () => {
  const primary = watching()
  untilLeased(primary)
  primary.pass(PERIOD_MS)
  primary.current(K)
  expect(primary.take('a')).toMatchObject([{ type: 'current', version: 'v1' }])
})

test('a refresh that comes due while what is fetched was replaced by a value handed over is made after that', () => {
  const primary = watching()
  primary.pass(PERIOD_MS / 2 - 10 * TICK_MS)
  primary.onRefresh(K)
  primary.handOver(K, 'v2')
  primary.pass(20 * TICK_MS)
  expect(primary.leases()).toHaveLength(1)
  primary.value(K, 'v1')

  expect(primary.leased()).toEqual([K])
  primary.pass(OVERDUE_MS / 2)
  expect(primary.lag()).toBeGreaterThanOrEqual(OVERDUE_MS / 2)
})

test('a key that is no longer watched holds up nothing', () => {
  const primary = watching()
  untilLeased(primary)
  primary.onUnwatch('a', K)
  primary.pass(1_500)
  expect(primary.lag()).toBeLessThanOrEqual(TICK_MS)
})
