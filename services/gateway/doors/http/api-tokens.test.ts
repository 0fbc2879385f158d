import { createHolders, readApiTokens } from './api-tokens.ts'

test('entries have a name, scopes and a token, and stand in any white space', () => {
  expect(readApiTokens(' backend:refresh,publish:a-secret+/~==\n\tann:admin:another-secret\n')).toEqual([
    { name: 'backend', scopes: ['refresh', 'publish'], token: 'a-secret+/~==' },
    { name: 'ann', scopes: ['admin'], token: 'another-secret' },
  ])
  expect(readApiTokens('')).toEqual([])
})

test.each([
  ['a token alone', 'Zm9vYmFyYmF6', 'entry 1 must be NAME:SCOPES:TOKEN'],
  ['a scope that is none', 'ann:admin:a-secret-1 bob:refresh,delete:a-secret-2', 'bob: scope 2 is not one of refresh,'],
  ['no scope', 'ann::a-secret-1', 'ann: scope 1 is not one of'],
  ['a token that is too short', 'ann:admin:secret', 'ann: the token must have 8'],
  ['a token with a colon', 'ann:admin:se:cret-1', 'ann: the token must have 8'],
  ['a name twice', 'ann:admin:a-secret-1 ann:refresh:a-secret-2', 'ann is there twice'],
  ['a token twice', 'ann:admin:a-secret-1 bob:refresh:a-secret-1', 'bob has the token of another entry'],
])('%s is refused by name, and no token is said', (_, text, problem) => {
  expect(() => readApiTokens(text)).toThrow(problem)
  expect(() => readApiTokens(text)).toThrow(
    expect.objectContaining({ message: expect.not.stringMatching(/secret|Zm9v/) }),
  )
})

test('the holder of a token is found, and of no other text', () => {
  const holderOf = createHolders([
    { name: 'backend', scopes: ['refresh'], token: 'a-secret-1' },
    { name: 'ann', scopes: ['admin'], token: 'a-secret-2' },
  ])
  expect(holderOf('a-secret-2')).toEqual({ name: 'ann', scopes: ['admin'] })
  for (const text of ['', 'a-secret', 'a-secret-22', 'ann', 'ann:admin:a-secret-2'])
    expect(holderOf(text)).toBeUndefined()
})
