import { createWatchedRooms } from './watched-rooms.ts'

const log = { watch() {}, unwatch() {} }

const message = (seq: number, bytes = 100) => ({
  seq,
  at: 0,
  from: '',
  messageId: undefined,
  data: Buffer.alloc(bytes),
})

const seqsAfter = (rooms: ReturnType<typeof createWatchedRooms>, after: number, bytesMax = 1e6) =>
  rooms.following(rooms.get('room:1') as any, after, bytesMax)?.map(({ seq }) => seq)

test('the newest messages of a watched room are at hand, as far as they go', () => {
  const rooms = createWatchedRooms({ log })
  expect([...rooms.keep('room:1', 'E1', message(1), 1)]).toEqual([]) // nobody watches the room
  rooms.watch('room:1', 'L1')
  rooms.watch('room:1', 'L2')
  for (const seq of [2, 3, 4]) expect([...rooms.keep('room:1', 'E1', message(seq), 1)]).toEqual(['L1', 'L2'])
  expect(seqsAfter(rooms, 1)).toEqual([2, 3, 4])
  expect(seqsAfter(rooms, 2)).toEqual([3, 4])
  expect(seqsAfter(rooms, 0)).toBeUndefined()
  expect(seqsAfter(rooms, 4)).toBeUndefined()
  expect(seqsAfter(rooms, 1, 200)).toEqual([2])
  expect(seqsAfter(rooms, 1, 300)).toEqual([2, 3])
})

test('a hole starts a tail anew', () => {
  const rooms = createWatchedRooms({ log })
  rooms.watch('room:1', 'L1')
  for (const seq of [1, 2, 5]) rooms.keep('room:1', 'E1', message(seq), 1)
  expect(seqsAfter(rooms, 1)).toBeUndefined()
  expect(seqsAfter(rooms, 4)).toEqual([5])
})

test('the tails of all rooms have one bound: the oldest messages go, whose ever they are', () => {
  const rooms = createWatchedRooms({ log, tailsBytesMax: 10_000 })
  for (const key of ['room:1', 'room:2']) rooms.watch(key, 'L1')
  rooms.keep('room:2', 'E1', message(1), 1)
  for (let seq = 1; seq <= 1_000; seq++) rooms.keep('room:1', 'E1', message(seq), 1)
  expect(rooms.stats().tailBytes).toBeLessThanOrEqual(10_000)
  expect(seqsAfter(rooms, 999)).toEqual([1_000])
  expect(seqsAfter(rooms, 900)).toBeUndefined()
  expect(rooms.get('room:2')?.tail).toHaveLength(0)
})

test('a room that nobody watches any more is forgotten', () => {
  const rooms = createWatchedRooms({ log, tailsBytesMax: 1_000 })
  rooms.watch('room:1', 'L1')
  rooms.keep('room:1', 'E1', message(1), 1)
  rooms.unwatch('room:1', 'L1')
  rooms.unwatch('room:1', 'L1')
  expect(rooms.get('room:1')).toBeUndefined()
  rooms.watch('room:1', 'L1')
  for (let seq = 2; seq <= 50; seq++) rooms.keep('room:1', 'E1', message(seq), 1)
  expect(seqsAfter(rooms, 49)).toEqual([50])
  expect(rooms.stats().tailBytes).toBeLessThanOrEqual(1_000)
})

test('another epoch starts a room anew: its numbers are given again', () => {
  const rooms = createWatchedRooms({ log })
  rooms.watch('room:1', 'L1')
  for (const seq of [1, 2, 3]) rooms.keep('room:1', 'E1', message(seq), 1)
  expect([...rooms.raise('room:1', { epoch: 'E2', seq: 2 })]).toEqual(['L1'])
  expect(rooms.get('room:1')).toMatchObject({ epoch: 'E2', head: 2 })
  expect(seqsAfter(rooms, 1)).toBeUndefined()
  rooms.keep('room:1', 'E2', message(3), 1)
  expect(seqsAfter(rooms, 2)).toEqual([3])
})

test('the head is raised by what is news, and the links are named for it', () => {
  const rooms = createWatchedRooms({ log })
  expect([...rooms.raise('room:1', { epoch: 'E1', seq: 3 })]).toEqual([])
  rooms.watch('room:1', 'L1')
  expect([...rooms.raise('room:1', { epoch: 'E1', seq: 3 })]).toEqual(['L1'])
  expect([...rooms.raise('room:1', { epoch: 'E1', seq: 3 })]).toEqual([])
  expect([...rooms.raise('room:1', { epoch: 'E1', seq: 2 })]).toEqual([])
  expect(rooms.get('room:1')?.head).toBe(3)
})

test('rooms are listened to from the first watch of a link to the last', () => {
  const said: string[] = []
  const rooms = createWatchedRooms({
    log: { watch: room => void said.push(`watch ${room}`), unwatch: room => void said.push(`unwatch ${room}`) },
  })
  for (const link of ['L1', 'L2']) rooms.watch('room:1', link)
  rooms.unwatch('room:1', 'L1')
  expect(said).toEqual(['watch room:1'])
  rooms.unwatch('room:1', 'L2')
  expect(said).toEqual(['watch room:1', 'unwatch room:1'])
})

test('what the log no longer holds is news, and what went for its age is not at hand any more', () => {
  const rooms = createWatchedRooms({ log })
  rooms.watch('room:1', 'L1')
  for (const seq of [1, 2, 3]) rooms.keep('room:1', 'E1', message(seq), seq === 3 ? 2 : 1)
  expect(seqsAfter(rooms, 0)).toEqual([1, 2, 3])
  expect([...rooms.raise('room:1', { epoch: 'E1', seq: 3, oldest: 2 })]).toEqual([])
  expect([...rooms.expire('room:1', { epoch: 'E1', seq: 3, oldest: 3 })]).toEqual(['L1'])
  expect(rooms.get('room:1')).toMatchObject({ head: 3, oldest: 3 })
  expect(seqsAfter(rooms, 0)).toBeUndefined()
  expect(seqsAfter(rooms, 2)).toEqual([3])
  expect([...rooms.expire('room:1', { epoch: 'E1', seq: 3, oldest: 4 })]).toEqual(['L1'])
  expect(seqsAfter(rooms, 2)).toBeUndefined()
  expect([...rooms.expire('room:2', { epoch: 'E1', seq: 3, oldest: 4 })]).toEqual([])
})
