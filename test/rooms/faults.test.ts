// Rooms under faults, with load on, counted message by message: a killed journal, a killed gateway. Readers that
// stop reading are in slow-readers.test.ts.
import { createChecker } from '../support/checker.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { notOnceIn, readHistories, startLoad } from '../support/journal-links.ts'
import { asBackbone, joinRooms, type RoomClient } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'

/** All of a test is held, so that it can be counted in the end. */
const everything = { history: { messages: 1_000_000, bytes: '1GiB' } }

/** A publish without acknowledgement is sent again at once, far faster than an honest client does it. */
const env = { GATEWAY_REQUESTS_PER_SECOND_MAX: '1000000', GATEWAY_PUBLISHES_PENDING_BYTES_MAX: '16MiB' }

const rooms = ['room:1', 'room:2', 'room:3', 'room:4']

const reaches = (reader: RoomClient, room: string, seq: number) =>
  reader.until(() => reader.positions.get(room)?.seq === seq, `${room} being seen up to ${seq}`)

interface Run {
  url: string
  checker: ReturnType<typeof createChecker>
  loads: ReturnType<typeof startLoad>[]
  readers: RoomClient[]
}

/** Everything is acknowledged, kept once and in order, and seen by everybody. */
async function expectWhole({ url, checker, loads, readers }: Run) {
  const sent = (await Promise.all(loads.map(load => load.stop()))).flat()
  const late = await joinRooms(url, { name: 'late', checker })
  const ids = await readHistories(asBackbone(late), checker, rooms)
  expect(notOnceIn(ids, sent)).toEqual([])
  for (const room of rooms) {
    const { newest } = await late.request({ type: 'history', key: room, limit: 1 })
    for (const reader of readers) await reaches(reader, room, newest)
  }
  expect(checker.problems().slice(0, 10)).toEqual([])
  return sent
}

async function goOn(load: ReturnType<typeof startLoad>, more: number) {
  const before = load.acknowledged()
  await eventually(() => load.acknowledged() >= before + more, 'publishes being acknowledged')
}

test('with the journal killed again and again, clients have every acknowledged message once and in order', async () => {
  const { journal, gateways } = await startRooms({ gateways: 2, namespaces: { room: everything }, env })
  const checker = createChecker()
  const clients = await Promise.all(
    ['one', 'two', 'three', 'four'].map((name, index) => joinRooms(gateways[index % 2].url, { name, checker })),
  )
  for (const client of clients) {
    client.keepNothing()
    await client.subscribe(...rooms)
  }
  const loads = clients.map((client, index) =>
    startLoad({ name: `publisher-${index}`, backbone: asBackbone(client), checker, rooms, perSecond: 150 }),
  )
  for (let round = 0; round < 4; round++) {
    await goOn(loads[0], 100)
    journal.process().signal('SIGKILL')
    await journal.process().exited
    await journal.restart()
  }
  await goOn(loads[0], 100)
  const sent = await expectWhole({ url: gateways[0].url, checker, loads, readers: clients })
  const errors = JSON.stringify(loads.map(load => load.errors))
  show(`4 kills of the journal under 600 publishes a second: ${sent.length} sent and kept once, errors ${errors}`)
})

test('the clients of a killed gateway go on at another: nothing is missing and nothing comes twice', async () => {
  const { gateways } = await startRooms({ gateways: 2, namespaces: { room: everything }, env })
  const [doomed, other] = gateways
  const checker = createChecker()
  const writer = await joinRooms(other.url, { name: 'writer', checker })
  writer.keepNothing()
  await writer.subscribe(...rooms)
  const load = startLoad({ name: 'writer', backbone: asBackbone(writer), checker, rooms, perSecond: 400 })
  const names = Array.from({ length: 20 }, (_, index) => `reader-${index}`)
  const readers = await Promise.all(names.map(name => joinRooms(doomed.url, { name, checker })))
  for (const reader of readers) await reader.subscribe(...rooms)
  await goOn(load, 300)
  await doomed.process.kill()
  await Promise.all(readers.map(({ ended }) => ended))
  await goOn(load, 300)
  const resumed = await Promise.all(
    names.map(async (name, index) => {
      const reader = await joinRooms(other.url, { name, checker })
      const { keys } = await reader.resume(readers[index].positions)
      expect(keys.every(({ recovered }: any) => recovered)).toBe(true)
      return reader
    }),
  )
  await goOn(load, 100)
  await expectWhole({ url: other.url, checker, loads: [load], readers: [writer, ...resumed] })
  const reads = await other.metric('keycast_gateway_history_reads_total')
  show(`20 clients resumed 4 rooms each, and the journal was asked ${reads} times`)
  expect(reads).toBeLessThan(names.length * rooms.length)
})
