import { createHash } from 'node:crypto'
import { createDocuments, type Kind } from './documents.ts'

const NOW_MS = Date.UTC(2026, 5, 1, 12)

const read = ({
  changeMs = 5_000,
  kind = 'conversations',
  id = '42',
  bytes = 130_000,
  nowMs = NOW_MS,
}: Partial<{ changeMs: number; kind: Kind; id: string; bytes: number; nowMs: number }> = {}) =>
  createDocuments({ changeMs }).read(kind, id, bytes, nowMs)

const parse = (asked?: Parameters<typeof read>[0]) => JSON.parse(read(asked).content().toString())

const lengths = [1_000, 1_001, 2_000, 65_536, 130_000]
const ids = ['1', 'a/b/c', 'x'.repeat(255)]

describe.each(['conversations', 'text', 'binary'] as const)('%s', kind => {
  test.each(lengths)('are exactly as long as asked: %i bytes', bytes => {
    for (const id of ids) {
      for (const changeMs of [0, 1, 5_000]) {
        expect(read({ kind, id, bytes, changeMs }).content()).toHaveLength(bytes)
      }
    }
  })

  test('are the same for the same id and time, in every process', () => {
    expect(read({ kind, nowMs: NOW_MS + 4_999 })).toMatchObject({ etag: read({ kind }).etag, changedAtMs: NOW_MS })
    expect(
      read({ kind, nowMs: NOW_MS + 4_999 })
        .content()
        .equals(read({ kind }).content()),
    ).toBe(true)
  })

  test('have an entity tag that differs whenever the content does', () => {
    const documents = createDocuments({ changeMs: 1_000 })
    const seen = new Map()
    for (const id of ['1', '2']) {
      for (const bytes of [1_000, 2_000]) {
        for (const nowMs of [NOW_MS, NOW_MS + 999, NOW_MS + 1_000, NOW_MS + 2_000]) {
          const { etag, content } = documents.read(kind, id, bytes, nowMs)
          expect(etag).toMatch(/^"[\w-]{22}"$/)
          const digest = createHash('sha256').update(content()).digest('hex')
          expect(seen.get(etag) ?? digest).toBe(digest)
          seen.set(etag, digest)
        }
      }
    }
    expect(new Set(seen.values()).size).toBe(2 * 2 * 3)
    expect(seen.size).toBe(2 * 2 * 3)
  })
})

test('a conversation has a title, participants and messages with author and time', () => {
  const conversation = parse()
  expect(conversation).toMatchObject({
    id: '42',
    revision: NOW_MS / 5_000,
    changedAt: new Date(NOW_MS).toISOString(),
    title: expect.any(String),
  })
  expect(conversation.messages.length).toBeGreaterThan(700)
  for (const { author, time, text } of conversation.messages) {
    expect(conversation.participants).toContain(author)
    expect(new Date(time).toISOString()).toBe(time)
    expect(text.length).toBeGreaterThan(50)
  }
})

test('the newest message is as old as the revision', () => {
  expect(parse().messages.at(-1).time).toBe(parse().changedAt)
})

test('a change adds one message and drops one; all others keep their bytes', () => {
  const documents = createDocuments({ changeMs: 1_000 })
  const contentAt = (nowMs: number) => documents.read('conversations', '42', 130_000, nowMs).content()
  const before = contentAt(NOW_MS)
  const after = contentAt(NOW_MS + 1_000)
  const kept = before.subarray(before.indexOf('},{') + 2, -2)
  expect(kept.length).toBeGreaterThan(129_000)
  expect(after.includes(kept)).toBe(true)
  const [old, recent] = [before, after].map(content => JSON.parse(content.toString()).messages)
  expect(recent.slice(0, -1)).toEqual(old.slice(1))
})

test('a change of bytes is a change of their head', () => {
  const [before, after] = [NOW_MS, NOW_MS + 5_000].map(nowMs => read({ kind: 'binary', nowMs }).content())
  const differing = before.reduce((count, byte, at) => count + (byte === after[at] ? 0 : 1), 0)
  expect(differing).toBeGreaterThan(0)
  expect(differing).toBeLessThan(50)
})

test('the binary form is not UTF-8, and the text form is more than ASCII', () => {
  expect(() => new TextDecoder('utf-8', { fatal: true }).decode(read({ kind: 'binary' }).content())).toThrow()
  const text = new TextDecoder('utf-8', { fatal: true }).decode(read({ kind: 'text' }).content())
  expect(text).toContain('Zoë')
})

test('the revision rises by one with each change and survives a restart', () => {
  let documents = createDocuments({ changeMs: 700 })
  const revisions = []
  for (let change = 0; change < 10; change += 1) {
    if (change === 5) documents = createDocuments({ changeMs: 700 })
    const content = documents.read('conversations', '1', 1_000, NOW_MS + change * 700).content()
    revisions.push(JSON.parse(content.toString()).revision - Math.floor(NOW_MS / 700))
  }
  expect(revisions).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('without a period nothing ever changes', () => {
  const later = { changeMs: 0, nowMs: NOW_MS + 1e9 }
  expect(read(later).content()).toEqual(read({ changeMs: 0 }).content())
  expect(parse(later).revision).toBe(1)
})

test('each id has its own conversation, also when more lengths are asked for than bodies are kept', () => {
  const documents = createDocuments({ changeMs: 0 })
  for (let bytes = 1_000; bytes < 1_050; bytes += 1) {
    for (const id of ['1', '2']) {
      const content = documents.read('conversations', id, bytes, NOW_MS).content()
      expect(content).toHaveLength(bytes)
      expect(JSON.parse(content.toString()).id).toBe(id)
    }
  }
})
