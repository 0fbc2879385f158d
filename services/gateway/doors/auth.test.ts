import { readRule } from '../access/rule.ts'
import { issuers, sign } from '../access/test-tokens.ts'
import { authorizeKept, createTestGateway } from '../test-support.ts'

const START_MS = 1_795_000_000_000
const rule = (of: object, user: boolean) => readRule(of, { user, strict: true }).rule
const authorize = authorizeKept(5_000)

const signed = (scope: string, jti?: string) =>
  sign({ sub: 'ann', nowMs: START_MS, ttlSeconds: 3_000, jti, claims: { scope } })

async function setUp() {
  const test = createTestGateway({
    startAtMs: START_MS,
    settings: { requestsPerSecondMax: 200 },
    namespaces: { doc: { authorize } },
    policy: { anonymous: rule({ read: ['*:**'] }, false), everyone: rule({ read: ['*:**'] }, true), tokens: issuers },
  })
  // An account has ten times that as a guest, and four times as a user.
  const client = await test.connect('', '', { peer: { address: '192.0.2.1', isNamed: true } })
  await client.ask({ type: 'subscribe', keys: Array.from({ length: 900 }, (_, n) => `doc:${n}`) })

  async function auth(token: string) {
    client.send({ type: 'auth', id: 'auth', token })
    for (;;) {
      await test.turn()
      const answer = client.connection.read().find(({ id }) => id === 'auth')
      if (answer) return answer
    }
  }
  return { ...test, client, auth }
}

test('a token that a backend may judge otherwise costs a request for each key, and is taken once there is room', async () => {
  const { client, auth, pass } = await setUp()
  const tokens = [await signed('a'), await signed('b')]
  expect(await auth(tokens[0])).toMatchObject({ type: 'authed', user: 'ann' })
  expect(await auth(tokens[1])).toMatchObject({ type: 'authed', user: 'ann' })
  const { code, retryAfterMs } = await auth(tokens[0])
  expect(code).toBe('rate_limited')
  await pass(retryAfterMs)
  expect(await auth(tokens[0])).toMatchObject({ type: 'authed', user: 'ann' })
  expect(client.connection.closed).toBeUndefined()
})

test('one that it judges alike costs a tenth', async () => {
  const { auth, pass } = await setUp()
  for (let n = 0; n < 10; n++) {
    expect(await auth(await signed('a', `${n}`))).toMatchObject({ type: 'authed' })
    await pass(500)
  }
})
