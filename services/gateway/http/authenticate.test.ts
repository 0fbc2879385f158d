import { createAuthenticate } from './authenticate.ts'

/** @param {string | undefined} user whom the request's token names; `undefined`: none came @param {number} retryAfterMs */
const authenticateAs = (user, retryAfterMs) =>
  createAuthenticate({
    identify: /** @type {any} */ ({
      peerOf: () => ({ address: '192.0.2.7', isNamed: true }),
      verifyRequest: async () => (user === undefined ? undefined : { verified: { user, rights: { grants: [] } } }),
    }),
    anonymous: /** @type {any} */ ({ grants: [] }),
    viewers: /** @type {any} */ ({ of: () => undefined }),
    accounts: /** @type {any} */ ({ of: (/** @type {string} */ name) => ({ name }), charge: () => retryAfterMs }),
    revocations: { isRevoked: () => false },
  })(/** @type {any} */ ({ headers: {} }))

test.each([
  ['ann', 'user'],
  [undefined, 'address'],
])('too many requests of %s: the answer says whose limit it is', async (user, whose) => {
  expect(await authenticateAs(user, 1_500)).toEqual({
    hasToken: user !== undefined,
    problem: {
      code: 'rate_limited',
      message: `too many requests of this ${whose}, of all sessions together: send fewer`,
      retryAfterMs: 1_500,
    },
  })
})

test('a request within the limit is for its user, or for anybody', async () => {
  expect(await authenticateAs('ann', 0)).toMatchObject({ hasToken: true, rights: { grants: [] } })
  expect(await authenticateAs(undefined, 0)).toMatchObject({ hasToken: false, rights: { grants: [] } })
})
