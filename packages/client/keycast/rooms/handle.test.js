// Parts of rooms that transcripts cannot show: loops, listeners and stores of this language.
import { connect } from '../../keycast.js'
import { createWorld, welcome } from '../../test-support.js'
import { createFakeKeycast } from '../../testing.js'

const soon = () => new Promise(resolve => setImmediate(resolve))

test('a loop is given every message in order, and ends with its handle', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1')
  /** @type {any[]} */
  const seen = []
  const loop = (async () => {
    for await (const item of room) seen.push(item.type === 'message' && item.data)
  })()
  await soon()
  for (const n of [1, 2, 3]) fake.publish('room:1', n)
  await soon()
  expect(seen).toEqual([1, 2, 3])
  room.close()
  await loop
  expect(await room[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined })
})

test('a loop that is too far behind is given a gap in place of what it missed', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1', { bufferMessages: 3 })
  const loop = room[Symbol.asyncIterator]()
  await soon()
  for (const n of [1, 2, 3, 4, 5]) fake.publish('room:1', n)
  const next = async () => (await loop.next()).value
  expect(await next()).toEqual({
    type: 'gap',
    position: { epoch: 'fake', seq: 4 },
    oldest: { epoch: 'fake', seq: 1 },
    reason: 'slow',
  })
  expect(await next()).toMatchObject({ data: 5, position: { seq: 5 } })
})

test('a loop throws the error that ends the subscription, after what came before it', async () => {
  const fake = createFakeKeycast({ rooms: [] })
  const room = fake.keycast.room('room:1')
  await expect(room[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'not_a_room' })
  const closed = createFakeKeycast()
  const loop = closed.keycast.room('room:1')[Symbol.asyncIterator]()
  await soon()
  closed.publish('room:1', 1)
  closed.keycast.close()
  expect((await loop.next()).value).toMatchObject({ data: 1 })
  expect(await loop.next()).toEqual({ done: true, value: undefined })
})

test('listeners and stores are told, until their handle is closed', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1', { presence: true })
  /** @type {any[]} */
  const told = []
  room.on('message', ({ data }) => told.push(data))
  room.on('gap', ({ reason }) => told.push(reason))
  room.on('change', ({ live }) => told.push({ live }))
  room.subscribe(({ live }) => told.push({ store: live }))
  const off = room.members.on('change', ({ count }) => told.push({ count }))
  await soon()
  expect(told).toEqual([{ store: false }, { live: true }, { store: true }, { count: 0 }])
  expect(room.getSnapshot()).toBe(room.state)
  off()
  fake.setMembers('room:1', ['Ann'])
  fake.publish('room:1', 'hi')
  expect(told.slice(4)).toEqual(['hi'])
  room.close()
  room.close()
  fake.publish('room:1', 'ho')
  room.on('message', () => told.push('never'))
  await soon()
  expect(told).toHaveLength(5)
  expect(() => room.on(/** @type {any} */ ('news'), () => {})).toThrow('no event "news"')
  expect(() => room.members.on(/** @type {any} */ ('news'), () => {})).toThrow(TypeError)
})

test('what is published is as it was when it was given, and must be JSON', async () => {
  const fake = createFakeKeycast()
  fake.disconnect()
  const room = fake.keycast.room('room:1')
  const data = { n: 1 }
  const published = room.publish(data)
  data.n = 2
  fake.reconnect()
  await published
  expect(fake.messages('room:1')).toEqual([{ n: 1 }])
  await expect(room.publish(undefined)).rejects.toThrow(TypeError)
})

test.each([
  ['a position that is text', { after: '{"epoch":"fake","seq":1}' }],
  ['a position without an epoch', { after: { seq: 1 } }],
  ['a position with an empty epoch', { after: { epoch: '', seq: 1 } }],
  ['a place that no gateway can count', { after: { epoch: 'fake', seq: 2 ** 53 } }],
  ['a place that is no number', { after: { epoch: 'fake', seq: '1' } }],
  ['more than a gateway gives', { last: 501 }],
  ['a loop that may hold nothing', { bufferMessages: 0 }],
])('a beginning that is none is refused at once: %s', async (_, options) => {
  const fake = createFakeKeycast()
  const other = fake.keycast.room('room:2')
  expect(() => fake.keycast.room('room:1', /** @type {any} */ (options))).toThrow(TypeError)
  await soon()
  expect([fake.watched(), other.state.live]).toEqual([['room:2'], true])
})

test('a part of the history is bounded by a position', async () => {
  const room = createFakeKeycast().keycast.room('room:1', { follow: false })
  await expect(room.history({ before: /** @type {any} */ (7) })).rejects.toThrow('"before" must be a position')
})

test('a handle that follows nothing has no loop', () => {
  const room = createFakeKeycast().keycast.room('room:1', { follow: false })
  expect(() => room[Symbol.asyncIterator]()).toThrow('follow: false')
})

test('two calls of next() at once are given two messages, or both the end', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1')
  const loop = room[Symbol.asyncIterator]()
  const both = [loop.next(), loop.next()]
  await soon()
  for (const n of [1, 2]) fake.publish('room:1', n)
  expect((await Promise.all(both)).map(({ value }) => value.data)).toEqual([1, 2])
  const last = [loop.next(), loop.next()]
  room.close()
  expect((await Promise.all(last)).map(({ done }) => done)).toEqual([true, true])
})

test('a gap names the first message that a loop missed, also where the loop was given some before', async () => {
  const fake = createFakeKeycast()
  const room = fake.keycast.room('room:1', { bufferMessages: 4 })
  const loop = room[Symbol.asyncIterator]()
  await soon()
  const next = async () => (await loop.next()).value
  for (const n of [1, 2, 3]) fake.publish('room:1', n)
  expect((await next()).data).toBe(1)
  for (const n of [4, 5, 6, 7]) fake.publish('room:1', n)
  expect(await next()).toMatchObject({ reason: 'slow', oldest: { seq: 2 }, position: { seq: 6 } })
  expect((await next()).data).toBe(7)
  room.close()
})

test('a program that changes a position misses no message: it cannot change one, and what it gave is copied', async () => {
  const fake = createFakeKeycast()
  fake.publish('room:1', 0)
  const after = { epoch: 'fake', seq: 0 }
  const room = fake.keycast.room('room:1', { after })
  after.seq = 7
  /** @type {unknown[]} */
  const told = []
  room.on('message', ({ data, position }) => {
    told.push(data, Reflect.set(position, 'seq', 9))
  })
  await soon()
  expect(Reflect.set(/** @type {any} */ (room.position), 'seq', 9)).toBe(false)
  fake.publish('room:1', 1)
  expect(told).toEqual([0, false, 1, false])
  room.close()
})

test('a handle that its own listener closes, while the gateway begins the stream anew, is left', async () => {
  const { environment, socket, settle, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const room = keycast.room('room:1')
  await settle()
  const [{ id }] = outs()
  const begun = { key: 'room:1', epoch: 'E', oldest: 1, recovered: false, count: 0 }
  socket().say({ type: 'subscribed', id, keys: [{ ...begun, seq: 4 }] })
  room.on('change', ({ live }) => live || room.close())
  await settle()
  socket().say({ type: 'subscribed', keys: [{ ...begun, seq: 9 }] })
  await settle()
  expect(outs()).toMatchObject([{ type: 'unsubscribe', keys: ['room:1'] }])
  keycast.close()
})

test('a busy loop throws what ended the subscription, also where a refused join heals meanwhile', async () => {
  const { environment, socket, pass, settle, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const room = keycast.room('room:1')
  const loop = room[Symbol.asyncIterator]()
  await settle()
  const begun = { key: 'room:1', epoch: 'E', seq: 0, oldest: 1, recovered: false, count: 0 }
  socket().say({ type: 'subscribed', id: outs()[0].id, keys: [begun] })
  const joined = { type: 'joined', key: 'room:1', name: 'ann' }
  const joining = room.join('ann')
  await settle()
  socket().say({ ...joined, id: outs()[0].id })
  await joining
  const error = { type: 'error', key: 'room:1', subscribed: false, message: '' }
  socket().say({ ...error, code: 'unknown_namespace' })
  socket().say({ ...error, code: 'capacity' })
  await pass(1_000)
  socket().say({ ...joined, id: outs().at(-1).id })
  await settle()
  expect(room.state.joinedAs).toBe('ann')
  await expect(loop.next()).rejects.toMatchObject({ code: 'unknown_namespace' })
  keycast.close()
})

test('a message that waits in a hidden page is given up in time, also where the clock is set back meanwhile', async () => {
  const { environment, socket, pass, page, settle, done, outs } = createWorld()
  let date = 1e12
  const keycast = connect('ws://gateway/ws', { environment: { ...environment, date: () => date } })
  socket().say(welcome())
  const published = keycast.room('room:1', { follow: false }).publish('once')
  const outcome = expect(published).rejects.toMatchObject({ code: 'publish_unknown' })
  await settle()
  page('hidden')
  socket().lose(1006)
  await pass(30_000)
  date -= 3_600_000
  done()
  page('visible')
  socket().say(welcome())
  await outcome
  expect(outs()).toEqual([])
  keycast.close()
})

test('a message that waits for its next try in a hidden page is not sent after its time', async () => {
  const { environment, socket, pass, page, settle, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const room = keycast.room('room:1', { follow: false })
  const outcomes = [
    expect(room.publish('once')).rejects.toMatchObject({ code: 'publish_unknown' }),
    expect(room.publish('never')).rejects.toMatchObject({ code: 'not_sent' }),
  ]
  const inTime = room.publish('still', { deadlineMs: 7_200_000 })
  await settle()
  page('hidden')
  const [{ id }] = outs()
  socket().say({ type: 'error', id, key: 'room:1', code: 'publish_unknown', message: '', retryAfterMs: 1_000 })
  await pass(3_600_000)
  page('visible')
  await pass(1_000)
  await Promise.all(outcomes)
  const [, sent, ...others] = outs()
  expect([sent.data, others]).toEqual(['still', []])
  socket().say({ type: 'published', id: sent.id, key: 'room:1', epoch: 'E', seq: 1, at: 1 })
  await inTime
  keycast.close()
})

test('a message whose deadline passed behind another in a hidden page holds up none that comes after it', async () => {
  const { environment, socket, pass, page, settle, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const room = keycast.room('room:1', { follow: false })
  const published = { type: 'published', key: 'room:1', epoch: 'E', seq: 1, at: 1 }
  const first = room.publish('first', { deadlineMs: 120_000 })
  const late = expect(room.publish('late')).rejects.toMatchObject({ code: 'not_sent' })
  page('hidden')
  await pass(60_000)
  const fresh = room.publish('fresh')
  socket().say({ ...published, id: outs()[0].id })
  await Promise.all([first, late])
  await settle()
  const [sent, ...others] = outs()
  expect([sent.data, others]).toEqual(['fresh', []])
  socket().say({ ...published, id: sent.id, seq: 2 })
  await fresh
  keycast.close()
})
