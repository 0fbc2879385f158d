// Conversations under faults, with load on, counted message by message: a killed journal, a killed gateway, readers that
// stop reading.
import { eventually } from './support/deadline.js'
import { show } from './support/figures.js'
import { createChecker, notOnceIn, readHistories, startLoad } from './support/journal.js'
import { MIB, watchMemory } from './support/memory.js'
import { asBackbone, joinRooms, startConversations } from './support/rooms.js'

/** All of a test is held, so that it can be counted in the end. */
const everything = { history: { messages: 1_000_000, bytes: '1GiB' } }

/** Writers here send as fast as they are answered. */
const unlimited = { GATEWAY_REQUESTS_PER_SECOND_MAX: '1000000' }

const rooms = ['room:1', 'room:2', 'room:3', 'room:4']

/** @param {import('./support/rooms.js').RoomClient} reader @param {string} room @param {number} seq */
const reaches = (reader, room, seq) =>
  reader.until(() => reader.positions.get(room)?.seq === seq, `${room} being seen up to ${seq}`)

/**
 * Everything is acknowledged, kept once and in order, and seen by everybody.
 *
 * @param {object} run
 * @param {string} run.url
 * @param {ReturnType<typeof createChecker>} run.checker
 * @param {ReturnType<typeof startLoad>[]} run.loads
 * @param {import('./support/rooms.js').RoomClient[]} run.readers
 */
async function expectWhole({ url, checker, loads, readers }) {
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

/** @param {ReturnType<typeof startLoad>} load @param {number} more */
async function goOn(load, more) {
  const before = load.acknowledged()
  await eventually(() => load.acknowledged() >= before + more, 'publishes being acknowledged')
}

test('with the journal killed again and again, clients have every acknowledged message once and in order', async () => {
  const { journal, gateways } = await startConversations({ gateways: 2, namespaces: { room: everything } })
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
  const { gateways } = await startConversations({ gateways: 2, namespaces: { room: everything } })
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
      expect(keys.every((/** @type {any} */ { recovered }) => recovered)).toBe(true)
      return reader
    }),
  )
  await goOn(load, 100)
  await expectWhole({ url: other.url, checker, loads: [load], readers: [writer, ...resumed] })
  const reads = await other.metric('history_reads_total')
  show(`20 clients resumed 4 rooms each, and the journal was asked ${reads} times`)
  expect(reads).toBeLessThan(names.length * rooms.length)
})

test('a reader that stalls costs no memory and delays nobody, and is given the whole or told', async () => {
  const { gateways } = await startConversations({
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
  const data = 'x'.repeat(1_000)
  let published = 0
  /** @param {number} count */
  const publish = async count => {
    for (let n = 0; n < count; n += 200) {
      await Promise.all(Array.from({ length: 200 }, (_, index) => writer.publish(keys[index % 2], data)))
      published += 100
      for (const reader of readers) for (const key of keys) await reaches(reader, key, published)
    }
  }
  await publish(2_000)
  await reaches(stalled, 'room:1', published)
  const grown = watchMemory(gateway.process.pid)
  const { _socket: tcp } = /** @type {any} */ (stalled.socket)
  tcp.pause()
  await publish(24_000)
  const mebibytes = Math.round(grown() / MIB)
  show(`24,000 messages of 1 KB went past a reader that stalled: the gateway grew by ${mebibytes} MiB`)
  expect(mebibytes).toBeLessThan(50)
  tcp.resume()
  for (const key of keys) await reaches(stalled, key, published)
  await publish(200)
  for (const key of keys) await reaches(stalled, key, published)
  expect(checker.problems().slice(0, 10)).toEqual([])
  expect(await gateway.metric('gaps_total{reason="trimmed"}')).toBe(1)
})

test('only a reader that stalls too long is closed, and it can resume', async () => {
  const { gateways } = await startConversations({
    namespaces: { room: everything },
    env: { ...unlimited, GATEWAY_STALL_MS_MAX: '1000' },
  })
  const [{ url }] = gateways
  const checker = createChecker()
  const reader = await joinRooms(url, { name: 'reader', checker })
  await reader.subscribe('room:1')
  const writer = await joinRooms(url)
  writer.keepNothing()
  const { _socket: tcp } = /** @type {any} */ (reader.socket)
  tcp.pause()
  let isOpen = true
  const ended = reader.ended.then(code => {
    isOpen = false
    return code
  })
  let published = 0
  const data = 'x'.repeat(30_000)
  await eventually(async () => {
    await Promise.all(Array.from({ length: 20 }, () => writer.publish('room:1', data)))
    published += 20
    // What the kernel still holds is read with the close: a client learns why it was closed.
    if ((await gateways[0].metric('sessions_closed_total{reason="slow"}')) === 1) tcp.resume()
    return !isOpen
  }, 'the reader being closed')
  expect(await ended).toBe(4008)
  const again = await joinRooms(url, { name: 'reader', checker })
  const { keys } = await again.resume(reader.positions)
  expect(keys).toMatchObject([{ recovered: true }])
  await reaches(again, 'room:1', published)
  expect(checker.problems().slice(0, 10)).toEqual([])
})
