// Rooms as clients have them, through a whole gateway and a journal in memory: each rule of what a client hears.
import { createTestGateway } from '../test-support.js'

const key = 'room:1'

/** @param {Parameters<typeof createTestGateway>[0]} [options] */
function start(options) {
  const started = createTestGateway({ rooms: { room: {}, news: { publish: 'server' } }, ...options })
  return started.gateway.start().then(() => started)
}

/** @type {(() => Promise<void>)[]} */
const stops = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** @param {Parameters<typeof createTestGateway>[0]} [options] */
async function setUp(options) {
  const started = await start(options)
  stops.push(started.gateway.stop)
  /** @param {string} text @param {string} [room] */
  const append = (text, room = key) =>
    started.journal.append({ room, messageId: undefined, from: 'ann', data: Buffer.from(text) })
  return { ...started, append }
}

const subscribed = (/** @type {object} */ rest) => ({
  type: 'subscribed',
  id: 1,
  keys: [{ key, epoch: 'E1', seq: 0, oldest: 1, recovered: false, count: 0, ...rest }],
})

test('subscribed names a position, also of an empty room', async () => {
  const { connect } = await setUp()
  const client = await connect()
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [key] })).toEqual([subscribed({})])
})

test('messages come in order, each once, with their data as it was published', async () => {
  const { connect, append } = await setUp()
  const [one, two] = [await connect(), await connect()]
  for (const client of [one, two]) await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  append('{"n": 1.0}')
  append('"two"')
  const expected = [
    expect.objectContaining({ type: 'message', key, seq: 1, from: 'ann', data: { n: 1 } }),
    expect.objectContaining({ seq: 2, data: 'two' }),
  ]
  expect(await one.received()).toEqual(expected)
  expect(String(two.connection.writes[0])).toContain('"data":{"n": 1.0}}')
  expect(await two.received()).toEqual(expected)
})

test('a publisher that is subscribed sees its message before it hears that it is kept', async () => {
  const { connect } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  const messageId = 'a-message-of-mine-1'
  const heard = await client.ask({ type: 'publish', id: 2, key, messageId, data: { text: 'hi' } })
  expect(heard).toEqual([
    { type: 'message', key, seq: 1, at: expect.any(Number), messageId, data: { text: 'hi' } },
    { type: 'published', id: 2, key, epoch: 'E1', seq: 1, at: expect.any(Number) },
  ])
  expect(await client.ask({ type: 'publish', id: 3, key, messageId, data: { text: 'hi' } })).toEqual([
    { type: 'published', id: 3, key, epoch: 'E1', seq: 1, at: expect.any(Number), duplicate: true },
  ])
  expect(await client.ask({ type: 'publish', id: 4, key, messageId, data: { text: 'ho' } })).toEqual([
    expect.objectContaining({ type: 'error', id: 4, key, subscribed: true, code: 'id_conflict' }),
  ])
})

test('values are subscribed at once, and rooms in a second message with the same id', async () => {
  const { connect } = await setUp()
  const client = await connect()
  const heard = await client.ask({ type: 'subscribe', id: 1, keys: ['tick:1', key, 'room:2'] })
  expect(heard).toEqual([
    { type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] },
    { type: 'subscribed', id: 1, keys: [expect.objectContaining({ key }), expect.objectContaining({ key: 'room:2' })] },
  ])
})

test('nothing of a room comes after the answer to unsubscribe', async () => {
  const { connect, append } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  append('1')
  client.send({ type: 'unsubscribe', id: 2, keys: [key] })
  append('2')
  expect(await client.received()).toEqual([{ type: 'ok', id: 2 }])
})
