import { noKind } from '../../test-support.ts'
import { createPace, pauseMsFor } from './pace.ts'
import { createRoom } from './room.ts'

function setUp(viewers: number) {
  const room = createRoom('room:1', {} as any, noKind)
  room.subscriptions = Array.from({ length: viewers }, () => ({}) as any)
  let handedOut = 0
  const timers: { run: () => void; ms: number }[] = []
  const onMessages = createPace({
    handOut: () => handedOut++,
    after: (ms, run) => {
      timers.push({ run, ms })
      return () => {}
    },
  })
  return {
    room,
    come: () => onMessages(room),
    handedOut: () => handedOut,
    timers,
    endPause: () => (timers.shift() as { run: () => void }).run(),
  }
}

test('the first messages of a room are handed out at once, those of the pause after it together', () => {
  const { come, handedOut, timers, endPause } = setUp(100)
  come()
  expect(handedOut()).toBe(1)
  for (let batch = 0; batch < 5; batch++) come()
  expect(handedOut()).toBe(1)
  expect(timers.map(({ ms }) => ms)).toEqual([8])

  endPause()
  expect(handedOut()).toBe(2)
  come()
  expect(handedOut()).toBe(2)
  endPause()
  expect(handedOut()).toBe(3)
})

test('a room that nothing came to in its pause has none under way', () => {
  const { come, handedOut, timers, endPause } = setUp(100)
  come()
  endPause()
  expect([handedOut(), timers.length]).toEqual([1, 0])
  come()
  expect(handedOut()).toBe(2)
})

test('few viewers are written to at once, and very many wait no longer than 25 ms', () => {
  expect([1, 12, 25, 100, 10_000].map(pauseMsFor)).toEqual([0, 0, 2, 8, 25])
  const { come, handedOut, timers } = setUp(12)
  for (let batch = 0; batch < 5; batch++) come()
  expect([handedOut(), timers.length]).toEqual([5, 0])
})

test('the viewers of the moment count, and a room without any has no pause', () => {
  const { room, come, timers, endPause } = setUp(100)
  come()
  come()
  room.subscriptions = []
  endPause()
  expect(timers).toEqual([])
})
