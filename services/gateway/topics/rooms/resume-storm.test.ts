// Thousands of clients that come back at once, each as far behind: what they missed is asked of the journal once a room.
import { createMemoryRooms } from '@keycast/backbone/memory'
import { createTestGateway } from '../../test-support.ts'

// A hundred thousand messages are parsed here, which takes a busy machine seconds.

const CLIENTS = 5_000
const ROOMS = 10
const MISSED = 20

/** A journal in memory that counts its requests. */
function createCountedRooms() {
  const journal = createMemoryRooms()
  const asked = { watches: 0, histories: 0 }
  const backbone: typeof journal.backbone = events => {
    const made = journal.backbone(events)
    return {
      ...made,
      watch(...of) {
        asked.watches++
        made.watch(...of)
      },
      history(...of) {
        asked.histories++
        return made.history(...of)
      },
    }
  }
  return { journal: { ...journal, backbone }, asked }
}

test('5,000 clients resume at once, and the journal is asked once a room', async () => {
  const { journal, asked } = createCountedRooms()
  const { gateway, connect, turn } = createTestGateway({ rooms: { room: {} }, journal })
  await gateway.start()
  try {
    const rooms = Array.from({ length: ROOMS }, (_, number) => `room:${number}`)
    for (const room of rooms) {
      for (let n = 0; n < MISSED; n++) journal.append({ room, messageId: undefined, from: '', data: Buffer.from('1') })
    }
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => connect()))
    const before = { ...asked }
    for (const [number, client] of clients.entries()) {
      const key = rooms[number % ROOMS]
      client.send({ type: 'subscribe', id: 1, keys: [{ key, after: { epoch: 'E1', seq: 0 } }] })
    }
    const heard = new Map(clients.map(client => [client, [] as any[]]))
    const isWhole = (messages: any[]) => messages.length > MISSED
    while (![...heard.values()].every(isWhole)) {
      await turn()
      // Beside them come the welcome, where it had not yet, and pings.
      const isOfRoom = ({ type }: any) => type === 'subscribed' || type === 'message'
      for (const [client, messages] of heard) messages.push(...client.connection.read().filter(isOfRoom))
    }

    const missed = Array.from({ length: MISSED }, (_, index) => index + 1).join()
    const others = [...heard.values()].filter(
      ([
        {
          keys: [room],
        },
        ...messages
      ]) => {
        return room.recovered !== true || room.count !== MISSED || messages.map(({ seq }) => seq).join() !== missed
      },
    )
    expect(others).toEqual([])
    expect(asked.watches - before.watches).toBe(ROOMS)
    expect(asked.histories - before.histories).toBe(ROOMS)
  } finally {
    await gateway.stop()
  }
})
