import { createWatchedRooms, type WatchedRooms } from './watched-rooms.ts'

const log = { watch() {}, unwatch() {} }

function setup(options: { tailsBytesMax?: number } = {}) {
  const told: string[] = []
  const rooms = createWatchedRooms({ tell: (link, room) => told.push(`${room} ${link}`), log, ...options })
  return { ...rooms, told: () => told.splice(0) }
}

const message = (seq: number, bytes = 100) => ({
  seq,
  at: 0,
  from: '',
  messageId: undefined,
  data: Buffer.alloc(bytes),
})

const seqsAfter = (rooms: Pick<WatchedRooms, 'get' | 'following'>, after: number, bytesMax = 1e6) =>
  rooms.following(rooms.get('room:1') as any, after, bytesMax)?.map(({ seq }) => seq)

test('the newest messages of a watched room are at hand, as far as they go', () => {
  const rooms = setup()
  rooms.keep('room:1', 'E1', message(1), 1) // nobody watches the room
  expect(rooms.told()).toEqual([])
  rooms.watch('room:1', 'L1')
  rooms.watch('room:1', 'L2')
  for (const seq of [2, 3, 4]) {
    rooms.keep('room:1', 'E1', message(seq), 1)
    expect(rooms.told()).toEqual(['room:1 L1', 'room:1 L2'])
  }
  expect(seqsAfter(rooms, 1)).toEqual([2, 3, 4])
  expect(seqsAfter(rooms, 2)).toEqual([3, 4])
  expect(seqsAfter(rooms, 0)).toBeUndefined()
  expect(seqsAfter(rooms, 4)).toBeUndefined()
  expect(seqsAfter(rooms, 1, 200)).toEqual([2])
  expect(seqsAfter(rooms, 1, 300)).toEqual([2, 3])
})

test('a hole starts a tail anew', () => {
  const rooms = setup()
  rooms.watch('room:1', 'L1')
  for (const seq of [1, 2, 5]) rooms.keep('room:1', 'E1', message(seq), 1)
  expect(seqsAfter(rooms, 1)).toBeUndefined()
  expect(seqsAfter(rooms, 4)).toEqual([5])
})

test('the tails of all rooms have one bound: the oldest messages go, whose ever they are', () => {
  const rooms = setup({ tailsBytesMax: 10_000 })
  for (const key of ['room:1', 'room:2']) rooms.watch(key, 'L1')
  rooms.keep('room:2', 'E1', message(1), 1)
  for (let seq = 1; seq <= 1_000; seq++) rooms.keep('room:1', 'E1', message(seq), 1)
  expect(rooms.stats().tailBytes).toBeLessThanOrEqual(10_000)
  expect(seqsAfter(rooms, 999)).toEqual([1_000])
  expect(seqsAfter(rooms, 900)).toBeUndefined()
  expect(rooms.get('room:2')?.tail).toHaveLength(0)
})

test('a room that nobody watches any more is forgotten', () => {
  const rooms = setup({ tailsBytesMax: 1_000 })
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
  const rooms = setup()
  rooms.watch('room:1', 'L1')
  for (const seq of [1, 2, 3]) rooms.keep('room:1', 'E1', message(seq), 1)
  rooms.told()
  rooms.raise('room:1', { epoch: 'E2', seq: 2 })
  expect(rooms.told()).toEqual(['room:1 L1'])
  expect(rooms.get('room:1')).toMatchObject({ epoch: 'E2', head: 2 })
  expect(seqsAfter(rooms, 1)).toBeUndefined()
  rooms.keep('room:1', 'E2', message(3), 1)
  expect(seqsAfter(rooms, 2)).toEqual([3])
})

test('the head is raised by what is news, and the links are told of it', () => {
  const rooms = setup()
  rooms.raise('room:1', { epoch: 'E1', seq: 3 })
  expect(rooms.told()).toEqual([])
  rooms.watch('room:1', 'L1')
  rooms.raise('room:1', { epoch: 'E1', seq: 3 })
  expect(rooms.told()).toEqual(['room:1 L1'])
  for (const seq of [3, 2]) rooms.raise('room:1', { epoch: 'E1', seq })
  expect(rooms.told()).toEqual([])
  expect(rooms.get('room:1')?.head).toBe(3)
})

test('rooms are listened to from the first watch of a link to the last', () => {
  const said: string[] = []
  const rooms = createWatchedRooms({
    tell() {},
    log: { watch: room => void said.push(`watch ${room}`), unwatch: room => void said.push(`unwatch ${room}`) },
  })
  for (const link of ['L1', 'L2']) rooms.watch('room:1', link)
  rooms.unwatch('room:1', 'L1')
  expect(said).toEqual(['watch room:1'])
  rooms.unwatch('room:1', 'L2')
  expect(said).toEqual(['watch room:1', 'unwatch room:1'])
})

test('what the log no longer holds is news, and what went for its age is not at hand any more', () => {
  const rooms = setup()
  rooms.watch('room:1', 'L1')
  for (const seq of [1, 2, 3]) rooms.keep('room:1', 'E1', message(seq), seq === 3 ? 2 : 1)
  expect(seqsAfter(rooms, 0)).toEqual([1, 2, 3])
  rooms.told()
  rooms.raise('room:1', { epoch: 'E1', seq: 3, oldest: 2 })
  expect(rooms.told()).toEqual([])
  rooms.expire('room:1', { epoch: 'E1', seq: 3, oldest: 3 })
  expect(rooms.told()).toEqual(['room:1 L1'])
  expect(rooms.get('room:1')).toMatchObject({ head: 3, oldest: 3 })
  expect(seqsAfter(rooms, 0)).toBeUndefined()
  expect(seqsAfter(rooms, 2)).toEqual([3])
  rooms.expire('room:1', { epoch: 'E1', seq: 3, oldest: 4 })
  expect(rooms.told()).toEqual(['room:1 L1'])
  expect(seqsAfter(rooms, 2)).toBeUndefined()
  rooms.expire('room:2', { epoch: 'E1', seq: 3, oldest: 4 })
  expect(rooms.told()).toEqual([])
})
