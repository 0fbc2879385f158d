import { setup } from '../test-support.ts'

const K = 'doc:1'

describe('a watch', () => {
  test('of a gateway whose value is as young as the fetch under way is sent what the next one brings, at once', () => {
    const { watch, value, pass, leased, sent } = setup({ namespaces: { doc: { refreshMs: 60_000 } } })
    watch('b', K)
    value(K, 'v1')
    pass(60_000)
    expect(leased()).toEqual([K])
    pass(5)
    watch('a', K, { version: 'v1', ageMs: 2 })
    expect(sent('a')).toEqual(['current v1'])
    value(K, 'v2')
    expect(sent('a')).toEqual([])
    value(K, 'v2')
    expect(sent('a')).toEqual(['value v2'])
  })

  test('of a key nothing is held of has it fetched, and is sent the value', () => {
    const { watch, value, take, leased, lease, pass } = setup()
    watch('a', K)
    expect(leased()).toEqual([K])
    expect(lease(K)?.message).toEqual({
      key: K,
      url: 'http://backend/doc/1',
      headers: { authorization: 'secret' },
      timeoutMs: 2_000,
      bytesMax: 1_000_000,
      delta: true,
    })
    expect(lease(K)?.fetch.lane).toBe('cold')
    pass(40)
    value(K, 'v1', { body: Buffer.from('{}') })
    pass(20)
    expect(take('a')).toEqual([
      {
        type: 'value',
        key: K,
        version: 'v1',
        order: expect.any(Number),
        ageMs: 60, // counted from when the backend was asked, not from when it answered
        maxAgeMs: 1_000,
        store: true,
        contentType: 'application/json',
        format: 'json',
        body: Buffer.from('{}'),
      },
    ])
    expect(take('a')).toEqual([])
  })

  test('joins a fetch under way', () => {
    const { watch, value, sent, asked, met, refused } = setup()
    watch('a', K)
    watch('b', K)
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    expect(sent('b')).toEqual(['value v1'])
    expect(asked(K)).toBe(1)
    expect([met, refused]).toEqual([{ memory: 0, plan: 0, coalesced: 1, fetched: 1 }, []])
  })

  test('of a key that is kept fresh is answered from memory', () => {
    const { watch, value, sent, asked, pass } = setup({ namespaces: { doc: { refreshMs: 60_000 } } })
    watch('a', K)
    value(K, 'v1')
    pass(10_000)
    watch('b', K)
    expect(sent('b')).toEqual(['value v1'])
    expect(asked(K)).toBe(1)
  })

  test('is sent `current` where the gateway holds the version that is kept fresh', () => {
    const { watch, value, take, asked, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    pass(100)
    watch('b', K, { version: 'v1', ageMs: 5 })
    expect(take('b')).toEqual([
      { type: 'current', key: K, version: 'v1', order: expect.any(Number), ageMs: 100, maxAgeMs: 1_000, store: true },
    ])
    expect(asked(K)).toBe(1)
  })

  test('of a key nobody watched is not sent `current` of what is older than maxAge, though the gateway holds it', () => {
    const { get, watch, current, value, take, sent, asked, pass } = setup()
    get('a', K)
    value(K, 'v1')
    take('a')
    pass(1_001)
    watch('a', K, { version: 'v1', ageMs: 1_001 })
    expect(sent('a')).toEqual([])
    current(K)
    expect(take('a')).toMatchObject([{ type: 'current', version: 'v1', ageMs: 0 }])
    expect(asked(K)).toBe(2)
  })

  test('is not sent `current` of what a refresh said has changed', () => {
    const { get, watch, onRefresh, value, take, sent } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    get('a', K)
    value(K, 'v1')
    take('a')
    onRefresh(K)
    watch('a', K, { version: 'v1', ageMs: 10 })
    expect(sent('a')).toEqual([])
    value(K, 'v2')
    expect(sent('a')).toEqual(['value v2'])
  })

  test('is never sent something older than what the gateway holds', () => {
    const { watch, value, sent, asked, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    pass(100)
    // Another node was asked later than this one, and its version is another.
    watch('b', K, { version: 'v2', ageMs: 50 })
    expect(sent('b')).toEqual([])
    expect(asked(K)).toBe(2)
    value(K, 'v2')
    expect(sent('b')).toEqual(['current v2'])
    expect(sent('a')).toEqual(['value v2'])
  })

  test('of a failing key is sent the failure and not an older value, though that is fresh', () => {
    const { watch, get, value, fail, sent, pass } = setup({ namespaces: { doc: { maxAgeMs: 10_000 } } })
    watch('a', K)
    value(K, 'v1')
    pass(1_100)
    fail(K, 'backend_error')
    get('b', K, { version: 'v2', ageMs: 500 })
    expect(sent('b')).toEqual(['backend_error'])
  })

  test('of a gateway that takes nothing from before now is not answered from memory', () => {
    const { watch, value, get, sent, asked, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    pass(20)
    get('b', K, { version: undefined, ageMs: 0 })
    expect([sent('b'), asked(K)]).toEqual([[], 2])
    value(K, 'v1')
    expect(sent('b')).toEqual(['value v1'])
  })

  test('is not sent an older value where the gateway was told that there is none', () => {
    const { watch, value, fail, get, sent, asked, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    pass(100)
    watch('b', K, { version: undefined, ageMs: 50 })
    get('c', K, { version: undefined, ageMs: 50 })
    expect([...sent('b'), ...sent('c')]).toEqual([])
    expect(asked(K)).toBe(2)
    fail(K, 'not_found')
    expect([...sent('b'), ...sent('c')]).toEqual(['not_found', 'not_found'])
    // The same state again is good for its time, though it took a while to the gateway.
    get('c', K, { version: undefined, ageMs: -5 })
    expect(sent('c')).toEqual(['not_found'])
    expect(asked(K)).toBe(2)
  })

  test('is sent what is later than what the gateway holds', () => {
    const { watch, value, sent, asked, pass } = setup()
    watch('a', K)
    value(K, 'v2')
    pass(100)
    watch('b', K, { version: 'v1', ageMs: 150 })
    expect(sent('b')).toEqual(['value v2'])
    expect(asked(K)).toBe(1)
  })

  test('that brings something later than a fetch under way has another follow it', () => {
    const { watch, value, sent, asked, pass } = setup()
    watch('a', K)
    pass(500)
    watch('b', K, { version: 'v2', ageMs: 100 })
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    expect(sent('b')).toEqual([])
    expect(asked(K)).toBe(2)
    value(K, 'v3')
    expect(sent('b')).toEqual(['value v3'])
  })

  test('that brings a version to a node that holds nothing is a refresh', () => {
    const { watch, current, value, sent, lease } = setup()
    watch('a', K, { version: 'v1', ageMs: 300 })
    expect(lease(K)?.fetch.lane).toBe('refresh')
    value(K, 'v1')
    expect(sent('a')).toEqual(['current v1'])
    expect(() => current(K)).toThrow('not leased')
  })

  test('of a key this node comes to own asks the backend once, though it holds the same version', () => {
    const { watch, get, value, current, sent, asked, pass } = setup({ namespaces: { doc: { refreshMs: 60_000 } } })
    get('a', K)
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    pass(200)
    // The node that owned it may have heard of a change and died.
    watch('a', K, { version: 'v1', ageMs: 300 })
    expect(sent('a')).toEqual(['current v1'])
    expect(asked(K)).toBe(2)
    pass(20)
    current(K)
    expect(sent('a')).toEqual(['current v1'])
  })

  test('of a key somebody got a moment ago is answered from memory, and refreshed before that is a period old', () => {
    const { watch, get, value, sent, asked, pass } = setup({ random: () => 0.9 })
    get('a', K)
    value(K, 'v1')
    sent('a')
    pass(500)
    watch('b', K)
    expect(sent('b')).toEqual(['value v1'])
    expect(asked(K)).toBe(1)
    pass(390)
    expect(asked(K)).toBe(1)
    pass(30)
    expect(asked(K)).toBe(2)
  })

  test('of a key that is never refreshed by itself asks once, though memory answers', () => {
    const { watch, get, value, sent, asked, lease } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    get('a', K)
    value(K, 'v1')
    sent('a')
    watch('b', K)
    expect(sent('b')).toEqual(['value v1'])
    expect(asked(K)).toBe(2)
    expect(lease(K)?.fetch.lane).toBe('refresh')
  })

  test('of a key that is held but too old has it fetched, by its validators', () => {
    const { watch, get, value, current, sent, pass, lease } = setup()
    get('a', K)
    value(K, 'v1', { etag: '"1"', lastModified: 'then' })
    sent('a')
    pass(1_001)
    watch('b', K)
    expect(sent('b')).toEqual([])
    expect(lease(K)).toMatchObject({
      message: { version: 'v1', etag: '"1"', lastModified: 'then' },
      fetch: { lane: 'cold' },
    })
    current(K)
    expect(sent('b')).toEqual(['value v1'])
  })

  test('said again by the same link is answered again', () => {
    const { watch, value, sent, asked } = setup()
    watch('a', K)
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    watch('a', K)
    expect(sent('a')).toEqual(['value v1'])
    watch('a', K, { version: 'v1', ageMs: 0 })
    expect(sent('a')).toEqual(['current v1'])
    expect(asked(K)).toBe(1)
  })

  test('of a key that failed is sent the value held, then the failure', () => {
    const { watch, value, fail, sent, pass } = setup({ namespaces: { doc: { refreshMs: 2_000 } } })
    watch('a', K)
    value(K, 'v1')
    pass(1_100)
    fail(K, 'backend_error')
    watch('b', K)
    expect(sent('b')).toEqual(['value v1', 'backend_error'])
    watch('c', K, { version: 'v1', ageMs: 10 })
    expect(sent('c')).toEqual(['backend_error'])
  })
})

describe('a key that cannot be served', () => {
  test.each([
    ['no-key', 'bad_key'],
    ['doc:../../admin', 'bad_key'],
    ['doc:a|b', 'bad_key'],
    ['doc:', 'bad_key'],
    ['doc:1?x=http://other/', 'bad_key'],
    ['other:1', 'unknown_namespace'],
    ['__proto__:1', 'bad_key'],
    ['constructor:1', 'unknown_namespace'],
  ])('%s is refused with %s, for good, and nobody is asked', (key, code) => {
    const { watch, get, take, leased, primary, refused } = setup()
    watch('a', key)
    get('b', key)
    for (const link of ['a', 'b']) {
      const answers = take(link)
      expect(answers).toMatchObject([{ type: 'failed', key, code, ageMs: 0 }])
      expect(answers[0]).not.toHaveProperty('retryAfterMs')
    }
    expect(take('a')).toEqual([])
    expect(leased()).toEqual([])
    expect(primary.table.stats().keys).toBe(0)
    expect(refused).toEqual([code, code])
  })

  test('is not sent to a link that does not want it any more, or is gone', () => {
    const { watch, get, onUnwatch, cancelGet, onLinkLost, take } = setup()
    watch('a', 'other:1')
    onUnwatch('a', 'other:1')
    get('b', 'other:1')
    cancelGet('b', 'other:1')
    watch('c', 'other:1')
    onLinkLost('c')
    for (const link of ['a', 'b', 'c']) expect(take(link)).toEqual([])
  })

  test('is sent to a link that watches it no more and still waits for it, or the other way round', () => {
    const { watch, get, onUnwatch, cancelGet, take } = setup()
    for (const link of ['a', 'b']) {
      watch(link, 'other:1')
      get(link, 'other:1')
    }
    onUnwatch('a', 'other:1')
    cancelGet('b', 'other:1')
    for (const link of ['a', 'b']) expect(take(link)).toMatchObject([{ code: 'unknown_namespace' }])
  })
})

test('a change is measured from its coming to its being sent, for each gateway; what is no change is not', () => {
  const { watch, get, value, current, take, pass, relayed } = setup()
  watch('a', K)
  watch('b', K)
  value(K, 'v1')
  for (const link of ['a', 'b']) expect(take(link)[0]).not.toHaveProperty('delayMs')
  pass(1_000)
  current(K)
  for (const link of ['a', 'b']) take(link)
  get('c', K)
  take('c')
  expect(relayed).toEqual([])

  pass(1_000)
  value(K, 'v2')
  expect(take('a')).toMatchObject([{ delayMs: 0 }])
  pass(40) // b's link has no credit
  expect(take('b')).toMatchObject([{ delayMs: 40 }])
  expect(relayed).toEqual([0, 40])
})
