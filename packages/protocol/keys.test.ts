import { idOf, keyProblem, namespaceOf, namespaceProblem } from './keys.js'

test.each(['conversation:42', 'a:A-Z.a_z~0', 'tick-er:a/b/c', 'conversation:...', `conversation:${'x'.repeat(255)}`])(
  '%s is a key',
  key => {
    expect(keyProblem(key)).toBeUndefined()
  },
)

test.each([
  ['', 'namespace:id'],
  ['conversation', 'namespace:id'],
  [':1', 'namespace is empty'],
  ['Conversation:1', 'a namespace is'],
  ['1a:1', 'a namespace is'],
  [`${'n'.repeat(33)}:1`, 'longer than 32'],
  ['conversation:', 'id is empty'],
  [`conversation:${'x'.repeat(256)}`, 'longer than 255'],
  ['conversation:/1', 'empty segment'],
  ['conversation:1/', 'empty segment'],
  ['conversation:1//2', 'empty segment'],
  ['conversation:.', '".."'],
  ['conversation:a/../b', '".."'],
  ['conversation:%2e%2e', 'made of'],
  ['conversation:1?admin=1', 'made of'],
  ['conversation:1#x', 'made of'],
  ['conversation:a b', 'made of'],
  ['conversation:a\nb', 'made of'],
  ['conversation:a\\b', 'made of'],
  ['conversation:a:b', 'made of'],
  ['conversation:é', 'made of'],
  ['conversation:1\n', 'made of'],
])('%j is no key: %s', (key, why) => {
  expect(keyProblem(key)).toContain(why)
})

test('a key falls apart into namespace and id', () => {
  expect(namespaceOf('conversation:a/b')).toBe('conversation')
  expect(idOf('conversation:a/b')).toBe('a/b')
})

test('a namespace of keycast.yaml is held to the same grammar', () => {
  expect(namespaceProblem('room')).toBeUndefined()
  expect(namespaceProblem('Room')).toContain('a namespace is')
})
