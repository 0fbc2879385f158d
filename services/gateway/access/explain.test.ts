import { createTestGateway } from '../test-support.ts'
import type { Policy } from './policy-file.ts'
import { readRule } from './rule.ts'
import { badTokens, issuers, sign } from './test-tokens.ts'

const nowMs = 1_800_000_000_000

const rule = (written: unknown, user: boolean) => readRule(written, { user, strict: true }).rule

function setup(policy?: Partial<Policy>) {
  const { gateway } = createTestGateway({
    startAtMs: nowMs,
    namespaces: { tick: {}, user: {} },
    policy: {
      tokens: issuers,
      anonymous: rule({ read: ['tick:open'] }, false),
      everyone: rule({ read: ['user:{sub}', 'tick:all'] }, true),
      ...policy,
    },
  })
  return gateway
}

const ok = (explained: Awaited<ReturnType<ReturnType<typeof setup>['explain']>>): any => explained

test.each([
  ['tick:open', 'anonymous', 'tick:open'],
  ['tick:all', 'everyone', 'tick:all'],
  ['user:ann', 'everyone', 'user:{sub}'],
  ['tick:7', 'token keys', 'tick:*'],
])('%s is read by a rule of %s, and the pattern named as it was written', async (key, name, pattern) => {
  const token = await sign({ nowMs, keys: { read: ['tick:*'] } })
  const { user, expiresInMs, verbs } = ok(await setup().explain(key, { token }))
  expect({ user, expiresInMs }).toEqual({ user: 'ann', expiresInMs: 60_000 })
  // The first rule that admits it is named.
  expect(verbs.read).toEqual({ allowed: true, rule: name, pattern })
  expect(verbs.publish.allowed).toBe(false)
})

test('where no rule admits a key, each that was asked is listed, long ones in part', async () => {
  const keys = { read: Array.from({ length: 12 }, (_, n) => `tick:${n}`) }
  const { verbs } = ok(await setup().explain('user:bob', { sub: 'ann', keys }))
  expect(verbs.read).toEqual({
    allowed: false,
    asked: [
      { rule: 'anonymous', patterns: ['tick:open'], more: 0 },
      { rule: 'everyone', patterns: ['user:{sub}', 'tick:all'], more: 0 },
      { rule: 'token keys', patterns: keys.read.slice(0, 10), more: 2 },
    ],
  })
})

test('the request that asks the backend is named, for keys whose namespace has one', async () => {
  const authorize = {
    urlFor: (id: string) => `http://api/${id}`,
    origin: 'http://api',
    method: 'HEAD',
    keepMs: 1,
  }
  const { gateway } = createTestGateway({
    startAtMs: nowMs,
    namespaces: { doc: { authorize } as any, tick: {} },
  })
  expect(ok(await gateway.explain('doc:7', {})).backendDecides).toBe('HEAD http://api/7')
  expect(ok(await gateway.explain('doc:7/8', { sub: 'ann' })).backendDecides).toBeUndefined()
  expect(ok(await gateway.explain('tick:7', {})).backendDecides).toBeUndefined()
})

test('it answers as the doors do, for anybody and for a user', async () => {
  const gateway = setup()
  expect(ok(await gateway.explain('tick:all', {})).verbs.read.allowed).toBe(false)
  expect(ok(await gateway.explain('tick:open', {})).verbs.read.allowed).toBe(true)
  expect(ok(await gateway.explain('user:a~2Fb', { sub: 'a/b' })).verbs.read.allowed).toBe(true)
})

test.each(Object.entries(badTokens))(
  'a token that is %s is refused with the reason, and grants nothing',
  async (_, make) => {
    const gateway = setup()
    gateway.revoke({ sub: 'mallory', before: nowMs / 1_000 + 3_600 })
    const { refused, verbs } = ok(await gateway.explain('tick:open', { token: await make(nowMs) }))
    expect(refused.message).toEqual(expect.any(String))
    expect(verbs.read).toEqual({ allowed: false, asked: [] })
    // An operator's question is no client's attempt.
    expect(Object.values(gateway.counts.tokensRefused).every(count => count === 0)).toBe(true)
  },
)

test('a revoked user is shown with the time before which tokens are refused', async () => {
  const gateway = setup()
  gateway.revoke({ sub: 'ann', before: 1_800_000_000 })
  expect(ok(await gateway.explain('tick:open', { sub: 'ann' })).revokedBefore).toBe(1_800_000_000)
})

test('a key nobody can have is said to be one, and rights that cannot be read are a problem', async () => {
  const gateway = setup()
  expect(ok(await gateway.explain('nowhere:1', {})).keyProblem).toContain('namespace')
  expect(await gateway.explain('tick:1', { sub: 'ann', keys: { read: ['tick'] } })).toEqual({
    problem: expect.stringContaining('has no namespace'),
  })
})

test('history and members are told where the policy names them: else they are what read is', async () => {
  expect(Object.keys(ok(await setup().explain('tick:open', {})).verbs)).toEqual(['read', 'publish', 'join'])
  const { verbs } = ok(await setup({ byRead: ['members'] }).explain('tick:open', {}))
  expect(Object.keys(verbs)).toEqual(['read', 'history', 'publish', 'join'])
  expect(verbs.history.allowed).toBe(false)
})
