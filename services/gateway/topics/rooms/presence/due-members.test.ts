import { createCounts } from '../../../counts.ts'
import { noKind } from '../../../test-support.ts'
import { createRoom } from '../room.ts'
import { createRoomPlaces } from '../room-places.ts'
import { createDueMembers } from './due-members.ts'

const key = 'room:1'

function setUp() {
  const calls: string[] = []
  const places = createRoomPlaces({ subscriptionsMax: 1_000 })
  const members = createDueMembers({
    backbone: { watchMembers: () => calls.push('watch') as any, unwatchMembers: () => calls.push('unwatch') as any },
    outbox: { owe: () => calls.push('owe') as any, send() {}, sendFrame() {}, takesChanges: () => true },
    places,
    counts: createCounts(),
  })
  const subscription: any = { session: {}, topic: createRoom(key, {} as any, noKind), due: 0, members: undefined }
  return { ...members, calls, subscription, places }
}

test('a client that subscribes again and again has the journal tell the members once, and is sent them each time', () => {
  const { begin, end, events, sweep, calls, subscription } = setUp()
  begin(subscription)
  events.onMembers(key, { rev: 1, count: 0, members: [] })
  for (let again = 0; again < 3; again++) {
    end(subscription)
    begin(subscription)
  }
  sweep()
  expect(calls).toEqual(['watch', 'owe', 'owe', 'owe', 'owe'])
})

test('the journal hears with the next sweep that nobody is told any more', () => {
  const { begin, end, sweep, calls, subscription, places, stats } = setUp()
  begin(subscription)
  end(subscription)
  expect(calls).toEqual(['watch'])
  sweep()
  expect(calls).toEqual(['watch', 'unwatch'])
  expect([places.taken(), stats()]).toEqual([0, { watchedMembers: 0 }])
})
