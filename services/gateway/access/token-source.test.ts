import type { IncomingHttpHeaders } from 'node:http'
import { cookieProblem, readTokenSource } from './token-source.ts'

const presented = (headers: IncomingHttpHeaders, cookie?: string) => readTokenSource({ cookie })(headers)

test.each([
  ['Bearer abc', 'abc'],
  ['bearer   abc ', 'abc'],
  ['BEARER a b', 'a b'],
  ['Bearer', ''],
  ['Bearer ', ''],
])('the header %j brings the token %j', (authorization, token) => {
  expect(presented({ authorization })).toEqual({ token, source: 'header' })
})

test.each([undefined, '', 'Basic YTpi', 'Bearertoken', 'token abc'])('the header %j brings none', authorization => {
  expect(presented({ authorization })).toBeUndefined()
})

test.each([
  ['jwt=abc', 'abc'],
  ['a=b; jwt=abc; c=d', 'abc'],
  ['a=b;jwt="abc"', 'abc'],
  ['jwt=a=b', 'a=b'],
  ['jwt=', ''],
  ['jwt="', '"'],
  ['jwt=abc; jwt=abc', 'abc'],
])('the cookies %j bring the token %j', (cookie, token) => {
  expect(presented({ cookie }, 'jwt')).toEqual({ token, source: 'cookie' })
})

test.each(['', 'jwt', 'JWT=abc', 'xjwt=abc', 'a="; jwt"', ';;=;'])('the cookies %j bring none', cookie => {
  expect(presented({ cookie }, 'jwt')).toBeUndefined()
})

test('a cookie given twice with different values brings a token that nobody has', () => {
  expect(presented({ cookie: 'jwt=mine; a=b; jwt=theirs' }, 'jwt')).toEqual({ token: '', source: 'cookie' })
})

test('the header goes before the cookie, also where its token is empty', () => {
  expect(presented({ authorization: 'Bearer abc', cookie: 'jwt=def' }, 'jwt')?.token).toBe('abc')
  expect(presented({ authorization: 'Bearer', cookie: 'jwt=def' }, 'jwt')).toEqual({ token: '', source: 'header' })
  expect(presented({ authorization: 'Basic YTpi', cookie: 'jwt=def' }, 'jwt')?.token).toBe('def')
})

test('without a cookie configured none is looked at', () => {
  expect(presented({ cookie: 'jwt=abc' })).toBeUndefined()
})

test('a cookie needs a name that is one, and origins that are named', () => {
  expect(cookieProblem('__Host-jwt', 'https://example.org')).toBeUndefined()
  expect(cookieProblem('__Host-jwt', '*')).toContain('GATEWAY_ORIGINS')
  for (const name of ['', 'a b', 'a=b', 'a;b']) expect(cookieProblem(name, '')).toContain("no cookie's name")
})
