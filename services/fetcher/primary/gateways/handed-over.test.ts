import { ENTRY_BYTES } from '../keys/key-table.ts'
import { keysOf, setup, watched } from '../test-support.ts'

const K = 'doc:1'

test('a value handed over is sent to all who watch, and the backend is not asked for it', () => {
  const { watch, handOver, sent, asked, takings, primary } = watched([K])
  watch('b', K)
  sent('b')
  expect(handOver(K, 'v2')).toEqual({ outcome: 'taken' })
  expect([sent('a'), sent('b')]).toEqual([['value v2'], ['value v2']])
  expect(asked(K)).toBe(1)
  expect(takings).toEqual(['taken'])
  expect(primary.table.get(K)?.held.order).toBeGreaterThan(0)
})

test('its number among the changes of the key is higher than that of the value before', () => {
  const { handOver, take } = watched([K])
  const orders = ['v2', 'v1', 'v2'].map(version => {
    handOver(K, version)
    return (take('a')[0] as { order: number }).order
  })
  expect(orders).toEqual([...orders].sort((one, other) => one - other))
  expect(new Set(orders).size).toBe(3)
})

test('a key that is removed has no value, and its viewers are told', () => {
  const { handOver, sent } = watched([K])
  handOver(K, undefined)
  expect(sent('a')).toEqual(['not_found'])
  handOver(K, 'v2')
  expect(sent('a')).toEqual(['value v2'])
})

describe('a fetch under way', () => {
  test('that began before brings nothing any more', () => {
    const { handOver, onRefresh, value, sent, asked } = watched([K])
    onRefresh(K)
    handOver(K, 'v2')
    expect(sent('a')).toEqual(['value v2'])
    value(K, 'v1.5')
    expect(sent('a')).toEqual([])
    expect(asked(K)).toBe(2)
  })

  test('that began before and fails says nothing', () => {
    const { handOver, onRefresh, fail, sent } = watched([K])
    onRefresh(K)
    handOver(K, 'v2')
    sent('a')
    fail(K, 'backend_error')
    expect(sent('a')).toEqual([])
  })

  test('that began before brings back no key that was removed', () => {
    const { handOver, onRefresh, value, sent } = watched([K])
    onRefresh(K)
    handOver(K, undefined)
    value(K, 'v2')
    expect(sent('a')).toEqual(['not_found'])
  })

  test("that begins later is the key's value again", () => {
    const { handOver, onRefresh, value, sent } = watched([K])
    handOver(K, 'v2')
    onRefresh(K)
    value(K, 'v3')
    expect(sent('a')).toEqual(['value v3'])
  })

  test('that is leased a second time since begins later', () => {
    const { handOver, onRefresh, lose, value, sent } = watched([K])
    onRefresh(K)
    handOver(K, 'v2')
    lose(K)
    value(K, 'v3')
    expect(sent('a')).toEqual(['value v3'])
  })

  test('is followed by another where the backend said so', () => {
    const { handOver, onRefresh, value, sent, asked } = watched([K])
    onRefresh(K)
    handOver(K, 'v2')
    onRefresh(K)
    value(K, 'v1')
    value(K, 'v3')
    expect(sent('a')).toEqual(['value v3'])
    expect(asked(K)).toBe(3)
  })

  test('leaves nobody without an answer', () => {
    const { handOver, get, value, sent } = setup({ namespaces: { doc: { maxAgeMs: 0 } } })
    get('a', K)
    handOver(K, 'v2')
    expect(sent('a')).toEqual(['value v2'])
    get('b', K)
    value(K, 'v1')
    expect(sent('b')).toEqual(['value v2'])
  })
})

test('a key that fails has a value again, and is asked for at its next refresh', () => {
  const { watch, handOver, fail, sent, asked, pass } = setup()
  watch('a', K)
  fail(K, 'backend_error')
  expect(sent('a')).toEqual(['backend_error'])
  handOver(K, 'v1')
  expect(sent('a')).toEqual(['value v1'])
  pass(1_000)
  expect(asked(K)).toBe(2)
})

test('it is held for those who come later, while it is young enough', () => {
  const { handOver, get, sent, asked, pass } = setup()
  handOver(K, 'v1')
  get('a', K)
  expect(sent('a')).toEqual(['value v1'])
  pass(1_010)
  get('a', K)
  expect(asked(K)).toBe(1)
})

describe('with the numbers of a backend', () => {
  test('a lower one than before is ignored, the same one and a higher one are taken', () => {
    const { handOver, sent, takings } = watched([K])
    expect(handOver(K, 'v7', 7)).toEqual({ outcome: 'taken' })
    expect(handOver(K, 'v5', 5)).toEqual({ outcome: 'older', rank: 7 })
    expect(sent('a')).toEqual(['value v7'])
    expect(handOver(K, 'v7', 7)).toEqual({ outcome: 'taken' })
    expect(sent('a')).toEqual([])
    expect(handOver(K, 'v8', 8)).toEqual({ outcome: 'taken' })
    expect(sent('a')).toEqual(['value v8'])
    expect(takings).toEqual(['taken', 'older', 'taken', 'taken'])
  })

  test('a removal has a place among them, too', () => {
    const { handOver, sent } = watched([K])
    handOver(K, undefined, 7)
    expect(handOver(K, 'v6', 6)).toEqual({ outcome: 'older', rank: 7 })
    expect(sent('a')).toEqual(['not_found'])
  })

  test('a value without one is taken when it comes, and forgets none', () => {
    const { handOver } = watched([K])
    handOver(K, 'v7', 7)
    expect(handOver(K, 'v?')).toEqual({ outcome: 'taken' })
    expect(handOver(K, 'v6', 6)).toEqual({ outcome: 'older', rank: 7 })
  })
})

describe('a node that takes over', () => {
  const namespaces = { doc: { refreshMs: 0, maxAgeMs: 60_000 } }

  test('hears from gateways which number was the highest', () => {
    const { handOver, take } = watched([K])
    handOver(K, 'v7', 7)
    expect(take('a')).toMatchObject([{ version: 'v7', rank: 7 }])
    const next = setup({ namespaces })
    next.watch('a', K, { version: 'v7', ageMs: 5, rank: 7 })
    expect(next.handOver(K, 'v6', 6)).toEqual({ outcome: 'older', rank: 7 })
    next.value(K, 'v8')
    expect(next.take('a')).toMatchObject([{ version: 'v8', rank: 7 }])
  })

  test('asks the backend where it took an older one before it heard', () => {
    const { handOver, watch, lease, value, sent } = setup({ namespaces })
    expect(handOver(K, 'v6', 6)).toEqual({ outcome: 'taken' })
    watch('a', K, { version: 'v7', ageMs: 5, rank: 7 })
    expect(sent('a')).toEqual([])
    expect(lease(K)).toBeDefined()
    value(K, 'v7')
    expect(sent('a')).toEqual(['current v7'])
  })

  test('takes none that may be repeated, as the node before may have taken a newer one, and keeps its number', () => {
    const { handOver, watch, onRefresh, value, sent, take, takings } = watched([K])
    expect(handOver(K, 'v6', 6, true)).toMatchObject({ code: 'fetcher_unavailable' })
    watch('b', K)
    expect([sent('a'), sent('b')]).toEqual([[], ['value v1']])
    onRefresh(K)
    value(K, 'v7')
    expect(take('a')).toMatchObject([{ version: 'v7', rank: 6 }])
    expect(handOver(K, 'v5', 5, true)).toEqual({ outcome: 'older', rank: 6 })
    expect(handOver(K, 'v5', 5)).toEqual({ outcome: 'older', rank: 6 })
    expect(takings).toEqual(['refused', 'older', 'older'])
  })

  test('keeps nothing of a repeated value that nobody watches', () => {
    const { handOver, primary } = setup({ namespaces })
    handOver(K, 'v6', 6, true)
    expect(primary.table.get(K)).toBeUndefined()
  })

  test('believes what it has where gateways know of no higher one', () => {
    const { handOver, watch, sent, asked } = setup({ namespaces })
    handOver(K, 'v8', 8)
    watch('a', K, { version: 'v7', ageMs: 5, rank: 7 })
    expect(sent('a')).toEqual(['value v8'])
    expect(asked(K)).toBe(1)
  })
})

test('where there is no room nothing changes, and the backend is told so', () => {
  const { handOver, watch, value, sent, takings } = setup({ cacheBytesMax: 5_000 })
  watch('a', K)
  value(K, 'v1')
  sent('a')
  expect(handOver(K, 'x'.repeat(5_000))).toMatchObject({ code: 'capacity', retryAfterMs: 5_000 })
  expect(sent('a')).toEqual([])
  expect(handOver('doc:2', 'x'.repeat(5_000))).toMatchObject({ code: 'capacity' })
  expect(takings).toEqual(['refused', 'refused'])
})

test('a user who holds too much keeps no value of the backend out', () => {
  const { onWatch, handOver, sent } = setup({ cacheBytesMax: 900 * ENTRY_BYTES, credit: 0 })
  for (const key of keysOf(100)) onWatch('a', { key, payer: 'a1.u1' })
  expect(handOver('doc:0', 'x'.repeat(ENTRY_BYTES))).toEqual({ outcome: 'taken' })
  expect(sent('a')).toEqual([`value ${'x'.repeat(ENTRY_BYTES)}`])
})

test.each([
  ['doc', 'bad_key'],
  ['other:1', 'unknown_namespace'],
  ['doc:1/2', 'unknown_namespace'],
  ['own:me', 'unknown_namespace'],
])('a gateway with another configuration is told so of %s', (key, code) => {
  const { handOver } = setup({ namespaces: { doc: {}, own: { isPerUser: true } } })
  expect(handOver(key, 'v1')).toMatchObject({ code })
})

test('a key that is watched while a fetch from before the value is still under way is refreshed from then on', () => {
  const primary = setup({ namespaces: { doc: { maxAgeMs: 100 } } })
  primary.get('a', 'doc:1')
  primary.handOver('doc:1', 'v2')
  primary.take('a')
  primary.pass(500)
  primary.watch('a', 'doc:1', { version: 'v2', ageMs: 60_000 })
  primary.value('doc:1', 'v1')
  primary.pass(1_000)
  expect(primary.leased()).toEqual(['doc:1'])
})
