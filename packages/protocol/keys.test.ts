import { idOf, keyProblem, namespaceOf, namespaceProblem, partsOf } from './keys.js'

test.each([
  'conversation:42',
  'a:A-Z.a_z~0',
  'tick-er:a/b/c',
  'conversation:...',
  'inbox:',
  'user:ann@acme.test',
  "x:@:+,=!$'()",
  'firm:Müller & Söhne'.replace('&', '+'),
  'x:日本語/हिन्दी',
  'tasks:42?status=open&page[size]=20',
  'tasks:?q=a/b',
  `x:${'é'.repeat(127)}`,
  `conversation:${'x'.repeat(255)}`,
])('%s is a key', key => {
  expect(keyProblem(key)).toBeUndefined()
})

test.each([
  ['', 'namespace:id'],
  ['conversation', 'namespace:id'],
  [':1', 'namespace is empty'],
  ['Conversation:1', 'a namespace is'],
  ['1a:1', 'a namespace is'],
  [`${'n'.repeat(33)}:1`, 'longer than 32'],
  [`conversation:${'x'.repeat(256)}`, 'longer than 255'],
  ['conversation:/1', 'empty segment'],
  ['conversation:1/', 'empty segment'],
  ['conversation:1//2', 'empty segment'],
  ['conversation:.', '".."'],
  ['conversation:a/../b', '".."'],
  ['conversation:%2e%2e', 'made of'],
  ['conversation:1?admin', 'name=value'],
  ['conversation:1?', 'name=value'],
  ['conversation:1?a=', 'name=value'],
  ['conversation:1?a=1&', 'name=value'],
  ['conversation:1?a=1?b=2', 'name=value'],
  ['conversation:1?a=%20', 'name=value'],
  ['conversation:/?a=1', 'empty segment'],
  ['conversation:Mu\u0308ller', 'NFC'],
  ['conversation:1?q=Mu\u0308ller', 'NFC'],
  [`x:${'é'.repeat(128)}`, 'longer than 255 bytes'],
  ['conversation:1&a=2', 'made of'],
  ['conversation:1#x', 'made of'],
  ['conversation:a|b', 'made of'],
  ['conversation:a*', 'made of'],
  ['conversation:{a}', 'made of'],
  ['conversation:a;b', 'made of'],
  ['conversation:a\u00a0b', 'made of'],
  ['conversation:a\u202eb', 'made of'],
  ['conversation:\ud83d', 'made of'],
  ['conversation:😀', 'made of'],
  ['conversation:a\nb', 'made of'],
  ['conversation:a\\b', 'made of'],
  ['conversation:1\n', 'made of'],
])('%j is no key: %s', (key, why) => {
  expect(keyProblem(key)).toContain(why)
})

test('a key falls apart into namespace and id', () => {
  expect(namespaceOf('conversation:a/b')).toBe('conversation')
  expect(idOf('conversation:a/b')).toBe('a/b')
})

test('an id falls apart into segments and parameters', () => {
  expect(partsOf('a/b?status=open&q=a=b')).toEqual({
    segments: ['a', 'b'],
    parameters: [
      ['status', 'open'],
      ['q', 'a=b'],
    ],
  })
  expect(partsOf('')).toEqual({ segments: [], parameters: [] })
})

test('a namespace of keycast.yaml is held to the same grammar', () => {
  expect(namespaceProblem('room')).toBeUndefined()
  expect(namespaceProblem('Room')).toContain('a namespace is')
})
