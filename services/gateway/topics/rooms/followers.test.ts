import { noKind } from '../../test-support.ts'
import { createFollowers } from './followers.ts'
import { createRoom, type Room } from './room.ts'
import { createRoomPlaces } from './room-places.ts'

const key = 'room:1'

function setUp() {
  const calls: string[] = []
  const sent: any[] = []
  const rooms = new Map<string, Room>()
  const followers = createFollowers({
    rooms,
    backbone: { watch: each => void calls.push(`watch ${each}`), unwatch: each => void calls.push(`unwatch ${each}`) },
    tails: { forget: room => void calls.push(`forget ${room.key}`) },
    outbox: { forget() {}, send: (_, message) => void sent.push(message) },
    watching: { end() {} },
    places: createRoomPlaces({ subscriptionsMax: 1_000 }),
  })
  const createSession = () => ({ subscriptions: new Map(), account: undefined, rights: {} }) as any
  const add = () => {
    const session = createSession()
    return followers.add(session, rooms.get(key) ?? createRoom(key, {} as any, noKind))
  }
  return { followers, rooms, calls, sent, add }
}

test('a room is watched with its first session and forgotten with its last', () => {
  const { followers, rooms, calls, add } = setUp()
  const all = [add(), add(), add()]
  expect(calls).toEqual(['watch room:1'])
  followers.remove(all[0])
  // The last took the place of the first.
  expect(rooms.get(key)?.subscriptions).toEqual([all[2], all[1]])
  expect([all[2].index, all[1].index, all[0].index]).toEqual([0, 1, -1])
  followers.remove(all[1])
  followers.remove(all[2])
  expect(calls.slice(1)).toEqual(['unwatch room:1', 'forget room:1'])
  expect(rooms.size).toBe(0)
})

test('answers that wait for a message are not lost when the session no longer follows the room', () => {
  const { followers, add, sent } = setUp()
  const subscription = add()
  const answer = { type: 'published', seq: 9 } as any
  subscription.answers = [{ seq: 9, answer }]
  followers.remove(subscription)
  expect(sent).toEqual([answer])
})
