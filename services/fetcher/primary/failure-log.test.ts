import { keysOf, setup } from './test-support.ts'

const warnings = ({ logged }: ReturnType<typeof setup>) =>
  logged.map(({ namespace, code, failures }) => [namespace, code, failures])

test('a failure is logged at once, with its reason, its backend and its trace', () => {
  const primary = setup()
  primary.watch('a', 'doc:1')
  primary.fail('doc:1', 'backend_error', { status: 500, traceparent: '00-1-2-01' })
  expect(primary.logged).toEqual([
    {
      namespace: 'doc',
      backend: 'http://backend',
      code: 'backend_error',
      status: 500,
      reason: 'backend_error',
      failures: 1,
      traceparent: '00-1-2-01',
    },
  ])
})

test('then there is a line a minute for each namespace and kind of failure, with how many there were', () => {
  const primary = setup({ namespaces: { doc: {}, other: { origin: 'http://other' } } })
  for (const key of [...keysOf(10), 'other:1']) primary.watch('a', key)
  for (const key of keysOf(9)) primary.fail(key, 'backend_timeout')
  primary.fail('doc:9', 'backend_refused', { status: 400 })
  primary.fail('other:1', 'backend_timeout')
  expect(warnings(primary)).toEqual([
    ['doc', 'backend_timeout', 1],
    ['doc', 'backend_refused', 1],
    ['other', 'backend_timeout', 1],
  ])
  primary.logged.length = 0
  for (const key of keysOf(10)) primary.onUnwatch('a', key)
  primary.onUnwatch('a', 'other:1')
  primary.pass(60_020)
  expect(warnings(primary)).toEqual([['doc', 'backend_timeout', 8]])
})

test('after a minute without a failure the next is logged at once', () => {
  const primary = setup()
  primary.watch('a', 'doc:1')
  primary.fail('doc:1', 'invalid_content')
  primary.onUnwatch('a', 'doc:1')
  primary.pass(60_020)
  expect(primary.logged).toHaveLength(1)
  primary.watch('a', 'doc:1')
  primary.pass(20)
  primary.fail('doc:1', 'invalid_content')
  expect(primary.logged).toHaveLength(2)
})

test('once there was no failure for ten seconds, and no key fails, the log says how long it was and how many there were', () => {
  const primary = setup()
  const { recovered, watch, fail, value, pass } = primary
  for (const key of ['doc:1', 'doc:2']) watch('a', key)
  fail('doc:1', 'backend_timeout')
  fail('doc:2', 'backend_error')
  pass(3_000)
  value('doc:1', 'v1')
  pass(12_000)
  value('doc:1', 'v2')
  // The other key is still failing.
  expect(recovered).toEqual([])
  value('doc:2', 'v1')
  pass(1_000)
  value('doc:1', 'v3')
  expect(recovered).toEqual([{ namespace: 'doc', backend: 'http://backend', failures: 2, seconds: 15 }])
  pass(20_000)
  value('doc:1', 'v4')
  expect(recovered).toHaveLength(1)
})

test('a key that the backend never had is no failure, nor is a user whom it refuses', () => {
  const primary = setup({ namespaces: { doc: {}, own: { isPerUser: true } } })
  primary.watch('a', 'doc:1')
  primary.fail('doc:1', 'not_found', { status: 404 })
  const key = 'own:1|AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
  primary.watch('a', key, undefined, { authorization: 'Bearer ann', expiresAt: 1e12 } as any)
  primary.fail(key, 'backend_refused', { status: 403 })
  expect(primary.logged).toEqual([])
})
