// Clients that come back all at once, each 100 messages behind: every one has them in order, and the journal is asked once
// per room and gateway. services/gateway/topics/rooms/resume-storm.test.ts does it with 5,000.
import { createChecker } from '../support/checker.ts'
import { joinRooms } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'

const CLIENTS = 200
const MISSED = 100
const rooms = ['room:1', 'room:2', 'room:3']

test('200 clients of two gateways resume at once: the journal is asked once per room and gateway', async () => {
  const { journal, gateways } = await startRooms({ gateways: 2 })
  const checker = createChecker()
  const start = await joinRooms(gateways[0].url)
  const { keys } = await start.subscribe(...rooms)
  const positions = new Map<string, { epoch: string; seq: number }>(
    keys.map(({ key, epoch, seq }: any) => [key, { epoch, seq }] as const),
  )
  start.socket.close()
  await start.ended
  for (const room of rooms) {
    for (let n = 0; n < MISSED; n++) await gateways[0].call('/v1/publish', { key: room, data: n })
  }
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, (_, number) =>
      joinRooms(gateways[number % 2].url, { name: `client-${number}`, checker }),
    ),
  )
  const resumed = await Promise.all(clients.map(client => client.resume(positions)))

  for (const { keys: told } of resumed) {
    for (const each of told) expect(each).toMatchObject({ recovered: true, count: MISSED })
  }
  for (const client of clients) {
    const has = (room: string) => client.positions.get(room)?.seq === MISSED
    await client.until(() => rooms.every(has), 'all that was missed')
  }
  expect(checker.problems()).toEqual([])
  for (const gateway of gateways) expect(await gateway.metric('keycast_gateway_history_reads_total')).toBe(rooms.length)
  const metrics = String((await journal.internal('/metrics')).body)
  const read = /^keycast_journal_delivered_messages_total\{from="log"\} (\d+)$/m.exec(metrics)?.[1]
  expect(Number(read)).toBe(gateways.length * rooms.length * MISSED)

  const { body } = await journal.internal('/v1/rooms/room:1')
  expect(JSON.parse(String(body))).toMatchObject({
    ...{ key: 'room:1', seq: MISSED, oldest: 1 },
    links: [
      { sent: MISSED, isBehind: false },
      { sent: MISSED, isBehind: false },
    ],
  })
})
