import { createHub } from './hub.ts'

test("a room's messages have one order, and each is delivered before its publisher hears of it", () => {
  const said: unknown[] = []
  const hub = createHub(({ key, seq }) => said.push([key, seq]))
  for (const key of ['room:1', 'room:2', 'room:1']) {
    hub.publish({ key, messageId: 'm', data: {} }, ({ seq }) => said.push(`published ${seq}`))
  }

  expect(said).toEqual([['room:1', 1], 'published 1', ['room:2', 1], 'published 1', ['room:1', 2], 'published 2'])
})

test('a name in a room belongs to one member, until it leaves', () => {
  const hub = createHub(() => {})
  const granted: boolean[] = []
  const claim = (room: string, name: string) => hub.claim(room, name, isGranted => granted.push(isGranted))
  claim('room:1', 'Ann')
  claim('room:1', 'Ann')
  claim('room:2', 'Ann')
  hub.release('room:1', 'Ann')
  claim('room:1', 'Ann')

  expect(granted).toEqual([true, false, true, true])
})
