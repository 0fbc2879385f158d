import { answering, keysOf, setup, watched } from '../test-support.ts'
import type { KeySource } from './origins.ts'

const K = 'doc:1'

test('a single key of a failing backend is tried at least once a second', () => {
  const primary = watched([K], { random: () => 1 })
  const { pass, fail, asked, askedAt } = primary
  const down = answering(primary, key => fail(key, 'backend_unreachable'))
  pass(30_000, down)
  const gaps = askedAt(K)
    .slice(1)
    .map((at, index) => at - askedAt(K)[index])
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1_020)
  const before = asked(K)
  pass(10_000, down)
  expect(asked(K) - before).toBeLessThanOrEqual(13) // one a second, and its own backoff
})

test('a new watch of a failing key has it tried within a second, whatever its backoff', () => {
  const { get, watch, fail, take, pass, asked, leased } = setup({ random: () => 1 })
  for (const waitMs of [250, 500, 1_000, 2_000]) {
    get('a', K)
    fail(K, 'backend_error')
    take('a')
    if (waitMs < 2_000) pass(waitMs + 10)
  }
  watch('b', K)
  pass(1_010)
  expect(asked(K)).toBe(5)
  expect(leased()).toEqual([K])
})

test('a key about to be tried by itself is not put off by another one’s success', () => {
  const primary = watched(['doc:0', 'doc:1'], { random: () => 0.99, namespaces: { doc: { refreshMs: 0 } } })
  const { onRefresh, fail, current, pass, askedAt, now } = primary
  onRefresh('doc:0')
  onRefresh('doc:1')
  pass(10)
  fail('doc:0', 'backend_error')
  const failedAt = now()
  pass(200)
  current('doc:1')
  pass(1_000)
  expect(askedAt('doc:0')[2] - failedAt).toBeLessThanOrEqual(270)
})

test('a success wakes a key that failed, also right after other successes', () => {
  let draw = 1
  const { onRefresh, fail, current, pass, asked } = watched(['doc:0', 'doc:1', 'doc:2'], {
    random: () => draw,
    namespaces: { doc: { refreshMs: 0 } },
  })
  for (const key of ['doc:0', 'doc:1', 'doc:2']) onRefresh(key)
  current('doc:0')
  fail('doc:1', 'backend_error')
  draw = 0
  current('doc:2')
  pass(20)
  expect(asked('doc:1')).toBe(3)
})

test('of many keys one is tried each second, in turn', () => {
  const keys = keysOf(5)
  const primary = watched(keys, { random: () => 1, namespaces: { doc: { refreshMs: 0 } } })
  const { pass, fail, asked, onRefresh, leased } = primary
  const down = answering(primary, key => fail(key, 'invalid_content'))
  for (const key of keys) onRefresh(key)
  down()
  pass(60_000, down)
  const total = keys.reduce((sum, key) => sum + asked(key), 0)
  // Each by its own backoff, 5 s at the end, is at most one a second in all: nothing is added to that.
  expect(total).toBeLessThanOrEqual(5 * (2 + 5 + 60 / 5) + 60)
  for (const key of keys) expect(asked(key)).toBeGreaterThanOrEqual(12)
  expect(leased()).toEqual([])
})

test('when a failing backend answers again its keys are tried within a second, spread over it', () => {
  let draw = 0
  const keys = keysOf(15)
  const primary = watched(keys, { random: () => (draw = (draw + 0.37) % 1) })
  const { pass, fail, current, asked, leased, sent, take } = primary
  const down = answering(primary, key => fail(key, 'backend_timeout'))
  pass(1_000, down)
  // Enough of them to let their backoff grow, too few to open the breaker.
  pass(
    30_000,
    answering(primary, key => fail(key, 'invalid_content')),
  )
  take('a')
  const before = keys.map(asked)
  let most = 0
  pass(2_100, () => {
    most = Math.max(most, leased().length)
    for (const key of leased()) current(key)
  })
  keys.forEach((key, index) => {
    expect(asked(key)).toBeGreaterThan(before[index])
  })
  expect(sent('a').sort()).toEqual(keys.map(() => 'current v1'))
  expect(most).toBeLessThan(6)
})

test('keys that always fail among many that do not are not tried at each success', () => {
  const good = keysOf(100)
  const bad = 'doc:bad'
  const primary = watched([...good, bad], { random: () => 0.5, namespaces: { doc: { refreshMs: 100 } } })
  const { pass, fail, current, asked } = primary
  const mixed = answering(primary, key => (key === bad ? fail(key, 'backend_error') : current(key)))
  pass(20_000, mixed)
  const before = asked(bad)
  pass(60_000, mixed)
  // By its own backoff every 3.75 s, and once more in five.
  expect(asked(bad) - before).toBeLessThanOrEqual(60 / 3.75 + 60 / 5 + 1)
})

test('a backend that asks for patience gets it from each key that it said so of', () => {
  const keys = keysOf(2)
  const primary = watched(keys, { random: () => 0.5 })
  const { pass, fail, current, asked, lease } = primary
  pass(510)
  fail('doc:0', 'backend_error', { retryAfterMs: 10_000 })
  fail('doc:1', 'backend_error')
  const others = () => lease('doc:1') && current('doc:1')
  pass(9_900, others)
  expect(asked('doc:0')).toBe(2)
  pass(130, others)
  expect(asked('doc:0')).toBe(3)
})

test('a thousand watches of keys that wait out a Retry-After look at all of them once, not once each', () => {
  const keys = keysOf(1_000)
  const { primary, onRefresh, fail, onUnwatch, watch, pass } = watched(keys, { namespaces: { doc: { refreshMs: 0 } } })
  for (const key of keys) {
    onRefresh(key)
    fail(key, 'backend_throttled', { retryAfterMs: 120_000 })
  }
  for (const key of keys) onUnwatch('a', key)
  pass(5_000)
  const { failing } = primary.sources.get('doc') as KeySource
  let looks = 0
  const values = failing.values.bind(failing)
  failing.values = failing[Symbol.iterator] = () => {
    looks++
    return values()
  }
  for (const key of keys) watch('b', key)
  // The tests' own checks of the primary look, too.
  expect(looks).toBeLessThan(100)
})
