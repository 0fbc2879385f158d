import type { Namespace } from '@keycast/service'
import { randomNumbers } from '../../../../test/support/random.js'
import { createNamespaces, noKind } from '../../test-support.ts'
import { type Cache, createCache, createEntry, ENTRY_BYTES, type Entry, NOBODY } from './cache.ts'
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
  expect(cache.stats()).toMatchObject({ bytes: 3 * (ENTRY_BYTES + 1_000), entries: 3, idle: 3 })
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
  expect(cache.refusal(undefined, undefined)).toBeUndefined()

  watched.value = createValue({
    key: 'a',
    version: 'w',
    contentType: 'x/y',
    format: 'json',
    body: Buffer.alloc(20_000),
  })
  cache.update(watched)

  expect(cache.refusal(undefined, undefined)).toEqual({ code: 'capacity' })
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
  expect(cache.misfit(entry)).toBeUndefined()
  entry.value = sized(10_000 - 3_000 - 2 * ENTRY_BYTES + 1)
  expect(cache.misfit(entry)).toEqual({ code: 'capacity' })
})

/** Entries that a payer wants, until there is no share left of it for another. */
function fill(cache: Cache, payer: string, wanted: (name: string) => Entry) {
  let count = 0
  while (!cache.refusal(payer, undefined)) wanted(`${payer}-${count++}`)
  return count
}

const notFound = { problem: { code: 'not_found' as const, retryAfterMs: 1 }, atMs: 0, isLocal: false }

function setupShares() {
  const { cache } = setup({ bytesMax: 1_000 * ENTRY_BYTES })
  const wantedBy = (payer: string) => (key: string) => {
    const entry = createEntry(key, namespace, noKind)
    cache.add(entry)
    Object.assign(entry, { subscriptions: someone, paying: { payer, account: undefined } })
    cache.update(entry)
    return entry
  }
  const valued = (entry: Entry, bytes: number) => {
    const content = { key: entry.key, version: 'v', contentType: 'x/y', format: 'json' as const }
    entry.value = createValue({ ...content, body: Buffer.alloc(bytes) })
    return entry
  }
  return { cache, wantedBy, valued }
}

test('whatever one does, others find room: nobody holds more than their share', () => {
  const { cache, wantedBy } = setupShares()
  expect(fill(cache, 'a1.u1', wantedBy('a1.u1'))).toBe(111)
  expect(cache.refusal('a1.u1', undefined)).toEqual({
    code: 'capacity',
    message: expect.stringContaining('unsubscribe'),
  })
  let users = 2
  while (fill(cache, `a1.u${users}`, wantedBy(`a1.u${users}`)) > 0) users++
  expect(cache.stats().entries).toBe(500)
  expect(fill(cache, 'a2.u0', wantedBy('a2.u0'))).toBeGreaterThan(50)
})

test('a share is free again when the key is no longer wanted', () => {
  const { cache, wantedBy } = setupShares()
  const [first] = [wantedBy('u1')('doc:1'), fill(cache, 'u1', wantedBy('u1'))]
  first.subscriptions = NOBODY
  cache.update(first)
  expect(cache.refusal('u1', undefined)).toBeUndefined()
})

test('a first value past the share of the one who pays is refused them alone; a later one is taken', () => {
  const { cache, wantedBy, valued } = setupShares()
  const entry = wantedBy('u1')('doc:1')
  expect(cache.misfit(valued(entry, 200 * ENTRY_BYTES))).toMatchObject({ code: 'capacity', account: 'u1' })
  expect(cache.misfit(valued(entry, 100 * ENTRY_BYTES))).toBeUndefined()
  cache.update(valued(entry, 200 * ENTRY_BYTES))
  expect(cache.stats().bytes).toBe(201 * ENTRY_BYTES)
  expect(cache.refusal('u1', undefined)).toMatchObject({ code: 'capacity' })
})

test('keys that were never found take a share of their part alone', () => {
  const { cache, wantedBy } = setupShares()
  const absent = (payer: string) => {
    let count = 0
    for (;;) {
      const entry = wantedBy(payer)(`${payer}-${count}`)
      entry.failure = notFound
      const misfit = cache.misfit(entry)
      if (misfit) return { count, misfit }
      cache.update(entry)
      count++
    }
  }
  expect(absent('u1')).toMatchObject({ count: 14, misfit: { code: 'capacity', account: 'u1' } })
  expect(absent('a2')).toMatchObject({ count: 56, misfit: { account: 'a2' } })
  expect(absent('u3')).toMatchObject({ misfit: { account: 'u3' } })
})

test('a key that was asked for in vain takes a share of that part, too, once it is watched', () => {
  const { cache, wantedBy } = setupShares()
  let watched = 0
  for (; watched < 50; watched++) {
    const entry = wantedBy('u1')(`doc:${watched}`)
    entry.failure = notFound
    const { subscriptions, paying } = entry
    entry.subscriptions = NOBODY
    cache.update(entry)
    if (cache.refusal('u1', entry)) break
    Object.assign(entry, { subscriptions, paying })
    cache.update(entry)
  }
  expect(watched).toBe(14)
})

test.each([1, 2, 3])('after any changes in any order nobody is charged for what is not wanted, seed %i', seed => {
  const { cache, valued } = setupShares()
  const random = randomNumbers(seed)
  const below = (count: number) => Math.floor(random() * count)
  const change = (entry: Entry) => {
    const paying = { payer: `a${below(3)}.u${below(9)}`, account: undefined }
    Object.assign(entry, below(2) ? { subscriptions: someone, paying } : { subscriptions: NOBODY })
    if (below(3) === 0) entry.failure = { problem: { code: 'not_found', retryAfterMs: 1 }, atMs: 0, isLocal: false }
    if (below(4) === 0) Object.assign(valued(entry, below(50_000)), { wasFound: true, failure: undefined })
    cache.update(entry)
  }
  for (let step = 0; step < 5_000; step++) {
    const key = `doc:${below(40)}`
    const entry = cache.get(key) ?? createEntry(key, namespace, noKind)
    if (!cache.peek(key)) cache.add(entry)
    change(entry)
  }
  expect(cache.accounts()).toBeGreaterThan(0)
  for (const entry of cache.entries()) {
    entry.subscriptions = NOBODY
    cache.update(entry)
  }
  expect(cache.accounts()).toBe(0)
})

test('whoever is charged for a key, another may be in their place who would not hold more than they could alone', () => {
  const { cache, wantedBy, valued } = setupShares()
  const large = wantedBy('a1')('large')
  cache.update(valued(large, 400 * ENTRY_BYTES))
  const paying = (payer: string | undefined) => ({ payer, account: undefined })
  expect(['a2', 'a1.u1', 'u1', undefined].map(payer => cache.mayPay(large, paying(payer)))).toEqual([
    true,
    false,
    false,
    true,
  ])
  large.paying = paying('a2')
  cache.update(large)
  expect(cache.refusal('a1', undefined)).toBeUndefined()
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
  expect(cache.stats()).toMatchObject({ bytes: 0, entries: 0, idle: 0 })
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
  expect(cache.stats()).toMatchObject({ bytes: 0, entries: 0, idle: 0 })
})

test('updating what has gone already changes nothing', () => {
  const { cache, hold } = setup({ bytesMax: 10_000 })
  const gone = hold('a', 20_000)
  const other = hold('a', 10)
  cache.update(gone)
  expect(cache.peek('a')).toBe(other)
  expect(cache.stats().bytes).toBe(ENTRY_BYTES + 10)
})
