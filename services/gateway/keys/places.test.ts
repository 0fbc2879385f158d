import { createPlaces } from './places.ts'

const session = (taken: number, account?: any) =>
  ({ subscriptions: new Map(Array.from({ length: taken }, (_, key) => [key, {}])), account }) as any

test('a session has so many places, and all sessions together', () => {
  const places = createPlaces({ keysPerSessionMax: 2, subscriptionsMax: 3 })
  expect(places.take(session(1))).toBeUndefined()
  expect(places.take(session(2))).toBe('too_many_keys')
  expect(places.take(session(0))).toBeUndefined()
  expect(places.take(session(0))).toBeUndefined()
  expect(places.take(session(0))).toBe('capacity')
  places.leave(session(1))
  expect(places.taken()).toBe(2)
  expect(places.take(session(0))).toBeUndefined()
})

test('a session that has ended has no place, and takes none', () => {
  const places = createPlaces({ keysPerSessionMax: 2, subscriptionsMax: 3 })
  expect(places.take({ ...session(0), ended: true })).toBe('capacity')
  expect(places.taken()).toBe(0)
})

test('sessions of one account share its places, and one that is refused takes none', () => {
  const places = createPlaces({ keysPerSessionMax: 10, subscriptionsMax: 10 })
  const account = { keys: 1, keysMax: 2 }
  expect(places.take(session(0, account))).toBeUndefined()
  expect(places.take(session(0, account))).toBe('too_many_keys')
  expect([account.keys, places.taken()]).toEqual([2, 1])
  places.leave(session(1, account))
  expect([account.keys, places.taken()]).toEqual([1, 0])
})
