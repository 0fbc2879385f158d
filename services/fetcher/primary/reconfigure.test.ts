import type { Namespace } from '@keycast/service'
import { answering, setup, watched } from './test-support.ts'

const none = { request: new Set<string>(), times: new Map() }

/** As a new keycast.yaml does: the namespace is the same object. */
function change(primary: ReturnType<typeof setup>, key: string, fields: Partial<Namespace>, what: object) {
  const namespace = primary.primary.table.get(key)?.namespace as Namespace
  Object.assign(namespace, fields)
  primary.primary.reconfigure({ ...none, ...what })
}

const moved = { urlFor: (id: string) => `http://other/${id}`, origin: 'http://other' }
const request = { request: new Set(['doc']) }
const times = { times: new Map([['doc', { beforeMs: 3_000 }]]) }

test('the next fetch of a key goes to the new URL, without what the old one called its value', () => {
  const primary = watched([])
  primary.watch('a', 'doc:1')
  primary.value('doc:1', 'v1', { etag: '"1"', lastModified: 'Mon' } as any)
  primary.pass(1_000)
  expect(primary.lease('doc:1')?.message).toMatchObject({ url: 'http://backend/doc/1', etag: '"1"' })
  primary.current('doc:1', { etag: '"1"' })
  change(primary, 'doc:1', moved, request)
  primary.pass(1_000)
  expect(primary.lease('doc:1')?.message).toMatchObject({
    url: 'http://other/1',
    version: 'v1',
    etag: undefined,
    lastModified: undefined,
  })
})

test('what a fetch brings that was sent to the old URL is shown, and its ETag is forgotten', () => {
  const primary = watched(['doc:1'])
  primary.pass(1_000)
  change(primary, 'doc:1', moved, request)
  primary.value('doc:1', 'v2', { etag: '"2"' } as any)
  expect(primary.sent('a')).toEqual(['value v2'])
  primary.pass(1_000)
  expect(primary.lease('doc:1')?.message).toMatchObject({ url: 'http://other/1', etag: undefined })
  primary.value('doc:1', 'v3', { etag: '"3"' } as any)
  primary.pass(1_000)
  expect(primary.lease('doc:1')?.message).toMatchObject({ etag: '"3"' })
})

test('a backend that a namespace has left says nothing of the next one', () => {
  const keys = Array.from({ length: 40 }, (_, id) => `doc:${id}`)
  const primary = watched(keys)
  primary.pass(1_000)
  change(primary, 'doc:0', moved, request)
  for (const key of primary.leased()) primary.fail(key, 'backend_unreachable')
  expect(primary.primary.sources.get('doc')?.breaker.isOpen()).toBe(false)
  expect(primary.primary.sources.get('doc')?.origin.name).toBe('http://other')
})

test('a shorter refresh holds at once, and begins where there was none', () => {
  const primary = watched(['doc:1'], { namespaces: { doc: { refreshMs: 0 } } })
  primary.pass(60_000)
  expect(primary.asked('doc:1')).toBe(1)
  change(primary, 'doc:1', { refreshMs: 500 }, times)
  primary.pass(500)
  expect(primary.asked('doc:1')).toBe(2)
})

test('a period begins for a key that the backend never had, too', () => {
  const primary = setup({ namespaces: { doc: { refreshMs: 0 } } })
  primary.watch('a', 'doc:1')
  primary.fail('doc:1', 'not_found')
  change(primary, 'doc:1', { refreshMs: 500 }, times)
  primary.pass(500)
  expect(primary.asked('doc:1')).toBe(2)
})

test('a period begins also where a value was handed over, and the fetch before it has not ended', () => {
  const primary = watched(['doc:1'], { namespaces: { doc: { refreshMs: 0 } } })
  primary.onRefresh('doc:1')
  primary.handOver('doc:1', 'v2')
  change(primary, 'doc:1', { refreshMs: 500 }, times)
  primary.value('doc:1', 'v1')
  primary.pass(500)
  expect(primary.leased()).toEqual(['doc:1'])
})

test('a gateway that relies on beats is told the new period', () => {
  const primary = setup({ namespaces: { doc: { refreshMs: 20_000 } } })
  primary.onWatch('a', { key: 'doc:1', quiet: true })
  primary.value('doc:1', 'v1')
  expect(primary.take('a')).toMatchObject([{ type: 'value', next: { everyMs: 20_000 } }])
  change(primary, 'doc:1', { refreshMs: 60_000 }, times)
  expect(primary.take('a')).toMatchObject([{ next: { everyMs: 60_000 } }])
})

test('a longer refresh holds at once, too', () => {
  const primary = watched(['doc:1'])
  change(primary, 'doc:1', { refreshMs: 4_000 }, times)
  primary.pass(
    20_000,
    answering(primary, key => primary.current(key)),
  )
  expect(primary.asked('doc:1')).toBe(6)
})

test('a key whose id no new URL has a place for is refused, and ends no node', () => {
  const primary = watched(['doc:1'])
  const urlFor = () => {
    throw new RangeError('the id has no segment 2')
  }
  change(primary, 'doc:1', { urlFor, ids: { min: 2, max: 2 } }, request)
  primary.pass(10_000)
  expect(primary.sent('a')).toEqual(['bad_key'])
  expect(primary.primary.table.get('doc:1')).toBeUndefined()
})
