import { dueOf, membersOf } from './chat.ts'

test('users go around the rooms', () => {
  expect(membersOf(10, 3)).toEqual([4, 3, 3])
  expect(membersOf(100, 1)).toEqual([100])
})

test('every message is due at every member of its room', () => {
  expect(dueOf({ members: [100], messages: 500 })).toEqual({ publishes: 50_000, deliveries: 5_000_000 })
  expect(dueOf({ members: [4, 3, 3], messages: 2 })).toEqual({ publishes: 20, deliveries: 68 })
})

test('the first users publish, and all of their rooms read', () => {
  const load = { members: membersOf(10, 3), publishers: membersOf(2, 3), messages: 5 }
  expect(dueOf(load)).toEqual({ publishes: 10, deliveries: 5 * (4 + 3) })
})
