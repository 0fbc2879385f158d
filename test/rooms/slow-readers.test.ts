// Readers of rooms that stop reading: they cost no memory and delay nobody, and are given the whole or told of the gap.
import { createChecker } from '../support/checker.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { MIB, watchMemory } from '../support/memory.ts'
import { joinRooms, type RoomClient } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'

/** All of a test is held, so that it can be counted in the end. */
const everything = { history: { messages: 1_000_000, bytes: '1GiB' } }

/** Writers here send as fast as they are answered. */
const unlimited = { GATEWAY_REQUESTS_PER_SECOND_MAX: '1000000', GATEWAY_PUBLISHES_PENDING_BYTES_MAX: '16MiB' }

/** A client that is given up is cut so much later (services/gateway/sessions/sessions.ts). */
const CLOSE_READ_MS = 1_000

const reaches = (reader: RoomClient, room: string, seq: number) =>
  reader.until(() => reader.positions.get(room)?.seq === seq, `${room} being seen up to ${seq}`)

test('a reader that stalls costs no memory and delays nobody, and is given the whole or told', async () => {
  const { gateways } = await startRooms({
    namespaces: { room: everything, short: { history: { messages: 1_000 } } },
    env: { ...unlimited, GATEWAY_STALL_MS_MAX: '600000', GATEWAY_TAIL_BYTES_MAX: '4MiB' },
  })
  const [gateway] = gateways
  const keys = ['room:1', 'short:1']
  const checker = createChecker()
  const readers = await Promise.all(['one', 'two', 'three'].map(name => joinRooms(gateway.url, { name, checker })))
  const stalled = await joinRooms(gateway.url, { name: 'stalled', checker })
  for (const reader of [...readers, stalled]) {
    reader.keepNothing()
    await reader.subscribe(...keys)
  }
  const writer = await joinRooms(gateway.url)
  writer.keepNothing()
  const data = 'x'.repeat(2_000)
  let published = 0
  const publish = async (count: number) => {
    for (let n = 0; n < count; n += 200) {
      await Promise.all(Array.from({ length: 200 }, (_, index) => writer.publish(keys[index % 2], data)))
      published += 100
      for (const reader of readers) for (const key of keys) await reaches(reader, key, published)
    }
  }
  // As many as go past the stalled reader later: by then the gateway's memory has grown as far as it does for these.
  await publish(24_000)
  await reaches(stalled, 'room:1', published)
  const grown = watchMemory(gateway.process.pid)
  const { _socket: tcp } = stalled.socket as any
  tcp.pause()
  await publish(24_000)
  const mebibytes = Math.round(grown() / MIB)
  show(`24,000 messages of 2 KB went past a reader that stalled: the gateway grew by ${mebibytes} MiB`)
  // Held for it, they would be 48 MiB on top.
  expect(mebibytes).toBeLessThan(30)
  tcp.resume()
  for (const key of keys) await reaches(stalled, key, published)
  await publish(200)
  for (const key of keys) await reaches(stalled, key, published)
  expect(checker.problems().slice(0, 10)).toEqual([])
  expect(await gateway.metric('keycast_gateway_gaps_total{reason="trimmed"}')).toBe(1)
})

test('only a reader that stalls too long is closed, and it can resume', async () => {
  const { gateways } = await startRooms({
    namespaces: { room: everything },
    env: { ...unlimited, GATEWAY_STALL_MS_MAX: '1000' },
  })
  const [{ url }] = gateways
  const checker = createChecker()
  const reader = await joinRooms(url, { name: 'reader', checker })
  await reader.subscribe('room:1')
  const writer = await joinRooms(url)
  writer.keepNothing()
  const { _socket: tcp } = reader.socket as any
  tcp.pause()
  let published = 0
  const data = 'x'.repeat(30_000)
  // Nobody else follows the room: a reader that is given up leaves it without one.
  let followedAt = 0
  await eventually(async () => {
    const askedAt = performance.now()
    if ((await gateways[0].metric('keycast_gateway_watched_rooms')) === 0) return true
    followedAt = askedAt
    // More of them until it is behind, and stays so.
    if ((await gateways[0].metric('keycast_gateway_sessions_stalled')) === 0) {
      await Promise.all(Array.from({ length: 20 }, () => writer.publish('room:1', data)))
      published += 20
    }
    return false
  }, 'the reader being given up')
  // Reads the bytes that the kernel holds, and after them the reason of the close.
  tcp.resume()
  const code = await reader.ended
  // One that a busy machine has read on for longer is cut.
  expect(performance.now() - followedAt < CLOSE_READ_MS ? [4008] : [4008, 1006]).toContain(code)
  const again = await joinRooms(url, { name: 'reader', checker })
  const { keys } = await again.resume(reader.positions)
  expect(keys).toMatchObject([{ recovered: true }])
  await reaches(again, 'room:1', published)
  expect(checker.problems().slice(0, 10)).toEqual([])
})
