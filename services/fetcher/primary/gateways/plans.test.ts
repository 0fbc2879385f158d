// Keys whose node died: their gateways hold them, and say when that node would have asked the backend next.
import type { Plan } from '@keycast/backbone'
import { setup as setupPrimary } from '../test-support.ts'
import { OVERDUE_MS } from '../timing/refreshes-under-way.ts'

const K = 'doc:1'
const PERIOD_MS = 60_000
const IN_MS = 20_000

/** A node that has run for a while. */
function setup(options?: Parameters<typeof setupPrimary>[0]) {
  const primary = setupPrimary({ namespaces: { doc: { refreshMs: PERIOD_MS, maxAgeMs: 500 } }, ...options })
  primary.freeze(PERIOD_MS)
  return primary
}

function takeOver(primary: ReturnType<typeof setup>, link: string, version: string, plan?: Partial<Plan>) {
  const held = { version, ageMs: 1_000, plan: { inMs: IN_MS, maxAgeMs: 500, askedAgoMs: PERIOD_MS - IN_MS, ...plan } }
  primary.onWatch(link, { key: K, held, quiet: true })
}

test('the backend is asked when it would have been, and not before', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  takeOver(primary, 'b', 'v1')

  for (const link of ['a', 'b']) {
    expect(primary.take(link)).toEqual([
      { type: 'kept', key: K, version: 'v1', next: { inMs: IN_MS, everyMs: PERIOD_MS } },
    ])
  }
  primary.pass(IN_MS - 20)
  expect(primary.asked(K)).toBe(0)
  primary.pass(40)
  expect(primary.asked(K)).toBe(1)
})

test('of two plans the earlier one holds, and the gateway of the other is told', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.take('a')
  takeOver(primary, 'b', 'v1', { inMs: 5_000 })
  for (const link of ['a', 'b']) expect(primary.take(link)).toMatchObject([{ type: 'kept', next: { inMs: 5_000 } }])
  takeOver(primary, 'c', 'v1', { inMs: 4_000 })
  expect(primary.take('c')).toMatchObject([{ type: 'kept', next: { inMs: 5_000 } }])
  expect(primary.take('a')).toEqual([])
  primary.pass(5_020)
  expect(primary.asked(K)).toBe(1)
})

test('it is asked at once where the time of the second plan has passed', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  takeOver(primary, 'b', 'v1', { inMs: 0 })
  primary.pass(20)
  expect(primary.asked(K)).toBe(1)
})

test('another refresh holds for it at once, too', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.take('a')
  primary.change('doc', { refreshMs: 5_000 })
  expect(primary.take('a')).toMatchObject([{ type: 'kept', next: { everyMs: 5_000 } }])
  primary.pass(5_000)
  expect(primary.asked(K)).toBe(1)
})

test('a longer one does not put off when it is asked next', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.change('doc', { refreshMs: 10 * PERIOD_MS })
  primary.pass(IN_MS + 20)
  expect(primary.asked(K)).toBe(1)
})

test('the value comes with that fetch, and gateways are told where it is another', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.take('a')
  primary.pass(IN_MS + 20)
  primary.value(K, 'v1')
  expect(primary.sent('a')).toEqual([])

  primary.pass(PERIOD_MS)
  expect(primary.lease(K)?.message.version).toBe('v1')
  primary.value(K, 'v2')
  expect(primary.sent('a')).toEqual(['value v2'])
})

test.each([
  ['its version', 'v2', {}],
  ['how long it may be used', 'v1', { maxAgeMs: 100 }],
  ['that it must not be stored', 'v1', { store: false }],
])('gateways are told where that fetch brings another of: %s', (_, version, more) => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.take('a')
  primary.pass(IN_MS + 20)
  primary.value(K, version, more)

  expect(primary.take('a').map(({ key }) => key)).toEqual([K])
})

test('a fetch that takes long confirms nothing: gateways are told, and then what came of it', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.take('a')
  primary.pass(IN_MS + OVERDUE_MS + 40)
  primary.lagsMs?.()
  expect(primary.take('a')).toEqual([{ type: 'kept', key: K, version: 'v1', next: undefined }])

  primary.value(K, 'v1')
  expect(primary.take('a')).toMatchObject([{ type: 'current', version: 'v1', next: { everyMs: PERIOD_MS } }])
})

test('a failure of that fetch is told', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.take('a')
  primary.pass(IN_MS + 20)
  primary.fail(K, 'backend_error')

  expect(primary.sent('a')).toEqual(['backend_error'])
})

test('where gateways hold different versions the backend is asked at once', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  takeOver(primary, 'b', 'v2')
  expect(primary.asked(K)).toBe(1)

  primary.take('a')
  expect(primary.sent('b')).toEqual([])
  primary.value(K, 'v2')
  expect([primary.sent('a'), primary.sent('b')]).toEqual([['value v2'], ['current v2']])
})

test('a gateway that holds nothing, or a get, has it fetched at once', () => {
  for (const want of ['watch', 'get'] as const) {
    const primary = setup()
    takeOver(primary, 'a', 'v1')
    primary[want]('b', K)

    expect(primary.lease(K)?.fetch.lane).toBe('cold')
    primary.value(K, 'v1')
    expect(primary.sent('b')).toEqual(['value v1'])
  }
})

test('a refresh has it fetched at once, also one that came before the watch', () => {
  const before = setup()
  before.pass(100)
  before.onRefresh(K)
  before.pass(100)
  takeOver(before, 'a', 'v1')
  expect(before.asked(K)).toBe(1)

  const after = setup()
  takeOver(after, 'a', 'v1')
  after.onRefresh(K)
  expect(after.asked(K)).toBe(1)
})

test('a change that was told about when the backend was asked has it fetched at once: the plan may have waited to be read', () => {
  const primary = setup()
  // By its plan the backend was asked 40 s ago.
  primary.onRefresh(K)
  primary.pass(PERIOD_MS - IN_MS + 5_000)
  takeOver(primary, 'a', 'v1')
  expect(primary.asked(K)).toBe(1)

  const long = setup()
  long.onRefresh(K)
  long.pass(PERIOD_MS - IN_MS + 11_000)
  takeOver(long, 'a', 'v1')
  expect(long.asked(K)).toBe(0)
})

test('a key that is asked for often, is due, or was asked for before this node heard of changes is fetched at once', () => {
  const often = setup({ namespaces: { doc: { refreshMs: 1_000 } } })
  takeOver(often, 'a', 'v1', { inMs: 500 })
  const due = setup()
  takeOver(due, 'a', 'v1', { inMs: 0 })
  const early = setupPrimary({ namespaces: { doc: { refreshMs: PERIOD_MS } } })
  takeOver(early, 'a', 'v1')

  expect([often.asked(K), due.asked(K), early.asked(K)]).toEqual([1, 1, 1])
})

test('a value that the node holds is what it goes by', () => {
  const primary = setup()
  primary.watch('c', K)
  primary.value(K, 'v3')
  takeOver(primary, 'a', 'v1')

  expect(primary.sent('a')).toEqual(['value v3'])
  expect(primary.asked(K)).toBe(1)
})

test('a key that nobody watches any more is let go of, and one that is watched again is kept anew', () => {
  const primary = setup()
  takeOver(primary, 'a', 'v1')
  primary.onUnwatch('a', K)
  primary.pass(2_000)
  expect(primary.primary.table.stats().keys).toBe(0)

  takeOver(primary, 'a', 'v1')
  expect(primary.sent('a')).toEqual(['kept v1'])
  primary.pass(PERIOD_MS)
  expect(primary.asked(K)).toBe(1)
})

test('a node that has just started keeps what the backend was asked for since: the gateway says when that was', () => {
  const primary = setupPrimary({ namespaces: { doc: { refreshMs: PERIOD_MS, maxAgeMs: 500 } } })
  primary.freeze(0)
  primary.pass(5_000)
  takeOver(primary, 'a', 'v1', { askedAgoMs: 4_000 })
  expect(primary.asked(K)).toBe(0)

  // Before the node was there.
  const told = setupPrimary({ namespaces: { doc: { refreshMs: PERIOD_MS, maxAgeMs: 500 } } })
  told.freeze(0)
  told.pass(5_000)
  takeOver(told, 'a', 'v1')
  expect(told.asked(K)).toBe(1)
})

test('a change that was told since the backend was asked for certain has it fetched at once', () => {
  const primary = setup()
  primary.onRefresh(K)
  primary.pass(20_000)
  takeOver(primary, 'a', 'v1', { inMs: PERIOD_MS - 1_000, askedAgoMs: 25_000 })
  expect(primary.asked(K)).toBe(1)

  const after = setup()
  after.onRefresh(K)
  after.pass(20_000)
  takeOver(after, 'a', 'v1', { inMs: PERIOD_MS - 1_000, askedAgoMs: 5_000 })
  expect(after.asked(K)).toBe(0)
})
