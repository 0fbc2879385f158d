// Keys that the backend never had: what each who asks for them costs it, and who hears that one was made.
import type { Answer } from '@keycast/backbone'
import { setup } from '../test-support.ts'

const K = 'doc:invented'
const MINUTE_MS = 60_000

function absent(namespace = {}) {
  const primary = setup({ namespaces: { doc: { maxAgeMs: 1_000, ...namespace } } })
  let isMade = false
  /** @returns what the gateway of the payer is answered */
  const get = (payer: string): Answer => {
    primary.onGet(`link of ${payer}`, { key: K, position: undefined, payer })
    if (primary.lease(K)) {
      if (isMade) primary.value(K, 'v1')
      else primary.fail(K, 'not_found')
    }
    const [answer] = primary.take(`link of ${payer}`)
    return answer
  }
  const poll = (payer: string, ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      primary.pass(100)
      get(payer)
    }
  }
  return { ...primary, get, poll, make: () => (isMade = true), remove: () => (isMade = false) }
}

test('however often one account gets an invented key, the backend is asked once a minute in the end', () => {
  const { poll, get, asked, askedAt } = absent()
  get('a1')
  poll('a1', 2 * MINUTE_MS)
  const before = asked(K)
  expect(before).toBeLessThanOrEqual(8)
  poll('a1', 10 * MINUTE_MS)
  expect(asked(K) - before).toBeLessThanOrEqual(10)
  const gaps = askedAt(K).map((at, n, all) => Math.round((at - (all[n - 1] ?? at)) / 1_000))
  expect(gaps.slice(0, 9)).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60])
})

test('it is told when to ask again, and is then given what was made meanwhile', () => {
  const { get, poll, make, pass } = absent()
  get('a1')
  poll('a1', 10_000)
  make()
  const answer = get('a1')
  expect(answer).toMatchObject({ type: 'failed', code: 'not_found', onlyFor: 'a1' })
  pass((answer as { retryAfterMs: number }).retryAfterMs - 20)
  expect(get('a1')).toMatchObject({ code: 'not_found' })
  pass(20)
  expect(get('a1')).toMatchObject({ type: 'value', version: 'v1' })
})

test('nobody keeps from others that a key was made', () => {
  const { get, poll, make } = absent()
  poll('g.A1', 10 * MINUTE_MS)
  make()
  expect(get('g.A1')).toMatchObject({ code: 'not_found' })
  expect(get('g.A2')).toMatchObject({ type: 'value' })
})

test.each([
  ['a user wherever from', 'a1.u1', 'a2.u1', 'a1.u2'],
  ['all addresses of a network without a token', 'g.N1.A1', 'g.N1.A2', 'g.N2.A1'],
  ['all addresses of a network where nobody has a token', 'n1.a1', 'n1.a2', 'n2.a1'],
])('%s is one account', (_, one, same, other) => {
  const { get, poll, asked } = absent()
  poll(one, 10_000)
  const before = asked(K)
  expect(get(same)).toMatchObject({ onlyFor: same })
  expect(asked(K)).toBe(before)
  get(other)
  expect(asked(K)).toBe(before + 1)
})

test('the first answer is as old as maxAge allows, also where that is nothing', () => {
  const { get, make, pass } = absent({ maxAgeMs: 0 })
  get('a1')
  make()
  pass(10)
  expect(get('a1')).toMatchObject({ type: 'value' })
})

test('whoever has not asked for two minutes begins anew', () => {
  const { get, poll, pass, make } = absent()
  poll('a1', 10 * MINUTE_MS)
  pass(3 * MINUTE_MS)
  get('a1')
  make()
  pass(1_100)
  expect(get('a1')).toMatchObject({ type: 'value' })
})

test('a refresh has the backend asked at once, and so does a new subscription', () => {
  const { get, poll, make, onRefresh, watch, asked, fail } = absent()
  poll('a1', MINUTE_MS)
  const before = asked(K)
  watch('b', K)
  expect(asked(K)).toBe(before + 1)
  fail(K, 'not_found')
  expect(get('a1')).toMatchObject({ code: 'not_found' })
  make()
  onRefresh(K)
  expect(get('a1')).toMatchObject({ type: 'value' })
})

test('a key that was watched before it was made has its period again from then on', () => {
  const { watch, lease, fail, value, current, askedAt, pass, poll, make } = absent({ refreshMs: 1_000 })
  watch('b', K)
  pass(2 * MINUTE_MS, () => lease(K) && fail(K, 'not_found'))
  poll('a1', 1_000)
  make()
  pass(MINUTE_MS, () => lease(K) && value(K, 'v1'))
  const from = askedAt(K).length
  pass(10_000, () => lease(K) && current(K))
  expect(askedAt(K).length - from).toBe(10)
})

test('a value that is handed over is answered at once', () => {
  const { get, poll, handOver } = absent()
  poll('a1', MINUTE_MS)
  handOver(K, 'v1')
  expect(get('a1')).toMatchObject({ type: 'value', version: 'v1' })
})

test('a key that was there once is asked for as any other when it is gone', () => {
  const { get, make, remove, asked, pass } = absent()
  make()
  get('a1')
  remove()
  for (let n = 0; n < 10; n++) {
    pass(1_100)
    expect(get('a1')).toMatchObject({ code: 'not_found' })
  }
  expect(asked(K)).toBe(11)
})
