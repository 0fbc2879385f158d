import { createPlaces } from './places.ts'

const create = (keysPerSessionMax: number, subscriptionsMax: number) =>
  createPlaces({ keysPerSessionMax, subscriptionsMax })

const session = (taken: number, account?: any) =>
  ({ subscriptions: new Map(Array.from({ length: taken }, (_, key) => [key, {}])), account }) as any

test('a session has so many places, and all sessions together', () => {
  const places = create(2, 3)
  const take = (taken: number) => places.take(session(taken), 'subscribe')?.code
  expect(take(1)).toBeUndefined()
  expect(take(2)).toBe('too_many_keys')
  expect(take(0)).toBeUndefined()
  expect(take(0)).toBeUndefined()
  expect(take(0)).toBe('capacity')
  places.leave(session(1), 'subscribe')
  expect(places.stats().subscriptions).toBe(2)
  expect(take(0)).toBeUndefined()
})

test('a session that has ended has no place, and takes none', () => {
  const places = create(2, 3)
  for (const act of ['subscribe', 'join'] as const) {
    expect(places.take({ ...session(0), ended: true }, act)).toMatchObject({ code: 'capacity' })
  }
  expect(places.stats()).toEqual({ subscriptions: 0, joins: 0 })
})

test('sessions of one account share its places, and one that is refused takes none', () => {
  const places = create(10, 10)
  const account = { keys: 1, keysMax: 2 }
  expect(places.take(session(0, account), 'subscribe')).toBeUndefined()
  expect(places.take(session(0, account), 'subscribe')).toMatchObject({ code: 'too_many_keys' })
  expect([account.keys, places.stats().subscriptions]).toEqual([2, 1])
  places.leave(session(1, account), 'subscribe')
  expect([account.keys, places.stats().subscriptions]).toEqual([1, 0])
})

test('joins take no places of subscriptions, and of a session there are 100 at most', () => {
  const places = create(1, 1)
  const joined = (count: number) => ({ ...session(0), memberships: { size: count } })
  expect(places.take(joined(99), 'join')).toBeUndefined()
  expect(places.take(joined(100), 'join')).toMatchObject({
    code: 'too_many_keys',
    message: expect.stringContaining('100 rooms'),
  })
  expect(places.take(session(0), 'subscribe')).toBeUndefined()
  expect(places.stats()).toEqual({ subscriptions: 1, joins: 1 })
  places.leave(joined(1), 'join')
  expect(places.stats()).toEqual({ subscriptions: 1, joins: 0 })
})
