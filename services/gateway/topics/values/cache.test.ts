import type { Namespace } from '@keycast/service'
import { createNamespaces, noKind } from '../../test-support.ts'
import { createCache, createEntry, ENTRY_BYTES } from './cache.ts'
import { createValue } from './value.ts'

const namespace = createNamespaces().fetched.get('tick') as Namespace

const unheard = { onUnwanted() {}, mayKeep: () => true, onRemoved() {} }

function setup(options: { bytesMax: number }) {
  const cache = createCache({ ...unheard, ...options })
  const hold = (key: string, bytes: number) => {
    const entry = createEntry(key, namespace, noKind)
    cache.add(entry)
    const body = Buffer.alloc(bytes)
    entry.value = createValue({ key, version: 'v', contentType: 'x/y', format: 'json', body })
    cache.update(entry)
    return entry
  }
  return { cache, hold }
}

const someone = [{}] as any

test('unwanted entries go when room is needed, the least recently used first', () => {
  const { cache, hold } = setup({ bytesMax: 3 * (ENTRY_BYTES + 1_000) })
  hold('a', 1_000)
  hold('b', 1_000)
  hold('c', 1_000)
  cache.get('a')
  cache.peek('b')

  hold('d', 1_000)

  expect(['a', 'b', 'c', 'd'].filter(key => cache.peek(key))).toEqual(['a', 'c', 'd'])
  expect(cache.stats()).toEqual({ bytes: 3 * (ENTRY_BYTES + 1_000), entries: 3, idle: 3 })
})

test('making room walks over no set of what may go: a walk costs more with each that went before', () => {
  const { cache, hold } = setup({ bytesMax: 10 * (ENTRY_BYTES + 1_000) })
  const walks = jest.spyOn(Set.prototype, Symbol.iterator)
  for (let id = 0; id < 100; id++) hold(`doc:${id}`, 1_000)
  expect(walks).not.toHaveBeenCalled()
  walks.mockRestore()
  expect([cache.stats().entries, cache.peek('doc:89'), cache.peek('doc:90')?.key]).toEqual([10, undefined, 'doc:90'])
})

test('a wanted entry stays whatever it takes, and fills the cache for new ones', () => {
  const { cache, hold } = setup({ bytesMax: 10_000 })
  const watched = hold('a', 5_000)
  watched.subscriptions = someone
  cache.update(watched)
  hold('b', 1_000)
  expect(cache.isFull()).toBe(false)

  watched.value = createValue({
    key: 'a',
    version: 'w',
    contentType: 'x/y',
    format: 'json',
    body: Buffer.alloc(20_000),
  })
  cache.update(watched)

  expect(cache.isFull()).toBe(true)
  expect(cache.peek('a')).toBe(watched)
  expect(cache.peek('b')).toBeUndefined()
})

test('a wanted entry fits where the other wanted ones leave it room, whatever else is cached', () => {
  const { cache, hold } = setup({ bytesMax: 10_000 })
  const watched = hold('a', 3_000)
  watched.subscriptions = someone
  cache.update(watched)
  hold('b', 3_000)
  const entry = createEntry('c', namespace, noKind)
  cache.add(entry)
  entry.subscriptions = someone
  cache.update(entry)
  const sized = (bytes: number) =>
    createValue({ key: 'c', version: 'v', contentType: 'x/y', format: 'json', body: Buffer.alloc(bytes) })

  entry.value = sized(10_000 - 3_000 - 2 * ENTRY_BYTES)
  expect(cache.fits(entry)).toBe(true)
  entry.value = sized(10_000 - 3_000 - 2 * ENTRY_BYTES + 1)
  expect(cache.fits(entry)).toBe(false)
})

test('an entry without anything worth knowing goes when it is not wanted', () => {
  const { cache } = setup({ bytesMax: 10_000 })
  const entry = createEntry('a', namespace, noKind)
  cache.add(entry)
  entry.waiters = someone
  cache.update(entry)
  expect(cache.peek('a')).toBe(entry)
  entry.waiters = []
  cache.update(entry)
  expect(cache.peek('a')).toBeUndefined()
  expect(cache.stats()).toEqual({ bytes: 0, entries: 0, idle: 0 })
})

test('an entry that is no longer wanted is reported', () => {
  const unwanted: string[] = []
  const cache = createCache({ ...unheard, bytesMax: 10_000, onUnwanted: ({ key }) => unwanted.push(key) })
  const entry = createEntry('a', namespace, noKind)
  cache.add(entry)
  entry.waiters = someone
  cache.update(entry)
  expect(unwanted).toEqual([])
  entry.waiters = []
  cache.update(entry)
  expect(unwanted).toEqual(['a'])
})

test('a value that is not to be stored goes when it is not wanted', () => {
  const { cache, hold } = setup({ bytesMax: 10_000 })
  const entry = hold('a', 10)
  entry.store = false
  cache.update(entry)
  expect(cache.peek('a')).toBeUndefined()
})

test('that the backend has nothing is worth knowing', () => {
  const { cache } = setup({ bytesMax: 10_000 })
  const entry = createEntry('a', namespace, noKind)
  cache.add(entry)
  entry.failure = { problem: { code: 'not_found', retryAfterMs: 1 }, atMs: 0, isLocal: false }
  cache.update(entry)
  expect(cache.peek('a')).toBe(entry)
})

test('a value larger than the whole cache is not held', () => {
  const { cache, hold } = setup({ bytesMax: 10_000 })
  hold('a', 20_000)
  expect(cache.stats()).toEqual({ bytes: 0, entries: 0, idle: 0 })
})

test('updating what has gone already changes nothing', () => {
  const { cache, hold } = setup({ bytesMax: 10_000 })
  const gone = hold('a', 20_000)
  const other = hold('a', 10)
  cache.update(gone)
  expect(cache.peek('a')).toBe(other)
  expect(cache.stats().bytes).toBe(ENTRY_BYTES + 10)
})
