import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { errorCodes } from '@keycast/protocol'
import type { Namespace } from '@keycast/service'
import type { KeySource } from '../origins/origins.ts'
import { setup } from '../test-support.ts'
import { createEntry, type Entry } from './entry.ts'
import { holdFailure } from './held.ts'
import { createKeyTable, ENTRY_BYTES, MISSING_SHARE, WANT_BYTES, WANTS_INCLUDED } from './key-table.ts'

const room = (keys: number, bodyBytes = 0) => keys * (ENTRY_BYTES + bodyBytes)

test('full of what is wanted, a new key is refused with `capacity` until there is room', () => {
  const { watch, get, onUnwatch, value, take, sent, pass } = setup({
    cacheBytesMax: room(2),
    namespaces: { doc: { refreshMs: 0 } },
  })
  watch('a', 'doc:1')
  watch('a', 'doc:2')
  watch('a', 'doc:3')
  get('a', 'doc:4')
  const answers = take('a')
  expect(answers).toMatchObject([
    { type: 'failed', key: 'doc:3', code: 'capacity', message: errorCodes.capacity },
    { type: 'failed', key: 'doc:4', code: 'capacity' },
  ])
  // One who joins costs nothing.
  watch('b', 'doc:1')
  expect(sent('b')).toEqual([])
  value('doc:1', '')
  value('doc:2', '')
  onUnwatch('a', 'doc:2')
  pass(1_020)
  watch('b', 'doc:3')
  value('doc:3', '')
  expect(sent('b')).toEqual(['value ', 'value '])
})

test('a watch that was refused is granted with the get of the same link that there is room for since', () => {
  const { watch, get, onUnwatch, value, sent, pass, primary } = setup({
    cacheBytesMax: room(1),
    namespaces: { doc: { refreshMs: 0 } },
  })
  watch('a', 'doc:1')
  value('doc:1', '')
  watch('b', 'doc:2')
  onUnwatch('a', 'doc:1')
  pass(1_020)
  get('b', 'doc:2')
  value('doc:2', '')
  expect(sent('b')).toEqual(['value '])
  expect(primary.table.get('doc:2')?.interest.watchers).toMatchObject([{ link: 'b' }])
})

test('a refused key that there is room for since is sent to each link that wants it again, and nothing else', () => {
  const { watch, onUnwatch, value, sent, pass } = setup({
    cacheBytesMax: room(1),
    namespaces: { doc: { refreshMs: 0 } },
  })
  watch('a', 'doc:1')
  value('doc:1', '')
  watch('b', 'doc:2')
  onUnwatch('a', 'doc:1')
  pass(1_020)
  watch('c', 'doc:2')
  watch('b', 'doc:2')
  value('doc:2', '')
  expect(sent('b')).toEqual(['value '])
  expect(sent('c')).toEqual(['value '])
})

test('a watched value that grows beyond the room there is stays as it was, is said to be old, and follows once there is room', () => {
  const { watch, onUnwatch, value, sent, take, pass, asked } = setup({
    cacheBytesMax: room(2, 100),
    namespaces: { doc: {}, still: { refreshMs: 0 } },
  })
  watch('a', 'doc:1')
  value('doc:1', 'v1', { body: Buffer.alloc(100) })
  watch('b', 'still:2')
  value('still:2', 'v1', { body: Buffer.alloc(100) })
  expect(sent('a')).toEqual(['value v1'])
  pass(510)
  value('doc:1', 'v2', { body: Buffer.alloc(101) })
  expect(take('a')).toMatchObject([{ type: 'failed', code: 'capacity', retryAfterMs: 5_000 }])
  // A new watch is sent both.
  watch('c', 'doc:1')
  expect(sent('c')).toEqual(['value v1', 'capacity'])

  onUnwatch('b', 'still:2')
  const before = asked('doc:1')
  pass(4_000)
  expect(asked('doc:1')).toBe(before)
  pass(1_500)
  value('doc:1', 'v2', { body: Buffer.alloc(101) })
  expect(sent('a')).toEqual(['value v2'])
  expect(sent('c')).toEqual(['value v2'])
})

test('a first value that does not fit beside those that are wanted is refused to all who want it', () => {
  const { watch, get, value, sent, kept, primary, pass, asked } = setup({ cacheBytesMax: room(2, 1_000) })
  watch('a', 'doc:1')
  watch('b', 'doc:1')
  get('c', 'doc:1')
  watch('a', 'doc:2')
  value('doc:2', 'v', { body: Buffer.alloc(1_500) })
  value('doc:1', 'v', { body: Buffer.alloc(501) })
  expect(sent('a')).toEqual(['value v', 'capacity'].sort().reverse())
  expect(sent('b')).toEqual(['capacity'])
  expect(sent('c')).toEqual(['capacity'])
  expect([primary.table.stats(), kept()]).toEqual([{ keys: 1, bytes: ENTRY_BYTES + 1_500 }, 1])
  const before = asked('doc:1')
  pass(10_000)
  expect(asked('doc:1')).toBe(before)
  // It may be asked for again.
  watch('b', 'doc:1')
  value('doc:1', 'v', { body: Buffer.alloc(500) })
  expect(sent('b')).toEqual(['value v'])
})

test('what is not wanted gives way, the one used longest ago first', () => {
  const { get, watch, value, sent, asked, primary } = setup({ cacheBytesMax: room(3, 100) })
  const body = Buffer.alloc(100)
  for (const id of [1, 2, 3]) {
    get('a', `doc:${id}`)
    value(`doc:${id}`, 'v', { body })
    sent('a')
  }
  get('a', 'doc:1') // used
  sent('a')
  watch('a', 'doc:4')
  value('doc:4', 'v', { body })
  expect(primary.table.stats().bytes).toBe(room(3, 100))
  for (const id of [1, 3]) get('a', `doc:${id}`)
  expect([asked('doc:1'), asked('doc:3')]).toEqual([1, 1])
  sent('a')
  get('a', 'doc:2')
  expect(asked('doc:2')).toBe(2)
})

test('keys the backend does not have take room, too, and give way as well', () => {
  const { get, fail, sent, kept, primary } = setup({ cacheBytesMax: room(10) })
  for (let id = 0; id < 100; id++) {
    get('a', `doc:${id}`)
    fail(`doc:${id}`, id % 2 ? 'not_found' : 'backend_refused')
    sent('a')
  }
  expect([primary.table.stats(), kept()]).toEqual([{ keys: 10, bytes: room(10) }, 0])
})

test('what is held is counted as it changes, so that being asked for it costs no look at the keys', () => {
  const { watch, get, onUnwatch, value, sent, pass, kept, primary } = setup({ namespaces: { doc: { refreshMs: 0 } } })
  watch('a', 'doc:1')
  watch('b', 'doc:1')
  watch('a', 'doc:2')
  get('a', 'doc:3')
  expect([primary.table.stats().keys, kept()]).toEqual([3, 2])
  for (const id of [1, 2, 3]) value(`doc:${id}`, 'v1')
  sent('a')
  onUnwatch('b', 'doc:1')
  onUnwatch('a', 'doc:2')
  expect([primary.table.stats().keys, kept()]).toEqual([3, 2])
  pass(1_020)
  expect([primary.table.stats().keys, kept()]).toEqual([3, 1])

  const entry = primary.table.get('doc:1')
  Object.defineProperty(entry, 'interest', {
    get() {
      throw new Error('looked at')
    },
  })
  expect([primary.table.stats().keys, kept()]).toEqual([3, 1])
})

test('a body is held without the block it came in, and so is a delta', () => {
  const { watch, value, take, onRefresh } = setup({ namespaces: { doc: { refreshMs: 0 } } })
  const block = Buffer.alloc(8_192, 'x')
  watch('a', 'doc:1')
  value('doc:1', 'v1')
  take('a')
  onRefresh('doc:1')
  value('doc:1', 'v2', { body: block.subarray(100, 300), deltaFrom: 'v1', delta: block.subarray(10, 50) })
  const [answer] = take('a')
  if (answer.type !== 'value') throw new Error('no value')
  expect(answer.body).toEqual(block.subarray(100, 300))
  expect(answer.body.buffer.byteLength).toBe(200)
  expect(answer.delta?.bytes.buffer.byteLength).toBe(40)
})

test('a delta counts as its value does, and is let go of where there is room for the value alone', () => {
  for (const [spare, kept] of [
    [40, true],
    [39, false],
  ]) {
    const { watch, value, take, onRefresh, primary } = setup({
      cacheBytesMax: room(1, 100) + Number(spare),
      namespaces: { doc: { refreshMs: 0 } },
    })
    watch('a', 'doc:1')
    value('doc:1', 'v1', { body: Buffer.alloc(100) })
    take('a')
    onRefresh('doc:1')
    value('doc:1', 'v2', { body: Buffer.alloc(100), deltaFrom: 'v1', delta: Buffer.alloc(40) })
    expect(primary.table.stats().bytes).toBe(room(1, 100) + (kept ? 40 : 0))
    expect(take('a')).toMatchObject([{ version: 'v2', delta: kept ? { from: 'v1' } : undefined }])
  }
})

test('making room walks over no set of what may go: a walk costs more with each that went before', () => {
  const table = createKeyTable({ bytesMax: room(10) })
  const walks = jest.spyOn(Set.prototype, Symbol.iterator)
  for (let id = 0; id < 100; id++) {
    const entry = table.open(`doc:${id}`, undefined, () => newEntry(`doc:${id}`)) as Entry
    holdFailure(entry, { code: 'backend_refused', message: '', askedAt: 0 })
    table.recount(entry)
  }
  expect(walks).not.toHaveBeenCalled()
  walks.mockRestore()
  expect([table.stats().keys, table.get('doc:89'), table.get('doc:90')?.key]).toEqual([10, undefined, 'doc:90'])
})

test('keys that the backend never had take no room that another key needs, though they are watched', () => {
  const { watch, fail, value, sent, primary } = setup({
    cacheBytesMax: room(80),
    namespaces: { doc: { refreshMs: 0 } },
  })
  const share = 80 * MISSING_SHARE
  for (let id = 0; id < 30; id++) {
    watch('stranger', `doc:made-up-${id}`)
    fail(`doc:made-up-${id}`, 'not_found')
  }
  expect(primary.table.stats().keys).toBe(share)
  expect(primary.table.missing()).toBe(share)
  // The one watched longest ago goes first, and its watcher is told.
  const codes = sent('stranger')
  expect(codes.filter(code => code === 'capacity')).toHaveLength(30 - share)
  expect(primary.table.get('doc:made-up-19')).toBeUndefined()
  expect(primary.table.get('doc:made-up-20')?.interest.watchers).toHaveLength(1)

  for (let id = 0; id < 80; id++) {
    watch('a', `doc:${id}`)
    value(`doc:${id}`, '')
  }
  expect(new Set(sent('a'))).toEqual(new Set(['value ']))
  expect(primary.table.stats().keys).toBe(80)
  expect(primary.table.missing()).toBe(0)
})

test('a value that nobody watches gives way before a key that is watched, though the backend never had that', () => {
  const { watch, get, fail, value, sent, primary } = setup({ cacheBytesMax: room(16) })
  watch('a', 'doc:none')
  fail('doc:none', 'not_found')
  get('a', 'doc:none-either')
  fail('doc:none-either', 'not_found')
  for (let id = 0; id < 20; id++) {
    get('a', `doc:${id}`)
    value(`doc:${id}`, '')
    sent('a')
  }
  expect(primary.table.get('doc:none-either')).toBeUndefined()
  expect(primary.table.get('doc:none')).toBeDefined()
})

test('a key is one of those that the backend never had no longer than until it is there', () => {
  const { watch, fail, value, onRefresh, primary, pass } = setup({ namespaces: { doc: { refreshMs: 0 } } })
  watch('a', 'doc:1')
  fail('doc:1', 'not_found')
  expect(primary.table.missing()).toBe(1)
  for (const answer of [() => value('doc:1', 'v1'), () => fail('doc:1', 'not_found')]) {
    pass(10)
    onRefresh('doc:1')
    answer()
    expect(primary.table.missing()).toBe(0)
  }
})

test('links that want a key are counted, and refused where there is no room for one more', () => {
  const { watch, get, value, sent, onUnwatch, pass, primary } = setup({
    cacheBytesMax: room(1) + 2 * WANT_BYTES,
    namespaces: { doc: { refreshMs: 0 } },
  })
  const links = Array.from({ length: WANTS_INCLUDED + 3 }, (_, i) => `link ${i}`)
  for (const link of links) watch(link, 'doc:1')
  expect(primary.table.stats().bytes).toBe(room(1) + 2 * WANT_BYTES)
  value('doc:1', '')
  expect(links.map(link => sent(link))).toEqual([...Array(WANTS_INCLUDED + 2).fill(['value ']), ['capacity']])
  // One that is there may say it again, and room that is left is given to another.
  watch(links[0], 'doc:1')
  expect(sent(links[0])).toEqual(['value '])
  onUnwatch(links[0], 'doc:1')
  get('late', 'doc:1')
  expect(sent('late')).toEqual(['value '])
  pass(10)
  for (const link of links) onUnwatch(link, 'doc:1')
  pass(1_020)
  expect(primary.table.stats().bytes).toBe(room(1))
})

test('a want costs no more memory than it is counted as', () => {
  const fixture = fileURLToPath(new URL('want-memory.fixture.ts', import.meta.url))
  const bytes = Number(execFileSync(process.execPath, ['--expose-gc', fixture], { encoding: 'utf8' }))
  expect(bytes).toBeGreaterThan(WANT_BYTES / 4)
  expect(bytes).toBeLessThan(WANT_BYTES)
})

function newEntry(key: string) {
  const namespace = { maxAgeMs: 1_000, urlFor: () => '' } as unknown as Namespace
  return createEntry(key, namespace, {} as KeySource)
}
