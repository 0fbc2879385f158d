import { createBeatKeys } from './beat-keys.ts'

const manyRooms = new Map(Array.from({ length: 500 }, (_, n) => [`room:${n}`, n]))

test('a room of which something was sent goes with the next two beats', () => {
  const keys = createBeatKeys(new Map())
  keys.add('room:1')
  expect([...keys.next()]).toEqual(['room:1'])
  keys.add('room:2')
  expect([...keys.next()]).toEqual(['room:1', 'room:2'])
  keys.forget('room:2')
  expect([...keys.next()]).toEqual([])
})

test('every other room has its turn', () => {
  const keys = createBeatKeys(manyRooms)
  const seen = new Set()
  for (let beat = 0; beat < 3; beat++) {
    const some = keys.next()
    expect(some.size).toBeLessThanOrEqual(200)
    for (const key of some) seen.add(key)
  }
  expect(seen.size).toBe(manyRooms.size)
})
