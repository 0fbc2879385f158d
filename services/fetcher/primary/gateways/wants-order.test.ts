// Versions have no order of their own. Each change of a key gets a number, which is the same for all gateways.
import { setup as setupPrimary } from '../test-support.ts'

const K = 'doc:1'
/** Later than the wall clock of these tests. */
const LATER = 9_000_000_000_000

function setup() {
  const primary = setupPrimary({ namespaces: { doc: { refreshMs: 60_000, maxAgeMs: 500 } } })
  const orderSent = (link: string) => (primary.take(link) as { order?: number }[]).at(-1)?.order as number
  /** The backend is asked again, and the first gateway is sent the outcome. */
  const change = (version: string) => {
    primary.onNotice('a', { keys: [K] })
    primary.value(K, version)
    return orderSent('a')
  }
  return { ...primary, orderSent, change }
}

test('each change has a higher number, also one back to a former version', () => {
  const primary = setup()
  primary.onWatch('a', { key: K, held: undefined })
  primary.value(K, 'v')
  const first = primary.orderSent('a')
  expect(first).toBeGreaterThan(0)
  const second = primary.change('w')
  expect(second).toBeGreaterThan(first)
  expect(primary.change('v')).toBeGreaterThan(second)
})

test('a value is numbered by when it was asked for: another node that asked later, and was answered before, has the newer one', () => {
  const [slow, quick] = [setup(), setup()]
  for (const primary of [slow, quick]) primary.onWatch('a', { key: K, held: undefined })
  const askedAt = slow.now()
  for (const primary of [slow, quick]) primary.pass(20)
  quick.value(K, 'w', { askedAt: quick.now() })
  slow.pass(500)
  slow.value(K, 'v', { askedAt })
  expect(slow.orderSent('a')).toBe(askedAt)
  expect(quick.orderSent('a')).toBe(askedAt + 20)
})

test('a version that stays keeps its number, and every gateway is given the same', () => {
  const primary = setup()
  primary.onWatch('a', { key: K, held: undefined })
  primary.value(K, 'v')
  const order = primary.orderSent('a')
  primary.onWatch('b', { key: K, held: undefined })
  expect(primary.orderSent('b')).toBe(order)
  primary.onWatch('c', { key: K, held: { version: 'v', ageMs: 0, order } })
  expect(primary.orderSent('c')).toBe(order)
})

test('a node that comes to own a key goes on above what gateways report', () => {
  const primary = setup()
  primary.onWatch('a', { key: K, held: { version: 'v', ageMs: 1, order: LATER } })
  primary.value(K, 'w')
  expect(primary.orderSent('a')).toBeGreaterThan(LATER)
})

test('what was asked for before that stays below it', () => {
  const primary = setup()
  primary.onWatch('a', { key: K, held: undefined })
  const askedAt = primary.now()
  primary.pass(500)
  const order = primary.now()
  primary.onWatch('b', { key: K, held: { version: 'w', ageMs: 100, order } })
  primary.value(K, 'v', { askedAt })
  expect(primary.orderSent('a')).toBeLessThan(order)
  expect(primary.orderSent('b')).toBeUndefined()
  primary.value(K, 'x')
  for (const link of ['a', 'b']) expect(primary.orderSent(link)).toBeGreaterThan(order)
})

test('a version that a gateway reports and the backend confirms keeps the number it had', () => {
  const primary = setup()
  primary.onWatch('a', { key: K, held: { version: 'v', ageMs: 1, order: LATER } })
  primary.value(K, 'v')
  expect(primary.orderSent('a')).toBe(LATER)
})

test('a gateway that reports a higher number late has everybody told another one', () => {
  const primary = setup()
  primary.onWatch('a', { key: K, held: undefined })
  primary.value(K, 'w')
  expect(primary.orderSent('a')).toBeLessThan(LATER)
  primary.onWatch('b', { key: K, held: { version: 'v', ageMs: 60_000, order: LATER } })
  expect(primary.orderSent('b')).toBeGreaterThan(LATER)
  expect(primary.orderSent('a')).toBeGreaterThan(LATER)
})
