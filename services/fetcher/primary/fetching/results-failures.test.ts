import { createContainment } from '@keycast/service'
import { setup } from '../test-support.ts'

const K = 'doc:1'

describe('a failed try', () => {
  test('of a cold key is sent at once, with when it is tried again', () => {
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

  test('is sent to every watcher, each time; success ends it, by `current` where nothing changed', () => {
    const { watch, value, fail, current, sent, pass, asked } = setup()
    watch('a', K)
    watch('b', K)
    value(K, 'v1')
    sent('a')
    sent('b')
    pass(510)
    fail(K, 'backend_timeout')
    expect(sent('a')).toEqual(['backend_timeout'])
    pass(300)
    fail(K, 'backend_error')
    expect(sent('a')).toEqual(['backend_error'])
    expect(sent('b')).toEqual(['backend_error']) // slow: the latest alone
    pass(600)
    expect(asked(K)).toBe(4)
    current(K)
    expect(sent('a')).toEqual(['current v1'])
    expect(sent('b')).toEqual(['current v1'])
  })

  test('that a link was not sent before the next success is not sent at all', () => {
    const { watch, value, fail, sent, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    sent('a')
    pass(510)
    fail(K, 'backend_error')
    pass(300)
    value(K, 'v2')
    expect(sent('a')).toEqual(['value v2'])
  })

  test('answers gets from memory until the next one, so that nobody gets around the backoff', () => {
    const { get, fail, take, pass, asked, value, sent } = setup({ random: () => 1 })
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
    // Nobody watches the key: it is not retried by itself.
    pass(60_000)
    expect(asked(K)).toBe(2)
    get('b', K)
    value(K, 'v1')
    expect(sent('b')).toEqual(['value v1'])
  })

  test('answers gets from memory also after the last viewer has left', () => {
    const { watch, onUnwatch, get, fail, sent, pass, asked } = setup({ random: () => 1 })
    watch('a', K)
    fail(K, 'backend_throttled', { retryAfterMs: 5_000 })
    onUnwatch('a', K)
    pass(1_020)
    get('b', K)
    expect(sent('b')).toEqual(['backend_throttled'])
    expect(asked(K)).toBe(1)
    pass(10_000)
    expect(asked(K)).toBe(1)
  })

  test('that follows a success is the first of its row', () => {
    const { watch, fail, value, take, pass } = setup({ random: () => 1, namespaces: { doc: { refreshMs: 60_000 } } })
    watch('a', K)
    for (const retryAfterMs of [250, 500, 1_000]) {
      fail(K, 'backend_refused')
      expect(take('a')).toMatchObject([{ retryAfterMs }])
      pass(1_010)
    }
    value(K, 'v1')
    pass(60_000)
    take('a')
    fail(K, 'backend_refused')
    expect(take('a')).toMatchObject([{ retryAfterMs: 250 }])
  })

  test('that was sent while the next try was under way is over with that one’s success, though it was asked before', () => {
    const { watch, value, fail, current, sent, pass } = setup()
    watch('a', K)
    value(K, 'v1')
    pass(510)
    fail(K, 'backend_error')
    pass(200) // under way again
    pass(300)
    watch('b', K, { version: 'v1', ageMs: 100 })
    expect(sent('b')).toEqual(['backend_error'])
    current(K)
    expect(sent('b')).toEqual(['current v1'])
  })

  test('of a key that was got is sent to a link that comes to watch, and the key is tried from then on', () => {
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
    const { watch, get, value, fail, sent, pass, onRefresh } = setup({
      namespaces: { doc: { maxAgeMs: 60_000, refreshMs: 500 } },
    })
    watch('a', K)
    value(K, 'v1')
    sent('a')
    pass(300)
    fail(K, 'backend_error')
    sent('a')
    get('b', K)
    expect(sent('b')).toEqual(['value v1'])
    // The watching gateway, too, takes the answer for a recovery; the failure is sent again.
    get('a', K)
    expect(sent('a')).toEqual(['value v1', 'backend_error'])
    pass(250)
    onRefresh(K)
    fail(K, 'backend_error')
    get('b', K)
    expect(sent('b')).toEqual(['backend_error'])
  })

  test('with Retry-After leaves the backend alone for that long, whatever is wanted', () => {
    const { watch, value, fail, take, pass, asked, get, sent } = setup()
    watch('a', K)
    value(K, 'v1')
    take('a')
    pass(510)
    fail(K, 'backend_throttled', { retryAfterMs: 7_000 })
    expect(take('a')).toMatchObject([{ code: 'backend_throttled', retryAfterMs: 7_000 }])
    pass(6_900)
    get('b', K)
    expect(sent('b')).toEqual(['backend_throttled'])
    expect(asked(K)).toBe(2)
    pass(120)
    expect(asked(K)).toBe(3)
  })

  test('with a Retry-After of hours is believed for five minutes', () => {
    const { watch, fail, take, pass, asked } = setup()
    watch('a', K)
    fail(K, 'backend_error', { retryAfterMs: 86_400_000 })
    expect(take('a')).toMatchObject([{ retryAfterMs: 300_000 }])
    pass(299_900)
    expect(asked(K)).toBe(1)
    pass(120)
    expect(asked(K)).toBe(2)
  })

  test('with Retry-After is followed by one try where a refresh says that the key changed', () => {
    const { watch, value, fail, pass, asked, onRefresh, sent } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    watch('a', K)
    fail(K, 'backend_throttled', { retryAfterMs: 60_000 })
    pass(10_000)
    expect(asked(K)).toBe(1)
    onRefresh(K)
    pass(20)
    expect(asked(K)).toBe(2)
    fail(K, 'backend_throttled', { retryAfterMs: 60_000 })
    pass(30_000)
    expect(asked(K)).toBe(2)
    onRefresh(K)
    pass(20)
    sent('a')
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    pass(120_000)
    expect(asked(K)).toBe(3)
  })

  test('however often it is refreshed, the key waits for its own backoff, which grows', () => {
    const { watch, fail, pass, asked, askedAt, onRefresh, leased } = setup({ random: () => 1 })
    watch('a', K)
    pass(60_000, () => {
      if (leased().length > 0) fail(K, 'backend_throttled', { retryAfterMs: 30_000 })
      onRefresh(K)
    })
    const gaps = askedAt(K).map((at, index, all) => at - all[index - 1])
    for (const [index, atLeast] of [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000].entries()) {
      expect(gaps[index + 1]).toBeGreaterThanOrEqual(atLeast)
    }
    expect(asked(K)).toBeLessThan(20)
    expect(asked(K)).toBeGreaterThan(10)
  })

  test('that is refreshed while the breaker is open is tried when a probe is due', () => {
    const { watch, fail, value, pass, asked, onRefresh, leased, primary } = setup({
      random: () => 1,
      namespaces: { doc: { refreshMs: 0 } },
    })
    watch('a', K)
    fail(K, 'backend_throttled', { retryAfterMs: 60_000 })
    for (let id = 100; id < 120; id++) watch('a', `doc:${id}`)
    for (let id = 100; id < 120; id++) fail(`doc:${id}`, 'backend_error')
    expect(primary.sources.get('doc')?.breaker.isOpen()).toBe(true)
    onRefresh(K)
    pass(500)
    expect(asked(K)).toBe(1)
    pass(2_500, () => {
      for (const key of leased()) value(key, 'v1')
    })
    expect(asked(K)).toBe(2)
  })

  test('a `current` without anything held is no answer: the key is asked for again', () => {
    const { watch, get, current, value, sent } = setup()
    watch('a', K)
    get('b', K)
    current(K)
    expect([sent('a'), sent('b')]).toEqual([[], []])
    value(K, 'v1')
    expect([sent('a'), sent('b')]).toEqual([['value v1'], ['value v1']])
  })
})

describe('a result that the code here cannot apply', () => {
  const content = { kind: 'value', version: 'v1', format: 'json', status: 200, store: true }
  const poison = {
    ...content,
    get contentType() {
      throw new TypeError('a bug')
    },
  } as any

  test('makes its key fail, which is asked again later; all others go on', () => {
    const containment = createContainment({ now: () => 0, ends: ['lease'], log: { error() {} } as any })
    const { watch, answer, value, sent, pass, leased, asked } = setup({ containment })
    watch('a', 'doc:bad')
    watch('a', 'doc:good')
    answer('doc:bad', poison, Buffer.from('1'))
    value('doc:good', 'v1')
    expect(sent('a')).toEqual(['invalid_content', 'value v1'])
    expect(containment.counts).toEqual({ lease: 1, process: 0 })
    pass(2_000)
    expect(asked('doc:bad')).toBeGreaterThan(1)
    value('doc:bad', 'v2')
    expect(sent('a')).toContain('value v2')
    expect(leased()).toContain('doc:good')
  })
})
