import { SUB_CHARACTERS_MAX, USER_CHARACTERS_MAX, USER_PREFIX_CHARACTERS_MAX } from '@keycast/protocol'
import { checkPublish } from './check-publish.ts'

const namespaces = {
  get: (name: string) => (name === 'room' ? { bytesMax: 8 } : undefined),
} as any
const good = {
  type: 'publish' as const,
  room: 'room:1',
  messageId: 'a'.repeat(16),
  from: 'ann',
  data: Buffer.from('"hello"'),
}

test('a good publish is kept', () => {
  expect(checkPublish(good, namespaces)).toBeUndefined()
  expect(checkPublish({ ...good, messageId: undefined, from: '' }, namespaces)).toBeUndefined()
})

test('every user that a token can name may publish', () => {
  const from = 'p'.repeat(USER_PREFIX_CHARACTERS_MAX) + 's'.repeat(SUB_CHARACTERS_MAX)
  expect(checkPublish({ ...good, from }, namespaces)).toBeUndefined()
})

test.each([
  ['of no room', { room: 'nonsense' }, 'unknown_namespace'],
  ['of a namespace that this node does not have', { room: 'other:1' }, 'unknown_namespace'],
  ['that is too large', { data: Buffer.alloc(9, '1') }, 'too_large'],
  ['without data', { data: Buffer.alloc(0) }, 'bad_message'],
  ['with a short id', { messageId: 'short' }, 'bad_message'],
  ['with an id of other characters', { messageId: 'a b'.padEnd(16, 'c') }, 'bad_message'],
  ['from a name that would break the log', { from: 'ann\u0000bob' }, 'bad_message'],
  ['from a name without end', { from: 'a'.repeat(USER_CHARACTERS_MAX + 1) }, 'bad_message'],
])('a publish %s is refused', (_, given, problem) => {
  expect(checkPublish({ ...good, ...given }, namespaces)).toBe(problem)
})
