import type { Namespace } from '@keycast/service'
import { randomNumbers } from '../../../../test/support/random.js'
import { createEntry, type Entry } from '../keys/entry.ts'
import { newWatcher } from '../keys/watchers.ts'
import type { KeySource } from '../origins/origins.ts'
import { setup } from '../test-support.ts'
import { createSchedule } from './schedule.ts'

const K = 'doc:1'

test('ten periods cost a key at most eleven requests, and hardly fewer, whatever its phase', () => {
  for (let phase = 0; phase < 1; phase += 0.01) {
    const { watch, value, current, lease, asked, pass } = setup({ random: () => phase })
    watch('a', K)
    value(K, 'v1')
    pass(9_990, () => lease(K) && current(K))
    expect(asked(K)).toBeLessThanOrEqual(11)
    expect(asked(K)).toBeGreaterThanOrEqual(10)
  }
})

test('keys watched at the same moment are refreshed spread over the period', () => {
  const { watch, value, current, leased, pass } = setup({ random: randomNumbers(1), inFlightMax: 1_000 })
  const keys = Array.from({ length: 1_000 }, (_, id) => `doc:${id}`)
  for (const key of keys) watch('a', key)
  while (leased().length > 0) value(leased()[0], 'v1')
  let most = 0
  pass(5_000, () => {
    most = Math.max(most, leased().length)
    for (const key of leased()) current(key)
  })
  // Ten per tick on average.
  expect(most).toBeLessThan(30)
})

test('keys that are refreshed each 5 s and more come up together, each at most a period after the last time', () => {
  const { watch, value, current, leased, askedAt, pass } = setup({
    namespaces: { doc: { refreshMs: 5_000 } },
    random: randomNumbers(1),
    inFlightMax: 1_000,
  })
  const keys = Array.from({ length: 1_000 }, (_, id) => `doc:${id}`)
  for (const key of keys) watch('a', key)
  while (leased().length > 0) value(leased()[0], 'v1')
  const together: number[] = []
  pass(10_000, () => {
    if (leased().length > 0) together.push(leased().length)
    for (const key of leased()) current(key)
  })

  // Twice in ten seconds, in 20 moments a second: ten each on average.
  expect(together.length).toBeLessThanOrEqual(201)
  expect(Math.max(...together)).toBeLessThan(30)
  const periods = keys.flatMap(key => askedAt(key).map((at, index, all) => at - (all[index - 1] ?? at)))
  expect(Math.max(...periods)).toBeLessThanOrEqual(5_000)
})

test('the period is fixed: a slow answer, a refresh or a late timer do not move it', () => {
  const { watch, value, current, lease, askedAt, pass, freeze, onRefresh, now } = setup({ random: () => 0.25 })
  watch('a', K)
  value(K, 'v1')
  const startedAt = now()
  const phase = () => askedAt(K).map(at => Math.round((at - startedAt) / 10) * 10)
  pass(260)
  pass(400)
  current(K) // 400 ms later
  pass(600)
  current(K)
  onRefresh(K)
  current(K)
  freeze(3_400)
  current(K) // once, for the three that were missed
  pass(700)
  expect(phase()).toEqual([0, 250, 1_250, 1_260, 4_660, 5_250])
  expect(lease(K)).toBeDefined()
})

test('a refresh still waiting for its turn at the next tick is not made twice', () => {
  const { watch, value, leased, asked, pass } = setup({ inFlightMax: 1, random: () => 0 })
  watch('a', K)
  value(K, 'v1')
  watch('a', 'doc:slow')
  pass(10_000)
  expect(leased()).toEqual(['doc:slow'])
  value('doc:slow', 'v1')
  value(K, 'v2')
  expect(asked(K)).toBe(2)
  expect(leased()).toEqual([])
})

test('a key that takes longer than its period is asked one at a time', () => {
  const { watch, value, leased, asked, pass } = setup({ namespaces: { doc: { refreshMs: 100 } } })
  watch('a', K)
  value(K, 'v1')
  pass(1_000)
  expect(leased()).toEqual([K])
  value(K, 'v1')
  expect(leased()).toEqual([])
  pass(100)
  expect(asked(K)).toBe(3)
})

test('with refresh 0 a key is asked for a new watch and for a refresh, and by backoff while that fails', () => {
  const { watch, value, fail, sent, asked, pass, onRefresh, lease } = setup({
    namespaces: { doc: { refreshMs: 0 } },
    random: () => 1,
  })
  watch('a', K)
  value(K, 'v1')
  pass(600_000)
  expect(asked(K)).toBe(1)
  onRefresh(K)
  fail(K, 'backend_error')
  sent('a')
  pass(260)
  expect(asked(K)).toBe(3)
  value(K, 'v2')
  expect(sent('a')).toEqual(['value v2'])
  pass(600_000)
  expect(asked(K)).toBe(3)
  expect(lease(K)).toBeUndefined()
})

test('while a key fails it is tried by backoff; then its period goes on', () => {
  const { watch, value, fail, askedAt, pass, lease, now } = setup({
    namespaces: { doc: { refreshMs: 60_000 } },
    random: () => 0.5,
  })
  watch('a', K)
  value(K, 'v1')
  const startedAt = now()
  pass(50_000, () => lease(K) && fail(K, 'backend_throttled'))
  const gaps = askedAt(K)
    .slice(1)
    .map((at, index) => at - askedAt(K)[index])
  // Three quarters of 250 ms, 500 ms, …, each in whole ticks.
  const expected = [30_000, 188, 375, 750, 1_500, 3_000, 6_000]
  expect(gaps).toHaveLength(expected.length)
  gaps.forEach((gap, index) => {
    expect(gap).toBeGreaterThanOrEqual(expected[index] - 10)
    expect(gap).toBeLessThanOrEqual(expected[index] + 20)
  })
  pass(4_000)
  value(K, 'v2')
  pass(60_000)
  expect(askedAt(K).at(-1)).toBeGreaterThanOrEqual(startedAt + 90_000)
  expect(askedAt(K).at(-1)).toBeLessThan(startedAt + 90_020)
})

test.each([
  ['a second', 5_000, 1_000],
  ['twenty seconds', 20_000, 20_000],
  ['an hour', 60_000, 3_600_000],
  ['0', 60_000, 0],
])('with a refresh of %s keys that go on failing are asked for every %d ms', (_, apartMs, refreshMs) => {
  const { watch, fail, asked, pass, leased } = setup({ namespaces: { doc: { refreshMs } }, random: () => 1 })
  const keys = Array.from({ length: 100 }, (_, n) => `doc:${n}`)
  for (const key of keys) watch('a', key)
  const refuse = () => {
    for (const key of leased()) fail(key, 'invalid_content')
  }
  const total = () => keys.reduce((sum, key) => sum + asked(key), 0)
  pass(200_000, refuse)
  const before = total()
  pass(120_000, refuse)
  // One each second is tried as well, to hear when the backend is better.
  const expected = (keys.length * 120_000) / apartMs
  expect(total() - before).toBeGreaterThanOrEqual(expected * 0.9)
  expect(total() - before).toBeLessThanOrEqual(expected + 120 + 1)
})

test('a refresh has a key that its backend throttles tried within five seconds, however long it fails', () => {
  const { watch, fail, asked, pass, leased, onRefresh } = setup({
    namespaces: { doc: { refreshMs: 3_600_000 } },
    random: () => 1,
  })
  const keys = Array.from({ length: 100 }, (_, n) => `doc:${n}`)
  for (const key of keys) watch('a', key)
  const refuse = () => {
    for (const key of leased()) fail(key, 'backend_throttled')
  }
  pass(200_000, refuse)
  const before = keys.map(asked)
  for (const key of keys.slice(50)) onRefresh(key)
  pass(5_020, refuse)
  expect(keys.slice(50).filter((key, n) => asked(key) === before[50 + n])).toEqual([])
  expect(keys.slice(0, 50).filter((key, n) => asked(key) === before[n]).length).toBeGreaterThan(30)
})

test('a key that is not refreshed by itself is tried once where it is told to be, and has no period', () => {
  const wheelTimes = [] as number[]
  const fire = [] as (() => void)[]
  const wheel = {
    set(tick: number, run: (entry: Entry) => void, entry: Entry) {
      wheelTimes.push(tick)
      fire.push(() => run(entry))
      return { tick, run() {} }
    },
    cancel() {},
  }
  const wanted = [] as Entry[]
  const schedule = createSchedule({
    wheel,
    refreshes: { begin() {}, end() {} },
    want: entry => wanted.push(entry),
    beginWait: () => undefined,
    now: () => 1_000,
    random: () => 0,
  })
  const namespace = { refreshMs: 0, maxAgeMs: 0, urlFor: () => '' } as unknown as Namespace
  const origin = { failing: new Set() } as unknown as KeySource
  const entry = createEntry(K, namespace, origin)
  entry.interest.watchers = [newWatcher('a', { version: undefined, askedAt: 0, quiet: false })]
  schedule.insist(entry)
  fire[0]()
  expect([wheelTimes, wanted]).toEqual([[1_000], [entry]])
})
