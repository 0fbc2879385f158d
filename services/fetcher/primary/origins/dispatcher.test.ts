import { answering, setup } from '../test-support.ts'
import { createDispatcher, type Request } from './dispatcher.ts'
import { createSources, type Source } from './origins.ts'

const keys = (namespace: string, count: number) => Array.from({ length: count }, (_, id) => `${namespace}:${id}`)

test('a namespace that hangs leaves room for the others of its backend', () => {
  const { watch, leased } = setup({ namespaces: { hangs: {}, doc: {} }, inFlightMax: 16 })
  for (const key of keys('hangs', 100)) watch('a', key)
  expect(leased()).toHaveLength(12)

  for (const key of keys('doc', 3)) watch('a', key)

  expect(leased().slice(12)).toEqual(keys('doc', 3))
})

test('a namespace that is alone at its backend has all the room', () => {
  const { watch, leased } = setup({ inFlightMax: 16 })
  for (const key of keys('doc', 100)) watch('a', key)
  expect(leased()).toHaveLength(16)
})

test('time-outs of one namespace lower its limit and no other', () => {
  const primary = setup({ namespaces: { hangs: {}, doc: {} }, inFlightMax: 256 })
  const { watch, pass, fail, value } = primary
  const limitOf = (namespace: string) => primary.primary.sources.get(namespace)?.limit.inForce()
  const before = limitOf('doc')
  for (const key of [...keys('hangs', 128), ...keys('doc', 64)]) watch('a', key)
  pass(
    1_000,
    answering(primary, key => (key.startsWith('hangs') ? fail(key, 'backend_timeout') : value(key, 'v1'))),
  )
  expect(limitOf('doc')).toBe(before)
  expect(limitOf('hangs')).toBeLessThan(before as number)
})

test('namespaces of a backend take turns, however much one of them wants', () => {
  const { watch, leased, value } = setup({ namespaces: { many: {}, doc: {} }, inFlightMax: 4 })
  for (const key of keys('many', 50)) watch('a', key)
  for (const key of keys('doc', 5)) watch('a', key)
  const order = []
  for (let next = leased()[0]; next; next = leased()[0]) {
    order.push(next)
    value(next, 'v1')
  }
  const last = order.findLastIndex(key => key.startsWith('doc'))
  expect(last).toBeLessThan(16)
})

test('backends take turns where the credit of workers is short', () => {
  const { watch, leased, value } = setup({
    namespaces: { many: { origin: 'http://many' }, doc: {} },
    credit: 1,
  })
  for (const key of keys('many', 10)) watch('a', key)
  watch('a', 'doc:1')
  value('many:0', 'v1')
  if (leased()[0] !== 'doc:1') value('many:1', 'v1')
  expect(leased()).toEqual(['doc:1'])
})

test('a namespace whose fetches fail has its breaker open, and no other of its backend', () => {
  const primary = setup({ namespaces: { fails: {}, doc: {} } })
  const { watch, fail, leased, sent, value } = primary
  for (const key of keys('fails', 30)) watch('a', key)
  for (const key of leased()) fail(key, 'backend_error')
  watch('b', 'fails:new')
  watch('b', 'doc:1')
  expect(sent('b')).toEqual(['backend_unavailable'])
  value('doc:1', 'v1')
  expect(sent('b')).toEqual(['value v1'])
})

test('keys that the backend never had wait behind all others, until it says that they changed', () => {
  const { watch, fail, value, leased, pass, onRefresh } = setup({ inFlightMax: 1 })
  for (const key of ['doc:1', 'doc:2']) {
    watch('a', key)
    fail(key, 'not_found')
  }
  watch('a', 'doc:3')
  value('doc:3', 'v1')
  watch('a', 'doc:busy')
  pass(2_000)
  onRefresh('doc:2')
  const order = []
  for (let i = 0; i < 4; i++) {
    const [key] = leased()
    order.push(key)
    value(key, 'v2')
  }
  expect(order).toEqual(['doc:busy', 'doc:3', 'doc:2', 'doc:1'])
})

interface Test extends Request<Source<Test>> {
  isOver: boolean
}

test('thousands of requests that are over, between others, are refused when there is credit again', () => {
  const now = () => 0
  const newLimit = () => ({ inForce: () => 10_000, started() {}, ended() {} })
  const sources = createSources<Test>({ inFlightMax: 10_000, newLimit, now })
  sources.take([['doc', 'http://doc']])
  const source = sources.get('doc') as Source<Test>
  const counts = { credit: 0, leased: 0, refused: 0 }
  const { add, startAll } = createDispatcher<Test>({
    origins: sources.origins,
    hasCredit: () => counts.leased < counts.credit,
    inTurns(step) {
      while (step());
    },
    steps: {
      isOver: ({ isOver }) => isOver,
      lease: () => counts.leased++,
      refused: () => counts.refused++,
      isWanted: () => true,
      judge: () => ({ verdict: 'good', sign: 'answered' }),
      ended() {},
    },
    now,
    after: () => () => {},
  })
  for (let i = 0; i < 10_000; i++) {
    const isOver = i % 2 === 1
    add({ source, lane: 'cold', path: [undefined], queuedAt: 0, sentAt: undefined, attempt: 1, probe: false, isOver })
  }
  counts.credit = 10_000
  startAll()
  expect(counts).toMatchObject({ leased: 5_000, refused: 5_000 })
})
