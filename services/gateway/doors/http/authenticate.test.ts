import { createAuthenticate } from './authenticate.ts'

/** @param user whom the request's token names; `undefined`: none came */
const authenticateAs = (user: string | undefined, retryAfterMs: number) =>
  createAuthenticate({
    identify: {
      peerOf: () => ({ address: '192.0.2.7', isNamed: true }),
      verifyRequest: async () => (user === undefined ? undefined : { verified: { user, rights: { grants: [] } } }),
    } as any,
    anonymous: { grants: [] } as any,
    viewers: { enter: () => undefined, leave() {} },
    accounts: { of: (name: string) => ({ account: { name }, payer: 'a' }) } as any,
    rateLimit: { chargeAccount: () => retryAfterMs },
    revocations: { isRevoked: () => false },
  })({ headers: {} } as any)

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
