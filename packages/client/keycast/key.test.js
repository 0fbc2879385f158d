import { keyProblem } from '../../protocol/keys.js'
import { key, userSegment } from './key.js'

test.each([
  [key('inbox'), 'inbox:'],
  [key('article', 7), 'article:7'],
  [
    key('task', ['acme', 42], { status: 'open', page: undefined, q: '', all: false }),
    'task:acme/42?status=open&all=false',
  ],
  [key('firm', 'Mu\u0308ller GmbH'), 'firm:M\u00fcller GmbH'],
  [key('file', [], { path: 'a/b' }), 'file:?path=a/b'],
])('%s is made from its parts', (made, expected) => {
  expect(made).toBe(expected)
  expect(keyProblem(made)).toBeUndefined()
})

test.each(['a/b', 'a?b=c', 'a&b', '', '50%', 'a|b', '..', 'a*'])(
  '%j is no segment, and the error names it',
  segment => {
    expect(() => key('article', segment)).toThrow(TypeError)
    expect(() => key('article', segment)).toThrow(JSON.stringify(segment))
  },
)

test.each(['a&b', 'a?b', 'a#b'])('%j is no value of a parameter', value => {
  expect(() => key('article', 7, { q: value })).toThrow('q "')
})

test.each(['ann@acme.test', 'Jörg', 'auth0|7', 'a/b', 'a~b', 'Jo\u0308rg', 'x😀'])(
  '%s is a segment as {sub} has it',
  user => {
    expect(keyProblem(`user:${userSegment(user)}`)).toBeUndefined()
  },
)

test('users whose names look alike have different segments', () => {
  const users = ['a|b', 'a~7Cb', 'a~b', 'Jörg', 'Jo\u0308rg']
  expect(new Set(users.map(userSegment)).size).toBe(users.length)
  expect(userSegment('auth0|7')).toBe('auth0~7C7')
  expect(userSegment('ann@acme.test')).toBe('ann@acme.test')
})
