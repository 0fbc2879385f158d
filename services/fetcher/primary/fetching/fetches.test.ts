import { setup } from '../test-support.ts'

const K = 'doc:1'

test('no more are under way to one backend than allowed, and each backend has its own allowance', () => {
  const { watch, value, leased } = setup({
    inFlightMax: 2,
    namespaces: { doc: {}, same: {}, other: { origin: 'http://other' } },
  })
  for (const key of ['doc:1', 'same:1', 'doc:2', 'other:1', 'other:2', 'other:3']) watch('a', key)
  expect(leased()).toEqual(['doc:1', 'same:1', 'other:1', 'other:2'])
  value('doc:1', 'v')
  expect(leased()).toEqual(['same:1', 'other:1', 'other:2', 'doc:2'])
})

test('without credit fetches wait; with credit again backends take turns', () => {
  const { watch, value, leased, primary } = setup({
    credit: 1,
    namespaces: { doc: { refreshMs: 0 }, other: { origin: 'http://other', refreshMs: 0 } },
  })
  for (const key of ['doc:1', 'doc:2', 'doc:3', 'other:1', 'other:2']) watch('a', key)
  const order = []
  for (let i = 0; i < 5; i++) {
    const [key] = leased()
    order.push(key)
    value(key, 'v')
  }
  expect(order).toEqual(['doc:1', 'other:1', 'doc:2', 'other:2', 'doc:3'])
  primary.fetches.startAll()
  expect(leased()).toEqual([])
})

test('a new key is fetched before every refresh that waits', () => {
  const { watch, value, leased, pass } = setup({ inFlightMax: 4 })
  const keys = Array.from({ length: 100 }, (_, id) => `doc:${id}`)
  for (const key of keys) {
    watch('a', key)
    value(key, 'v1')
  }
  pass(510)
  expect(leased()).toHaveLength(4)
  watch('a', 'doc:new')
  value(leased()[0], 'v2')
  expect(leased()).toContain('doc:new')
})

test('a fetch whose worker died is given to another one, before all that wait', () => {
  const { watch, value, lose, sent, leased, lease, asked } = setup({ inFlightMax: 1 })
  watch('a', K)
  watch('a', 'doc:2')
  lose(K)
  expect(leased()).toEqual([K])
  expect(asked(K)).toBe(2)
  expect(lease(K)?.fetch.attempt).toBe(2)
  value(K, 'v1')
  expect(sent('a')).toEqual(['value v1'])
  expect(leased()).toEqual(['doc:2'])
})

test('one that waits for a second worker is not made when nobody wants it any more', () => {
  const { watch, get, cancelGet, value, lose, leased, asked, primary } = setup({
    credit: 1,
    namespaces: { doc: {}, other: { origin: 'http://other' } },
  })
  get('a', K)
  watch('a', 'other:1')
  lose(K)
  expect(leased()).toEqual(['other:1'])
  cancelGet('a', K)
  value('other:1', 'v1')
  expect(asked(K)).toBe(1)
  expect(primary.table.get(K)).toBeUndefined()
})

test('one that nobody wants any more is not made a second time, and leaves nothing behind', () => {
  const { get, cancelGet, onRefresh, lose, leased, asked, primary, value, sent } = setup({ inFlightMax: 1 })
  get('a', K)
  get('a', 'doc:2')
  onRefresh(K)
  cancelGet('a', K)
  lose(K)
  expect(leased()).toEqual(['doc:2'])
  expect(asked(K)).toBe(1)
  expect(primary.table.get(K)).toBeUndefined()

  value('doc:2', 'v1')
  get('a', 'doc:3')
  value('doc:3', 'v1')
  sent('a')
  onRefresh('doc:3')
  get('b', 'doc:3')
  onRefresh('doc:3')
  cancelGet('b', 'doc:3')
  lose('doc:3')
  expect(leased()).toEqual([])
  // The fetch that was to follow it is forgotten, too.
  get('c', 'doc:3')
  value('doc:3', 'v2')
  expect(leased()).toEqual([])
})

test('its answer is as old as the second asking', () => {
  const { watch, value, lose, take, pass } = setup()
  watch('a', K)
  pass(1_000)
  lose(K)
  pass(100)
  value(K, 'v1')
  expect(take('a')).toMatchObject([{ ageMs: 100 }])
})

test('a value is as old as its worker says, which may have stood still before it asked', () => {
  const { watch, value, take, sent, pass, now } = setup()
  watch('a', K)
  pass(1_400)
  value(K, 'v1', { askedAt: now() - 30 })
  expect(take('a')).toMatchObject([{ version: 'v1', ageMs: 30 }])

  // Another node was leased the key later, asked for it before, and gave its gateway an older value.
  watch('b', K, { version: 'v0', ageMs: 100 })
  expect(sent('b')).toEqual(['value v1'])
})

test('a value is no older than its lease, though the primary stands still between two clocks that tell its age', () => {
  const { get, value, sent, pass, now } = setup()
  pass(1_000)
  get('a', K, { version: undefined, ageMs: 0 })
  value(K, 'v1', { askedAt: now() - 5 })
  expect(sent('a')).toEqual(['value v1'])
})

test('a fetch that two workers died over has failed, and says nothing of the backend', () => {
  const { watch, lose, take, asked, primary, pass } = setup({ random: () => 1 })
  for (let id = 0; id < 30; id++) {
    watch('a', `doc:${id}`)
    lose(`doc:${id}`)
    lose(`doc:${id}`)
  }
  const answers = take('a')
  expect(answers).toHaveLength(30)
  for (const answer of answers) expect(answer).toMatchObject({ code: 'fetcher_timeout', retryAfterMs: 250 })
  expect(primary.sources.get('doc')?.breaker.isOpen()).toBe(false)
  expect(asked(K)).toBe(2)
  pass(300)
  expect(asked(K)).toBe(3)
})

test('a lease says whether a delta can be of use: not for a get, but also for a link that left a moment ago', () => {
  const { watch, onUnwatch, get, onRefresh, value, lease, pass } = setup({
    namespaces: { doc: { maxAgeMs: 0, refreshMs: 0 } },
  })
  const isOfUse = () => lease(K)?.message.delta
  get('a', K)
  expect(isOfUse()).toBe(false)
  watch('b', K) // too late for this one
  value(K, 'v1')
  onRefresh(K)
  expect(isOfUse()).toBe(true)
  value(K, 'v2')
  onUnwatch('b', K)
  onRefresh(K)
  expect(isOfUse()).toBe(true)
  value(K, 'v3')
  pass(1_020)
  get('a', K)
  expect(isOfUse()).toBe(false)
})

test('a namespace with a body is asked by POST, without conditions', () => {
  const { watch, value, lease, pass } = setup({ namespaces: { doc: { bodyFor: id => `{"id":"${id}"}` } } })
  watch('a', K)
  expect(lease(K)?.body).toBe('{"id":"1"}')
  value(K, 'v1', { etag: '"1"' } as object)
  pass(1_020)
  expect(lease(K)).toMatchObject({ message: { version: 'v1', etag: undefined }, body: '{"id":"1"}' })
})
