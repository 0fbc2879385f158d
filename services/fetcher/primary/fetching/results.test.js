import { setup } from '../test-support.js'

const K = 'doc:1'

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

  test('takes the value away, and watchers are sent it whole when it is there again', () => {
    const { watch, value, fail, sent, pass, lease } = setup()
    watch('a', K)
    value(K, 'v1', { etag: '"1"' })
    sent('a')
    pass(510)
    fail(K, 'not_found')
    expect(sent('a')).toEqual(['not_found'])
    watch('b', K)
    expect(sent('b')).toEqual(['not_found'])
    pass(1_000)
    expect(lease(K)?.message.etag).toBeUndefined()
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
    expect(sent('b')).toEqual(['value v1'])
  })

  test('is not sent to a gateway that holds something asked for later', () => {
    const { watch, fail, value, sent, pass } = setup({ namespaces: { doc: { refreshMs: 60_000 } } })
    watch('a', K)
    fail(K, 'not_found')
    pass(1_000)
    watch('b', K, { version: 'v1', ageMs: 500 })
    expect(sent('b')).toEqual([])
    value(K, 'v1')
    expect(sent('b')).toEqual(['current v1'])
    expect(sent('a')).toEqual(['value v1'])
  })

  test('comes without `retryAfterMs` where only a refresh asks again', () => {
    const { watch, fail, take, pass, asked, onRefresh, value, sent } = setup({ namespaces: { doc: { refreshMs: 0 } } })
    watch('a', K)
    fail(K, 'not_found')
    expect(take('a')).toMatchObject([{ code: 'not_found', maxAgeMs: 1_000, retryAfterMs: undefined }])
    pass(60_000)
    expect(asked(K)).toBe(1)
    onRefresh(K)
    value(K, 'v1')
    expect(sent('a')).toEqual(['value v1'])
  })
})
