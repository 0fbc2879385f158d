import { setup } from './test-support.js'

const K = 'doc:1'

describe('told that a key changed', () => {
  test('a watched key is asked again at once, as a refresh', () => {
    const { watch, value, onRefresh, told, lease } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    watch('a', K)
    value(K, 'v1')
    told('a')
    onRefresh(K)
    expect(lease(K)?.fetch.lane).toBe('refresh')
    value(K, 'v2')
    expect(told('a')).toEqual(['value v2'])
  })

  test('during a fetch, one more follows it however often that is said', () => {
    const { watch, value, onRefresh, told, asked, pass } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    watch('a', K)
    onRefresh(K)
    onRefresh(K)
    value(K, 'v1')
    expect(told('a')).toEqual(['value v1'])
    onRefresh(K)
    value(K, 'v2')
    value(K, 'v3')
    expect(told('a')).toEqual(['value v3'])
    pass(60_000)
    expect(asked(K)).toBe(3)
  })

  test('while the fetch still waits for its turn, that one will do', () => {
    const { watch, value, onRefresh, asked } = setup({ inFlightMax: 1, namespaces: { doc: { refreshMs: 0 } } })
    watch('a', 'doc:first')
    watch('a', K)
    onRefresh(K)
    value('doc:first', 'v1')
    value(K, 'v1')
    expect(asked(K)).toBe(1)
  })

  test('what is held of a key nobody watches is no good any more', () => {
    const { get, value, current, onRefresh, told, asked, watch } = setup()
    get('a', K)
    value(K, 'v1')
    told('a')
    onRefresh(K)
    expect(asked(K)).toBe(1)
    get('a', K)
    expect(asked(K)).toBe(2)
    current(K)
    expect(told('a')).toEqual(['value v1'])
    get('a', K)
    expect(told('a')).toEqual(['value v1'])
    onRefresh(K)
    watch('b', K)
    expect(told('b')).toEqual([])
    expect(asked(K)).toBe(3)
  })

  test('while it is fetched for somebody who does not watch, what comes is no good for the next', () => {
    const { get, value, onRefresh, told, asked } = setup()
    get('a', K)
    onRefresh(K)
    value(K, 'v1')
    expect(told('a')).toEqual(['value v1'])
    // The fetch that followed is for whoever may want it; or the key is marked.
    get('b', K)
    expect(asked(K)).toBe(2)
    value(K, 'v2')
    expect(told('b')).toEqual(['value v2'])
  })

  test('a key nothing is known of costs nothing', () => {
    const { onRefresh, primary } = setup()
    onRefresh(K)
    onRefresh('no key at all')
    expect(primary.table.stats().keys).toBe(0)
  })
})

describe('a failed try', () => {
  test('of a cold key is told at once, with when it is tried again', () => {
    const { watch, fail, take, pass, asked } = setup({ random: () => 1 })
    watch('a', K)
    pass(30)
    fail(K, 'backend_error')
    expect(take('a')).toEqual([
      { type: 'failed', key: K, code: 'backend_error', message: 'backend_error', ageMs: 30, retryAfterMs: 250 },
    ])
    pass(240)
    expect(asked(K)).toBe(1)
    pass(20)
    expect(asked(K)).toBe(2)
  })

  test('is told to every watcher, each one; success ends it, by `current` where nothing changed', () => {
    const { watch, value, fail, current, told, pass, asked } = setup()
    watch('a', K)
    watch('b', K)
    value(K, 'v1')
    told('a')
    told('b')
    pass(510)
    fail(K, 'backend_timeout')
    expect(told('a')).toEqual(['backend_timeout'])
    pass(300)
    fail(K, 'backend_error')
    expect(told('a')).toEqual(['backend_error'])
    expect(told('b')).toEqual(['backend_error']) // slow: the latest alone
    pass(600)
    expect(asked(K)).toBe(4)
    current(K)
    expect(told('a')).toEqual(['current v1'])
    expect(told('b')).toEqual(['current v1'])
  })

  test('that a link was not sent before the next success is not sent at all', () => {
    const { watch, value, fail, told, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    told('a')
    pass(510)
    fail(K, 'backend_error')
    pass(300)
    value(K, 'v2')
    expect(told('a')).toEqual(['value v2'])
  })

  test('answers gets from memory until the next one, so that nobody gets around the backoff', () => {
    const { get, fail, take, pass, asked, value, told } = setup({ random: () => 1 })
    get('a', K)
    fail(K, 'backend_unreachable')
    expect(take('a')).toMatchObject([{ code: 'backend_unreachable', retryAfterMs: 250 }])
    for (let i = 0; i < 100; i++) {
      pass(2)
      get('b', K)
      expect(take('b')).toMatchObject([{ code: 'backend_unreachable', retryAfterMs: 250 - 2 * (i + 1) }])
    }
    expect(asked(K)).toBe(1)
    pass(60)
    get('b', K)
    expect(asked(K)).toBe(2)
    fail(K, 'backend_unreachable')
    expect(take('b')).toMatchObject([{ retryAfterMs: 500 }])
    // Nobody watches: nothing is tried by itself.
    pass(60_000)
    expect(asked(K)).toBe(2)
    get('b', K)
    value(K, 'v1')
    expect(told('b')).toEqual(['value v1'])
  })

  test('of a key a get found is told to one who comes to watch, and the key is tried from then on', () => {
    const { get, watch, fail, take, pass, asked } = setup({ random: () => 1 })
    get('a', K)
    fail(K, 'backend_error')
    pass(50)
    watch('b', K)
    expect(take('b')).toMatchObject([{ code: 'backend_error', retryAfterMs: 200 }])
    expect(asked(K)).toBe(1)
    pass(220)
    expect(asked(K)).toBe(2)
  })

  test('leaves a value that is fresh enough good for gets', () => {
    const { watch, get, value, fail, told, pass, onRefresh } = setup({
      namespaces: { doc: { maxAgeMs: 60_000, refreshMs: 500 } },
    })
    watch('a', K)
    value(K, 'v1')
    told('a')
    pass(300)
    fail(K, 'backend_error')
    told('a')
    get('b', K)
    expect(told('b')).toEqual(['value v1'])
    // The gateway that watches, too, takes that for good news; it is told again.
    get('a', K)
    expect(told('a')).toEqual(['value v1', 'backend_error'])
    pass(250)
    onRefresh(K)
    fail(K, 'backend_error')
    get('b', K)
    expect(told('b')).toEqual(['backend_error'])
  })

  test('with Retry-After leaves the backend alone for that long, whatever it is told', () => {
    const { watch, value, fail, take, pass, asked, onRefresh, get, told } = setup()
    watch('a', K)
    value(K, 'v1')
    take('a')
    pass(510)
    fail(K, 'backend_throttled', { retryAfterMs: 7_000 })
    expect(take('a')).toMatchObject([{ code: 'backend_throttled', retryAfterMs: 7_000 }])
    pass(6_900)
    onRefresh(K)
    get('b', K)
    expect(told('b')).toEqual(['backend_throttled'])
    expect(asked(K)).toBe(2)
    pass(120)
    expect(asked(K)).toBe(3)
  })

  test('a `current` without anything held is no answer', () => {
    const { watch, current, told } = setup()
    watch('a', K)
    current(K)
    expect(told('a')).toEqual(['invalid_content'])
  })
})

describe('that the backend has nothing (404, 410)', () => {
  test('is an answer, kept as long as a value', () => {
    const { get, fail, take, pass, asked } = setup()
    get('a', K)
    fail(K, 'not_found', { maxAgeMs: 400 })
    expect(take('a')).toEqual([
      { type: 'failed', key: K, code: 'not_found', message: 'not_found', ageMs: 0, maxAgeMs: 400 },
    ])
    pass(390)
    get('a', K)
    expect(take('a')).toMatchObject([{ code: 'not_found', ageMs: 390 }])
    pass(20)
    get('a', K)
    expect(asked(K)).toBe(2)
  })

  test('is refreshed at the normal period while somebody watches', () => {
    const { watch, fail, take, pass, asked, lease } = setup()
    watch('a', K)
    fail(K, 'not_found')
    expect(take('a')).toMatchObject([{ code: 'not_found', maxAgeMs: 1_000, retryAfterMs: 500 }])
    pass(510)
    expect(asked(K)).toBe(2)
    expect(lease(K)?.fetch.lane).toBe('refresh')
    fail(K, 'not_found')
    expect(take('a')).toMatchObject([{ code: 'not_found', retryAfterMs: 990 }])
    pass(5_000, () => lease(K) && fail(K, 'not_found'))
    expect(asked(K)).toBe(7)
  })

  test('takes the value away, and whoever watches is sent it whole when it is there again', () => {
    const { watch, value, fail, told, pass, lease } = setup()
    watch('a', K)
    value(K, 'v1', { etag: '"1"' })
    told('a')
    pass(510)
    fail(K, 'not_found')
    expect(told('a')).toEqual(['not_found'])
    watch('b', K)
    expect(told('b')).toEqual(['not_found'])
    pass(1_000)
    expect(lease(K)?.message.etag).toBeUndefined()
    value(K, 'v1')
    expect(told('a')).toEqual(['value v1'])
    expect(told('b')).toEqual(['value v1'])
  })

  test('is not told to one who holds something asked for later', () => {
    const { watch, fail, value, told, pass } = setup({ namespaces: { doc: { refreshMs: 60_000 } } })
    watch('a', K)
    fail(K, 'not_found')
    pass(1_000)
    watch('b', K, { version: 'v1', ageMs: 500 })
    expect(told('b')).toEqual([])
    value(K, 'v1')
    expect(told('b')).toEqual(['current v1'])
    expect(told('a')).toEqual(['value v1'])
  })

  test('comes without `retryAfterMs` where it is only asked again when told', () => {
    const { watch, fail, take, pass, asked, onRefresh, value, told } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    watch('a', K)
    fail(K, 'not_found')
    expect(take('a')).toMatchObject([{ code: 'not_found', maxAgeMs: 1_000, retryAfterMs: undefined }])
    pass(60_000)
    expect(asked(K)).toBe(1)
    onRefresh(K)
    value(K, 'v1')
    expect(told('a')).toEqual(['value v1'])
  })
})
