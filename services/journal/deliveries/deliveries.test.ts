// Messages that are deleted while a link has no credit: it is sent none of them afterwards.
import { realWorld } from '@keycast/service'
import { createMemoryLog } from '../log/memory/memory.ts'
import { createWatchedRooms } from '../watched-rooms.ts'
import { createDeliveries } from './deliveries.ts'

const settle = () => new Promise(resolve => setImmediate(resolve))

test('what was read for a link, or is being read, is not sent to it once it is deleted', async () => {
  const log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 30 })
  /** Reads whose results are on their way. */
  const reads: (() => void)[] = []
  const read: typeof log.read = async (room, range) => {
    const found = await log.read(room, range)
    await new Promise<void>(resolve => reads.push(resolve))
    return found
  }
  async function endReads() {
    await settle()
    for (const end of reads.splice(0)) end()
    await settle()
  }
  const deliveries = createDeliveries({
    log: { head: log.head, read },
    rooms: createWatchedRooms({ tell() {}, log }),
    isRoom: () => true,
    tell() {},
    counts: { resumed() {}, gap() {}, read() {} } as any,
    onReadFailed() {},
  })
  const bounds = { messages: 1_000, ageMs: 1e9, bytes: 1e9 }
  const publish = { messageId: undefined, from: 'ann', data: Buffer.from('"x"'), retention: bounds }
  const rooms = ['room:1', 'room:2']
  const partOf = (room: string) => `${room} - after 0 9`
  for (const room of rooms) {
    await log.append([1, 2, 3].map(() => ({ ...publish, room })))
    deliveries.onWatch('one', { key: room, position: { epoch: log.id(), seq: 0 } })
    await settle()
    deliveries.answersFor('one', room, 0) // begins to read
    deliveries.onGet('one', { key: partOf(room) })
    // Of one room the reads are over.
    if (room === 'room:1') await endReads()
  }
  for (const room of rooms) {
    await log.delete(room, [2])
    deliveries.forget(room)
    // As the hub does where it was told.
    for (const key of [room, partOf(room)]) deliveries.answersFor('one', key, 0)
  }
  await endReads()
  for (const key of rooms.flatMap(room => [room, partOf(room)])) {
    const { answers } = deliveries.answersFor('one', key, 1e6)
    expect(answers).toMatchObject([
      { messages: [{ seq: 1 }, { seq: 2, deleted: true }, { seq: 3 }, { deletes: [[2, 2]] }] },
    ])
  }
})
