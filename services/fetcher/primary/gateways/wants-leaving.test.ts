import { setup } from '../test-support.ts'

const K = 'doc:1'

describe('when the last viewer leaves', () => {
  test('refreshing goes on for a second and then stops', () => {
    const { watch, onUnwatch, value, current, asked, leased, pass } = setup({ namespaces: { doc: { refreshMs: 100 } } })
    watch('a', K)
    value(K, 'v1')
    const answerAll = () => {
      if (leased().length > 0) current(K)
    }
    pass(1_000, answerAll)
    onUnwatch('a', K)
    const before = asked(K)
    pass(1_050, answerAll)
    expect(asked(K) - before).toBeGreaterThanOrEqual(9)
    const stopped = asked(K)
    pass(10_000, answerAll)
    expect(asked(K)).toBe(stopped)
  })

  test('a watch within that second finds the key fresh', () => {
    const { watch, onUnwatch, value, sent, asked, pass } = setup({
      namespaces: { doc: { refreshMs: 60_000, maxAgeMs: 0 } },
    })
    watch('a', K)
    value(K, 'v1')
    pass(5_000)
    onUnwatch('a', K)
    pass(900)
    watch('b', K)
    expect(sent('b')).toEqual(['value v1'])
    pass(5_000)
    watch('c', K, { version: 'v1', ageMs: 0 })
    expect(sent('c')).toEqual(['current v1'])
    expect(asked(K)).toBe(1)
    pass(60_000)
    expect(asked(K)).toBe(2)
  })

  test('a queued fetch is not made', () => {
    const { watch, onUnwatch, value, leased, asked, pass, primary } = setup({ inFlightMax: 1 })
    watch('a', 'doc:first')
    watch('a', K)
    onUnwatch('a', K)
    pass(1_020)
    value('doc:first', 'v1')
    expect(leased()).toEqual([])
    expect(asked(K)).toBe(0)
    expect(primary.table.get(K)).toBeUndefined()
  })

  test('the same holds for a link that is lost, whatever it wanted', () => {
    const { watch, get, onLinkLost, value, leased, sent, pass, kept, primary } = setup({ inFlightMax: 1 })
    watch('a', 'doc:first')
    watch('a', 'doc:second')
    get('a', 'doc:third')
    watch('b', 'doc:first')
    onLinkLost('a')
    pass(1_020)
    value('doc:first', 'v1')
    expect(leased()).toEqual([])
    expect(sent('a')).toEqual([])
    expect(sent('b')).toEqual(['value v1'])
    expect([primary.table.stats().keys, kept()]).toEqual([1, 1])
  })

  test('a link that is lost costs the keys it wanted then, not a look at all', () => {
    const { watch, get, onUnwatch, cancelGet, value, sent, primary } = setup()
    const keys = ['doc:theirs', 'doc:unwatched', 'doc:cancelled', 'doc:got']
    for (const key of keys) watch('b', key)
    watch('a', 'doc:unwatched')
    onUnwatch('a', 'doc:unwatched')
    get('a', 'doc:cancelled')
    cancelGet('a', 'doc:cancelled')
    get('a', 'doc:got')
    value('doc:got', 'v1')
    expect(sent('a')).toEqual(['value v1'])

    watch('a', 'doc:mine')
    const lookedAt: string[] = []
    for (const key of [...keys, 'doc:mine']) {
      const entry = primary.table.get(key)
      if (!entry) throw new Error(`${key} is not held`)
      const { interest } = entry
      Object.defineProperty(entry, 'interest', {
        get() {
          lookedAt.push(key)
          return interest
        },
      })
    }
    primary.hubEvents.onLinkLost('a')
    expect([...new Set(lookedAt)]).toEqual(['doc:mine'])
  })

  test('a value that may not be stored is let go of', () => {
    const { watch, onUnwatch, value, pass, kept, primary, get, asked } = setup({
      namespaces: { doc: { refreshMs: 0 } },
    })
    watch('a', K)
    value(K, 'v1', { store: false })
    onUnwatch('a', K)
    pass(1_020)
    expect([primary.table.stats(), kept()]).toEqual([{ keys: 0, bytes: 0 }, 0])
    const before = asked(K)
    get('a', K)
    expect(asked(K)).toBe(before + 1)
  })
})
