import { setup } from '../test-support.ts'

const K = 'doc:1'

describe('a get', () => {
  test('is answered from memory up to the age the namespace allows', () => {
    const { get, value, sent, asked, pass } = setup()
    get('a', K)
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    pass(1_000)
    get('a', K)
    expect(sent('a')).toEqual(['value v1'])
    expect(asked(K)).toBe(1)
    pass(10)
    get('a', K)
    expect(sent('a')).toEqual([])
    expect(asked(K)).toBe(2)
  })

  test('is answered from memory no longer than the backend allows, which cannot lengthen it', () => {
    const { get, value, current, take, asked, pass } = setup()
    get('a', K)
    value(K, 'v1', { maxAgeMs: 300 })
    expect(take('a')).toMatchObject([{ maxAgeMs: 300 }])
    pass(310)
    get('a', K)
    expect(asked(K)).toBe(2)
    current(K, { maxAgeMs: 86_400_000 })
    expect(take('a')).toMatchObject([{ maxAgeMs: 1_000 }])
  })

  test('is stored and fresh as before where a 304 says nothing of that', () => {
    const { watch, value, current, take, onRefresh, pass } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    watch('a', K)
    value(K, 'v1', { store: false, maxAgeMs: 300 })
    expect(take('a')).toMatchObject([{ store: false, maxAgeMs: 300 }])
    pass(10)
    onRefresh(K)
    current(K, { store: undefined })
    expect(take('a')).toMatchObject([{ type: 'current', store: false, maxAgeMs: 300 }])
    pass(10)
    onRefresh(K)
    current(K, { store: undefined, maxAgeMs: 0 })
    expect(take('a')).toMatchObject([{ store: false, maxAgeMs: 0 }])
    pass(10)
    onRefresh(K)
    current(K, { store: true })
    expect(take('a')).toMatchObject([{ store: true, maxAgeMs: 1_000 }])
  })

  test('of a watched key that is older than that asks the backend, in the cold lane', () => {
    const { watch, get, value, sent, asked, pass, lease } = setup({
      namespaces: { doc: { maxAgeMs: 100, refreshMs: 60_000 } },
    })
    watch('a', K)
    value(K, 'v1')
    sent('a')
    pass(110)
    get('b', K)
    expect(asked(K)).toBe(2)
    expect(lease(K)?.fetch.lane).toBe('cold')
    value(K, 'v2')
    expect(sent('b')).toEqual(['value v2'])
    expect(sent('a')).toEqual(['value v2'])
  })

  test('is sent `current` where the gateway holds the version', () => {
    const { get, value, current, sent, pass } = setup()
    get('a', K)
    value(K, 'v1')
    sent('a')
    get('b', K, { version: 'v1', ageMs: 2_000 })
    expect(sent('b')).toEqual(['current v1'])
    pass(2_000)
    get('c', K, { version: 'v1', ageMs: 2_000 })
    current(K)
    expect(sent('c')).toEqual(['current v1'])
  })

  test('is over with its first answer', () => {
    const { get, value, sent, pass, watch } = setup()
    get('a', K)
    value(K, 'v1')
    sent('a')
    watch('b', K)
    pass(1_510)
    value(K, 'v2')
    expect(sent('b')).toEqual(['value v2'])
    expect(sent('a')).toEqual([])
  })

  test('that is cancelled is not made where it still waits for its turn, and not answered', () => {
    const { get, cancelGet, value, sent, asked, primary } = setup({ inFlightMax: 1 })
    get('a', 'doc:first')
    get('a', K)
    cancelGet('a', K)
    cancelGet('a', 'doc:first')
    value('doc:first', 'v1')
    expect(sent('a')).toEqual([])
    expect(asked(K)).toBe(0)
    expect(primary.table.stats().keys).toBe(1) // the value fetched before is kept
  })

  test('moves a queued refresh of its key to the cold lane', () => {
    const { watch, get, value, leased, pass } = setup({ inFlightMax: 1 })
    for (const id of [1, 2, 3]) {
      watch('a', `doc:${id}`)
      value(`doc:${id}`, 'v1')
    }
    pass(1_510) // one refresh is under way, two wait
    get('b', 'doc:3')
    value(leased()[0], 'v2')
    expect(leased()).toEqual(['doc:3'])
  })

  test('counts as the gateway’s latest word on what it holds: bytes it let go of come again', () => {
    const { watch, get, value, sent } = setup()
    watch('a', K)
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    get('a', K)
    expect(sent('a')).toEqual(['value v1'])
  })

  test('is not answered with something older than what its gateway holds', () => {
    const { get, value, sent, pass } = setup()
    get('a', K)
    pass(500)
    get('b', K, { version: 'v2', ageMs: 100 })
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    expect(sent('b')).toEqual([])
    value(K, 'v3')
    expect(sent('b')).toEqual(['value v3'])
  })

  test('by a link that watches says what its gateway holds also where it fails: the bytes come when they can', () => {
    const { watch, get, value, fail, current, sent, pass } = setup({
      namespaces: { doc: { maxAgeMs: 0, refreshMs: 60_000 } },
    })
    watch('a', K)
    value(K, 'v1')
    sent('a')
    pass(100)
    get('a', K)
    fail(K, 'backend_error')
    expect(sent('a')).toEqual(['backend_error'])
    pass(200)
    current(K)
    expect(sent('a')).toEqual(['value v1'])
  })

  test('is not taken as answered by a state from before it', () => {
    const { watch, get, value, sent, pass } = setup({ namespaces: { doc: { maxAgeMs: 100, refreshMs: 60_000 } } })
    watch('a', K)
    value(K, 'v1')
    // The link has no credit, so v1 was not sent; meanwhile the gateway wants a state that is newer.
    pass(200)
    get('a', K)
    expect(sent('a')).toEqual([])
    value(K, 'v2')
    expect(sent('a')).toEqual(['value v2'])
    expect(sent('a')).toEqual([])
  })

  test('is answered though its link takes the answer much later', () => {
    const { get, value, take, pass, primary } = setup()
    get('a', K)
    value(K, 'v1', { store: false })
    pass(60_000)
    expect(take('a')).toMatchObject([{ type: 'value', version: 'v1', ageMs: 60_000, store: false }])
    expect(primary.table.stats().keys).toBe(0)
  })
})

describe('a slow link', () => {
  test('is sent the latest state alone, and `current` where that is what it was sent before', () => {
    const { watch, value, sent, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    for (const version of ['v2', 'v3', 'v4']) {
      pass(1_000 + (version === 'v2' ? 510 : 0))
      value(K, version)
    }
    expect(sent('a')).toEqual(['value v4'])
    pass(1_000)
    value(K, 'v5')
    pass(1_000)
    value(K, 'v4')
    expect(sent('a')).toEqual(['current v4'])
  })
})

describe('a delta', () => {
  const delta = Buffer.from('v1 to v2')
  /** `a` and `b` were sent v1; v2 came with a delta from it. */
  const changed = () => {
    const bench = setup({ namespaces: { doc: { refreshMs: 0 } } })
    for (const link of ['a', 'b']) bench.watch(link, K)
    bench.value(K, 'v1')
    for (const link of ['a', 'b']) bench.sent(link)
    bench.onRefresh(K)
    bench.value(K, 'v2', { deltaFrom: 'v1', delta })
    return bench
  }
  const withDelta = { type: 'value', version: 'v2', body: Buffer.from('v2'), delta: { from: 'v1', bytes: delta } }

  test('goes with the value to each link that was sent the version it starts from', () => {
    const { take } = changed()
    expect(take('a')).toMatchObject([withDelta])
    expect(take('b')).toMatchObject([withDelta])
  })

  test('goes to no link that holds something else, or nothing', () => {
    const { watch, get, take } = changed()
    watch('c', K)
    get('d', K)
    watch('e', K, { version: 'v0', ageMs: 9 })
    for (const link of ['c', 'd', 'e']) {
      const [answer] = take(link)
      expect(answer).toMatchObject({ type: 'value', version: 'v2' })
      expect(answer).toHaveProperty('delta', undefined)
    }
  })

  test('goes to a link that says it holds that version, be it for a watch or for one answer', () => {
    const { watch, get, take } = changed()
    watch('c', K, { version: 'v1', ageMs: 9 })
    get('d', K, { version: 'v1', ageMs: 9 })
    expect(take('c')).toMatchObject([withDelta])
    expect(take('d')).toMatchObject([withDelta])
  })

  test('does not outlive the next version, which a slow link is sent whole', () => {
    const { onRefresh, value, take } = changed()
    take('b')
    onRefresh(K)
    value(K, 'v3', { deltaFrom: 'v2', delta: Buffer.from('v2 to v3') })
    expect(take('a')[0]).toHaveProperty('delta', undefined)
    expect(take('b')).toMatchObject([{ version: 'v3', delta: { from: 'v2' } }])
    onRefresh(K)
    value(K, 'v4')
    expect(take('b')[0]).toHaveProperty('delta', undefined)
  })

  test('is still good where the value was confirmed meanwhile', () => {
    const { onRefresh, current, take } = changed()
    onRefresh(K)
    current(K)
    expect(take('a')).toMatchObject([withDelta])
  })
})
