import { isUser, SUB_CHARACTERS_MAX, USER_PREFIX_CHARACTERS_MAX } from './users.ts'

test.each(['ann', 'auth0|5f7c8ec7', 'Zoë 😀', 'a b', '"\\/'])('%j names a user', user => {
  expect(isUser(user)).toBe(true)
})

test.each(['', 'ann\u0000', 'ann\nbob', '\u007f', 'a\u0085', 'a\ud800', '\udc00a'])('%j names no user', user => {
  expect(isUser(user)).toBe(false)
})

test('the longest prefix before the longest sub names a user, and nothing longer does', () => {
  const longest = '€'.repeat(USER_PREFIX_CHARACTERS_MAX) + '€'.repeat(SUB_CHARACTERS_MAX)
  expect(isUser(longest)).toBe(true)
  expect(isUser(`${longest}€`)).toBe(false)
})
