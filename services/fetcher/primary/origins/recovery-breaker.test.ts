import { answering, keysOf, type Setup, setup, watched } from '../test-support.ts'

const K = 'doc:1'

describe('a breaker that is open', () => {
  const keys = keysOf(40)
  const down = (primary: Setup) => answering(primary, key => primary.fail(key, 'backend_error'))
  const total = ({ asked }: Setup) => [...keys, 'doc:new', 'doc:newer'].reduce((sum, key) => sum + asked(key), 0)
  const opened = () => {
    let draw = 0
    const primary = watched(keys, { random: () => (draw = (draw + 0.0371) % 1) })
    primary.pass(3_000, down(primary))
    expect(primary.primary.sources.get('doc')?.breaker.isOpen()).toBe(true)
    return primary
  }

  test('lets one probe through each second, and nothing else', () => {
    const primary = opened()
    const before = total(primary)
    primary.pass(10_000, down(primary))
    expect(total(primary) - before).toBeGreaterThanOrEqual(9)
    expect(total(primary) - before).toBeLessThanOrEqual(11)
  })

  test('keeps probing, one at a time, where probes hang', () => {
    const primary = opened()
    primary.pass(1_100)
    const [probe] = primary.leased()
    primary.pass(1_900)
    expect(primary.leased()).toEqual([probe])
    // The next probe may be a second away, whether this one succeeds or not.
    primary.get('c', 'doc:new')
    expect(primary.take('c')).toMatchObject([{ code: 'backend_unavailable', retryAfterMs: 1_000 }])
    primary.fail(probe, 'backend_timeout')
    expect(primary.leased()).toHaveLength(1)
    expect(primary.leased()).not.toEqual([probe])
  })

  test('fails a cold key at once, with when to come back', () => {
    const primary = opened()
    const { watch, get, take, asked } = primary
    watch('b', 'doc:new')
    get('c', 'doc:newer')
    for (const link of ['b', 'c']) {
      const [answer] = take(link)
      expect(answer).toMatchObject({ type: 'failed', code: 'backend_unavailable', ageMs: 0 })
      const { retryAfterMs } = answer as { retryAfterMs: number }
      expect(retryAfterMs).toBeGreaterThan(0)
      expect(retryAfterMs).toBeLessThanOrEqual(1_000)
    }
    expect(asked('doc:new') + asked('doc:newer')).toBe(0)
  })

  test('is told to many that wait a few at a time, so that nothing else waits for all of them', () => {
    const { watch, leased, fail, sent, pass, asked } = setup({ inFlightMax: 20, markDueMs: 1 })
    const all = keysOf(150)
    for (const key of all) watch('a', key)
    for (const key of leased()) fail(key, 'backend_error')
    const refused = () => sent('a').filter(code => code === 'backend_unavailable').length
    const atOnce = refused()
    expect(atOnce).toBeGreaterThan(0)
    expect(atOnce).toBeLessThan(10)
    pass(900)
    const neverAsked = all.filter(key => asked(key) === 0)
    expect(neverAsked.length).toBeGreaterThan(100)
    expect(atOnce + refused()).toBe(neverAsked.length)
  })

  test('sends watchers that nothing is tried, once', () => {
    const primary = setup({ random: () => 0.5, namespaces: { doc: { refreshMs: 10_000 } } })
    const { watch, value, pass, fail, sent } = primary
    watch('a', 'doc:well')
    value('doc:well', 'v1')
    sent('a')
    for (const key of keys) watch('b', key)
    pass(
      4_900,
      answering(primary, key => fail(key, 'backend_error')),
    )
    expect(sent('a')).toEqual([])
    pass(
      200,
      answering(primary, key => fail(key, 'backend_error')),
    )
    expect(sent('a')).toEqual(['backend_unavailable'])
    pass(
      900,
      answering(primary, key => fail(key, 'backend_error')),
    )
    expect(sent('a')).toEqual([])
  })

  test('closes with the first probe that succeeds; then every key is tried within a second', () => {
    const primary = opened()
    const { pass, current, sent, watch, value, lease } = primary
    watch('a', 'doc:new')
    sent('a')
    const well = answering(primary, key => (key === 'doc:new' ? value(key, 'v1') : current(key)))
    pass(2_020, well)
    expect(sent('a').sort()).toEqual([...keys.map(() => 'current v1'), 'value v1'])
    expect(lease(K)).toBeUndefined()
  })

  test('that closes has every key tried, though many were a moment ago when it had closed before', () => {
    const primary = opened()
    const { pass, current, sent, leased, asked, take } = primary
    // The backend is back for one request, and no more.
    let served = 0
    const flapping = answering(primary, key => (served++ === 0 ? current(key) : primary.fail(key, 'backend_error')))
    pass(2_500, flapping)
    expect(primary.primary.sources.get('doc')?.breaker.isOpen()).toBe(true)
    take('a')
    const before = keys.map(asked)
    pass(
      2_020,
      answering(primary, key => current(key)),
    )
    keys.forEach((key, index) => {
      expect(asked(key)).toBeGreaterThan(before[index])
    })
    expect(new Set(sent('a'))).toEqual(new Set(['current v1']))
    expect(leased()).toEqual([])
  })

  test('closes, too, with a probe that is refused: the backend works', () => {
    const primary = opened()
    const { pass, fail, current, asked, take } = primary
    let refused = 0
    const working = answering(primary, key => (refused++ === 0 ? fail(key, 'backend_refused') : current(key)))
    take('a')
    const before = keys.map(asked)
    pass(2_020, working)
    keys.forEach((key, index) => {
      expect(asked(key)).toBeGreaterThan(before[index])
    })
  })

  test('lets one of many start where all came while the probe was due but no worker was free', () => {
    const primary = setup({ credit: 25, random: () => 0.5, namespaces: { doc: {}, other: { origin: 'http://other' } } })
    const { watch, pass, fail, value, leased, sent } = primary
    for (const key of keys.slice(0, 20)) watch('a', key)
    for (const key of leased()) fail(key, 'backend_error')
    for (let id = 0; id < 25; id++) watch('a', `other:${id}`)
    sent('a')
    pass(1_010)
    for (const key of ['doc:new', 'doc:newer', 'doc:newest']) watch('b', key)
    for (let id = 0; id < 25; id++) value(`other:${id}`, 'v1')
    expect(leased().filter(key => key.startsWith('doc'))).toHaveLength(1)
    expect(sent('b')).toEqual(expect.arrayContaining(['backend_unavailable', 'backend_unavailable']))
  })

  test('fails at once all that is queued, whichever key gets the next worker', () => {
    for (const others of [30, 31]) {
      const { watch, fail, value, leased, sent } = setup({
        credit: 1,
        namespaces: { doc: {}, other: { origin: 'http://other', refreshMs: 0 } },
      })
      for (const key of keys) watch('a', key)
      for (let id = 0; id < others; id++) watch('b', `other:${id}`)
      if (others === 31) fail('doc:0', 'backend_refused')
      for (let failures = 0; failures < 20; ) {
        const [key] = leased()
        if (key.startsWith('other')) {
          value(key, 'v1')
          continue
        }
        fail(key, 'backend_error')
        failures++
      }
      expect(sent('a')).toHaveLength(keys.length)
    }
  })

  test('sends no second failure to a watcher that was sent one', () => {
    const primary = opened()
    primary.take('a')
    primary.pass(10_000, down(primary))
    expect(primary.sent('a')).not.toContain('backend_unavailable')
  })

  test('does not close by what the backend answers to requests of before', () => {
    const primary = watched(keys, { random: () => 0.75, namespaces: { doc: { refreshMs: 20_000 } } })
    const { pass, fail, leased, current } = primary
    pass(15_020)
    expect(leased()).toHaveLength(40)
    for (const key of keys.slice(0, 30)) fail(key, 'backend_error')
    for (const key of keys.slice(30)) current(key)
    expect(primary.primary.sources.get('doc')?.breaker.isOpen()).toBe(true)
  })

  test('is of one namespace alone, and no matter of refused requests', () => {
    const primary = setup({
      namespaces: { doc: {}, other: {}, odd: {} },
    })
    const { watch, pass, fail, leased, asked } = primary
    for (let id = 0; id < 100; id++) {
      watch('a', `doc:${id}`)
      watch('a', `odd:${id}`)
    }
    pass(2_000, () => {
      for (const key of leased()) fail(key, key.startsWith('doc') ? 'backend_unreachable' : 'backend_refused')
    })
    watch('a', 'other:1')
    watch('a', 'odd:1')
    watch('a', 'doc:new')
    expect(leased()).toContain('other:1')
    expect(asked('doc:new')).toBe(0)
    expect(primary.primary.sources.get('odd')?.breaker.isOpen()).toBe(false)
    expect(primary.primary.sources.get('doc')?.breaker.isOpen()).toBe(true)
  })

  test('frees its probe when nobody wants that key any more', () => {
    const primary = opened()
    const { pass, leased, lose, onLinkLost, watch } = primary
    onLinkLost('a')
    pass(990)
    const [probe] = leased()
    pass(20)
    lose(probe)
    expect(leased()).toEqual([])
    pass(1_000)
    watch('b', 'doc:new')
    expect(leased()).toEqual(['doc:new'])
  })
})
