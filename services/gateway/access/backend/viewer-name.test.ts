import { createHash } from 'node:crypto'
import { NotComparable, VIEWER_CLAIMS, viewerName } from './viewer-name.ts'

const of = (claims: Record<string, unknown>, listed: readonly string[] = VIEWER_CLAIMS) =>
  viewerName('ann', claims, listed)

const NOBODY_ELSE = createHash('sha256').update('ann').digest('base64url')

test.each([
  ['the scope', { scope: 'read write' }, { scope: 'read' }],
  ['the client', { azp: 'app' }, { azp: 'partner' }],
  ['the tenant', { tid: '1' }, { tid: '2' }],
  ['the type of a value', { org_id: '1' }, { org_id: 1 }],
  ['a role', { roles: ['reader', 'editor'] }, { roles: ['reader'] }],
  ['who acts for the user', { act: { sub: 'bot', act: { sub: 'a' } } }, { act: { sub: 'bot' } }],
  ['a claim that is absent, not empty', { groups: [] }, {}],
  ['a claim that is null', { acr: null }, {}],
  ['a list and its only element', { scope: ['read'] }, { scope: 'read' }],
  ['a list and a map of the same', { act: ['sub', 'bot'] }, { act: { sub: 'bot' } }],
  ['which claim has the value', { groups: ['a'] }, { roles: ['a'] }],
])('viewers differ by %s', (_, one, other) => {
  expect(of(one)).not.toBe(of(other))
})

test.each([
  ['the order of a scope', { scope: 'write read' }, { scope: 'read write read' }],
  ['the order of a list', { roles: ['b', 'a'] }, { roles: ['a', 'b', 'b'] }],
  ['the order of fields', { act: { sub: 'bot', iss: 'x' } }, { act: { iss: 'x', sub: 'bot' } }],
  [
    'the order in a list of maps',
    { authorization_details: [{ type: 'a', actions: ['r', 'w'] }, { type: 'b' }] },
    { authorization_details: [{ type: 'b' }, { actions: ['w', 'r'], type: 'a' }] },
  ],
  ['what is new with each token', { jti: '1', exp: 5, sid: 'x' }, { jti: '2', exp: 9, nonce: 'y' }],
  ['the rights that gateways apply themselves', { keys: { read: ['a:*'] } }, { keys: {} }],
])('%s makes no other viewer', (_, one, other) => {
  expect(of(one)).toBe(of(other))
})

test('a claim that the backend judges by counts once it is listed, and others no more', () => {
  expect(of({ plan: 'gold' })).toBe(of({ plan: 'free' }))
  expect(of({ plan: 'gold' }, ['plan'])).not.toBe(of({ plan: 'free' }, ['plan']))
  expect(of({ tid: '1' }, ['plan'])).toBe(of({ tid: '2' }, ['plan']))
})

test('a token without any of the claims is its user', () => {
  expect(of({ sub: 'ann' })).toBe(NOBODY_ELSE)
  expect(viewerName('bob', {}, VIEWER_CLAIMS)).not.toBe(NOBODY_ELSE)
})

test('no name of a user makes it the viewer that another is by its claims', () => {
  expect(viewerName('ann', { tid: '1' }, ['tid'])).not.toBe(viewerName('ann[["tid","1"]]', {}, ['tid']))
})

test.each([
  ['a number that is not exact', { tid: 2 ** 53 }],
  ['a value too deep', { act: JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) }],
])('%s cannot be compared', (_, claims) => {
  expect(() => of(claims)).toThrow(NotComparable)
})
