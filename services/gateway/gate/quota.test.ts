import { createQuota } from './quota.ts'

const create = (keysPerSessionMax: number, subscriptionsMax: number) =>
  createQuota({ keysPerSessionMax, subscriptionsMax })

const session = (taken: number, account?: any) =>
  ({ subscriptions: new Map(Array.from({ length: taken }, (_, key) => [key, {}])), account }) as any

test('a session may hold so many keys, and all sessions together so many', () => {
  const quota = create(2, 3)
  const take = (taken: number) => quota.take(session(taken), 'subscribe')?.code
  expect(take(1)).toBeUndefined()
  expect(take(2)).toBe('too_many_keys')
  expect(take(0)).toBeUndefined()
  expect(take(0)).toBeUndefined()
  expect(take(0)).toBe('capacity')
  quota.giveBack(session(1), 'subscribe')
  expect(quota.stats().subscriptions).toBe(2)
  expect(take(0)).toBeUndefined()
})

test('a session that has ended holds no key, and takes none', () => {
  const quota = create(2, 3)
  for (const act of ['subscribe', 'join'] as const) {
    expect(quota.take({ ...session(0), ended: true }, act)).toMatchObject({ code: 'capacity' })
  }
  expect(quota.stats()).toEqual({ subscriptions: 0, joins: 0 })
})

test('sessions of one account share its quota, and one that is refused takes none', () => {
  const quota = create(10, 10)
  const account = { keys: 1, keysMax: 2 }
  expect(quota.take(session(0, account), 'subscribe')).toBeUndefined()
  expect(quota.take(session(0, account), 'subscribe')).toMatchObject({ code: 'too_many_keys' })
  expect([account.keys, quota.stats().subscriptions]).toEqual([2, 1])
  quota.giveBack(session(1, account), 'subscribe')
  expect([account.keys, quota.stats().subscriptions]).toEqual([1, 0])
})

test('joins take nothing of what is for subscriptions, and of a session there are 100 at most', () => {
  const quota = create(1, 1)
  const joined = (count: number) => ({ ...session(0), memberships: { size: count } })
  expect(quota.take(joined(99), 'join')).toBeUndefined()
  expect(quota.take(joined(100), 'join')).toMatchObject({
    code: 'too_many_keys',
    message: expect.stringContaining('100 rooms'),
  })
  expect(quota.take(session(0), 'subscribe')).toBeUndefined()
  expect(quota.stats()).toEqual({ subscriptions: 1, joins: 1 })
  quota.giveBack(joined(1), 'join')
  expect(quota.stats()).toEqual({ subscriptions: 1, joins: 0 })
})
