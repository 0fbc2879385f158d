import type { Result } from '../../worker-messages.ts'
import { setup as setupPrimary } from '../test-support.ts'
import { WAITS_MAX } from './long-polls.ts'

const K = 'doc:1'
const WAIT_MS = 20_000

const value = (version: string, more: object = {}) =>
  ({
    kind: 'value',
    version,
    contentType: 'a/b',
    format: 'json',
    status: 200,
    store: true,
    etag: `"${version}"`,
    ...more,
  }) as Result
const body = Buffer.from('1')
const unchanged = (waited?: boolean) => ({ kind: 'current', status: 304, etag: '"v1"', waited }) as Result

/** A primary whose backend may wait, and a key of it that is watched and held. */
function setup({ etag, credit }: { etag?: string; credit?: number } = { etag: '"v1"' }) {
  const primary = setupPrimary({ namespaces: { doc: { waitMs: WAIT_MS } }, credit })
  const parts = {
    ...primary,
    watchHeld(key: string) {
      primary.watch('a', key)
      primary.value(key, 'v1', { etag })
      primary.take('a')
    },
    waitOf: (key: string) => primary.waits().find(({ message }) => message.key === key),
    /** The backend has said that it waits. */
    known() {
      parts.watchHeld('doc:known')
      primary.pass(1_000)
      primary.answerWait('doc:known', value('v2', { waited: true }), body)
      primary.take('a')
    },
  }
  return parts
}

test('a key with an entity tag is asked for once a period is over, to be answered when it changes', () => {
  const { watchHeld, pass, waitOf, leased } = setup()
  watchHeld(K)
  pass(1_000)
  expect(waitOf(K)?.message).toMatchObject({ etag: '"v1"', version: 'v1', waitSeconds: 20, timeoutMs: 22_000 })
  pass(19_000)
  expect(leased()).toEqual([K])
})

test('a time at which no worker has room for it is no try: the backend is asked to wait soon after', () => {
  const { watchHeld, get, value: fetched, current, pass, waitOf } = setup({ etag: '"v1"', credit: 1 })
  watchHeld(K)
  get('a', 'doc:2')
  pass(1_000)
  expect(waitOf(K)).toBeUndefined()
  fetched('doc:2', 'v1')
  current(K, { etag: '"v1"' })
  pass(1_000)
  expect(waitOf(K)).toBeDefined()
})

test('a value is sent on as old as its response, and waited for anew at once', () => {
  const { watchHeld, pass, answerWait, take, waitOf, waited } = setup()
  watchHeld(K)
  pass(13_000)
  answerWait(K, value('v2', { waited: true }), body)
  pass(100)
  expect(take('a')).toMatchObject([{ type: 'value', version: 'v2', ageMs: 100 }])
  expect(waitOf(K)?.message).toMatchObject({ etag: '"v2"' })
  expect(waited).toEqual(['changed'])
})

test('a value is as old as its worker says, also where the primary stood still meanwhile', () => {
  const { watchHeld, pass, freeze, now, answerWait, watch, value: fetched, sent, take } = setup()
  watchHeld(K)
  pass(5_000)
  const askedAt = now()
  freeze(2_000)
  answerWait(K, { ...value('v2', { waited: true }), askedAt }, body)
  expect(take('a')).toMatchObject([{ type: 'value', version: 'v2', ageMs: 2_000 }])

  // Another node was asked meanwhile, and found a newer one.
  watch('b', K, { version: 'v3', ageMs: 1_000 })
  expect(sent('b')).toEqual([])
  fetched(K, 'v3')
  expect(sent('b')).toEqual(['current v3'])
})

test('no change in all that time is waited for anew at once', () => {
  const { watchHeld, pass, answerWait, take, waitOf } = setup()
  watchHeld(K)
  pass(21_000)
  answerWait(K, unchanged(true))
  expect(take('a')).toMatchObject([{ type: 'current', version: 'v1', ageMs: 0 }])
  pass(20)
  expect(waitOf(K)).toBeDefined()
})

test('a wait counts for the backend that it was sent to, also where its namespace has another by the time it ends', () => {
  const { watchHeld, pass, waitOf, answerWait, primary } = setup()
  watchHeld(K)
  pass(1_000)
  expect(waitOf(K)).toBeDefined()
  Object.assign(primary.table.get(K)?.namespace ?? {}, { origin: 'http://other' })
  primary.reconfigure({ request: new Set(['doc']), times: new Map() })
  answerWait(K, unchanged(true))
  expect([...primary.waits.underWay()]).toEqual([['http://backend', 0]])
})

test('a 304 that comes faster costs a whole refresh', () => {
  const { watchHeld, pass, answerWait, waitOf } = setup()
  watchHeld(K)
  pass(1_000)
  answerWait(K, unchanged(true))
  pass(980)
  expect(waitOf(K)).toBeUndefined()
  pass(20)
  expect(waitOf(K)).toBeDefined()
})

test('other bytes each time are asked for with a pause', () => {
  const { watchHeld, pass, answerWait, waitOf, known } = setup()
  known()
  watchHeld(K)
  pass(1_000)
  answerWait(K, value('v2', { waited: true }), body)
  pass(20)
  answerWait(K, value('v3', { waited: true }), body)
  expect(waitOf(K)).toBeUndefined()
  pass(100)
  expect(waitOf(K)).toBeDefined()
})

test('a backend that answers at once all the time is asked once a second, until it waits again', () => {
  const { watchHeld, pass, answerWait, waitOf, known } = setup()
  known()
  watchHeld(K)
  pass(1_000)
  let number = 2
  const change = () => answerWait(K, value(`v${number++}`, { waited: true }), body)
  const atOnce = () => {
    if (waitOf(K)) change()
  }
  pass(3_000, atOnce)
  const before = number
  pass(10_000, atOnce)
  expect(number - before).toBeGreaterThanOrEqual(9)
  expect(number - before).toBeLessThanOrEqual(11)
  // One that changes now and then is waited for at once again.
  for (let times = 0; times < 6; times++) {
    pass(2_000)
    change()
  }
  pass(20)
  expect(waitOf(K)).toBeDefined()
})

test('a backend that does not say that it waits is fetched from each period, and asked again after a minute', () => {
  const { watchHeld, pass, answerWait, current, waits, leased } = setup()
  watchHeld(K)
  pass(1_000)
  answerWait(K, unchanged())
  for (let at = 0; at < 59; at++) {
    pass(1_000)
    expect([waits().length, leased()]).toEqual([0, [K]])
    current(K, { etag: '"v1"' })
  }
  pass(2_000)
  expect(waits()).toHaveLength(1)
})

test('until it has said so one key of the namespace finds out', () => {
  const { watchHeld, pass, answerWait, waits, leased, current } = setup()
  const keys = ['doc:1', 'doc:2', 'doc:3']
  for (const key of keys) watchHeld(key)
  pass(1_000)
  expect(leased().sort()).toEqual(keys)
  const [{ message }] = waits()
  expect(waits()).toHaveLength(1)
  for (const key of keys) if (key !== message.key) current(key, { etag: '"v1"' })
  answerWait(message.key, value('v2', { waited: true }), body)
  pass(1_000)
  expect(waits()).toHaveLength(3)
})

test('without an entity tag there is nothing to wait by', () => {
  const { watchHeld, pass, waits, leased } = setup({})
  watchHeld(K)
  pass(1_000)
  expect([waits(), leased()]).toEqual([[], [K]])
})

test('a refresh asks beside it, and what the wait brings counts no more', () => {
  const { watchHeld, pass, onRefresh, value: fetched, answerWait, sent, leased, waited } = setup()
  watchHeld(K)
  pass(5_000)
  onRefresh(K)
  expect(leased()).toEqual([K, K])
  fetched(K, 'v3', { etag: '"v3"' })
  answerWait(K, value('v2', { waited: true }), body)
  expect(sent('a')).toEqual(['value v3'])
  expect(waited).toEqual(['void'])
})

test('a value that is handed over meanwhile makes what the wait brings count no more', () => {
  const { watchHeld, pass, handOver, answerWait, sent, waited } = setup()
  watchHeld(K)
  pass(5_000)
  handOver(K, 'v3')
  answerWait(K, value('v2', { waited: true }), body)
  expect(sent('a')).toEqual(['value v3'])
  expect(waited).toEqual(['void'])
})

test('what a wait brings for a request that keycast.yaml has changed counts no more', () => {
  const { watchHeld, pass, primary, answerWait, sent, waited } = setup()
  watchHeld(K)
  pass(5_000)
  primary.reconfigure({ request: new Set(['doc']), times: new Map() })
  answerWait(K, value('v2', { waited: true }), body)
  expect([sent('a'), waited]).toEqual([[], ['void']])
})

test('nor does it count while such a fetch is under way: nobody knows which of the two is newer', () => {
  const { watchHeld, pass, onRefresh, value: fetched, answerWait, sent } = setup()
  watchHeld(K)
  pass(5_000)
  onRefresh(K)
  answerWait(K, value('v2', { waited: true }), body)
  expect(sent('a')).toEqual([])
  fetched(K, 'v3', { etag: '"v3"' })
  expect(sent('a')).toEqual(['value v3'])
})

test('after a fetch beside it the key is waited for anew, by what that brought', () => {
  const { watchHeld, pass, onRefresh, value: fetched, waits, known } = setup()
  known()
  watchHeld(K)
  pass(1_000)
  onRefresh(K)
  fetched(K, 'v3', { etag: '"v3"' })
  pass(1_000)
  const ofKey = waits().filter(({ message }) => message.key === K)
  expect(ofKey.map(({ message }) => message.etag)).toEqual(['"v1"', '"v3"'])
})

test('one that fails, or whose worker is gone, is followed by a fetch, which says what is wrong', () => {
  for (const end of ['answerWait', 'loseWait'] as const) {
    const { watchHeld, pass, sent, fail, leased, ...ends } = setup()
    watchHeld(K)
    pass(5_000)
    ends[end](K, { kind: 'failed', code: 'backend_timeout', message: 'late' })
    expect(leased()).toEqual([K])
    expect(sent('a')).toEqual([])
    fail(K, 'backend_error')
    expect(sent('a')).toEqual(['backend_error'])
  }
})

test('nobody who left is waited for', () => {
  const { watchHeld, pass, onUnwatch, answerWait, waits, waited } = setup()
  watchHeld(K)
  pass(1_000)
  onUnwatch('a', K)
  pass(2_000)
  answerWait(K, value('v2', { waited: true }), body)
  pass(30_000)
  expect([waits(), waited]).toEqual([[], ['void']])
})

test('beyond its places at a backend keys are fetched each period', () => {
  const { watchHeld, pass, waits, leased, known } = setup()
  known()
  for (let id = 0; id < WAITS_MAX + 10; id++) watchHeld(`doc:${id}`)
  pass(1_000)
  expect(waits()).toHaveLength(WAITS_MAX)
  // The one by which the backend is known waits, too.
  expect(leased().length - WAITS_MAX).toBe(11)
})
