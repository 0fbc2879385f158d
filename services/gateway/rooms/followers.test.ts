import { createNamespaces } from '../test-support.ts'
import { createFollowers } from './followers.ts'

const key = 'room:1'

function setUp() {
  const calls: string[] = []
  const sent: any[] = []
  const followers = createFollowers({
    namespaces: createNamespaces({}, { room: {} }).journal,
    backbone: { watch: each => void calls.push(`watch ${each}`), unwatch: each => void calls.push(`unwatch ${each}`) },
    tails: { forget: room => void calls.push(`forget ${room.key}`) },
    outbox: { forget() {}, send: (_, message) => void sent.push(message) },
    watching: { end() {} },
  })
  const createSession = () => ({ subscriptions: new Map(), account: undefined, rights: {} }) as any
  const add = (session: any, room: string = key) => followers.add(session, room) as any
  return { followers, calls, sent, createSession, add }
}

test('a room is watched with its first session and forgotten with its last', () => {
  const { followers, calls, createSession, add } = setUp()
  const all = [createSession(), createSession(), createSession()].map(session => add(session))
  expect(calls).toEqual(['watch room:1'])
  followers.remove(all[0])
  // The last took the place of the first.
  expect(followers.get(key)?.subscriptions).toEqual([all[2], all[1]])
  expect([all[2].index, all[1].index, all[0].index]).toEqual([0, 1, -1])
  followers.remove(all[1])
  followers.remove(all[2])
  expect(calls.slice(1)).toEqual(['unwatch room:1', 'forget room:1'])
  expect(followers.size()).toBe(0)
})

test('a session that follows a room already keeps its subscription', () => {
  const { createSession, add } = setUp()
  const session = createSession()
  expect(add(session)).toBe(add(session))
})

test('answers that wait for a message are not lost when the session no longer follows the room', () => {
  const { followers, createSession, add, sent } = setUp()
  const subscription = add(createSession())
  const answer = { type: 'published', seq: 9 }
  subscription.answers = [{ seq: 9, answer }]
  followers.remove(subscription)
  expect(sent).toEqual([answer])
})

test('only keys of its namespaces are rooms', () => {
  const { followers } = setUp()
  expect(['room:1', 'tick:1', 'room', ''].map(followers.isRoom)).toEqual([true, false, false, false])
})
