// A page's view of a room: no message twice, none left out, and a failed one can be sent again.
import { connect } from '../../keycast.js'
import { createWorld, welcome } from '../../test-support.js'
import { createFakeKeycast } from '../../testing.js'
import { createMessageList } from './message-list.js'

const soon = () => new Promise(resolve => setImmediate(resolve))

/** @param {number} count of messages that are there @param {object} [options] */
async function setup(count, options) {
  const fake = createFakeKeycast()
  for (let n = 1; n <= count; n += 1) fake.publish('room:1', n)
  const list = createMessageList(fake.keycast, 'room:1', { last: 3, ...options })
  await soon()
  return { fake, list, shown: () => list.state.messages.map(({ data }) => data) }
}

test('it begins with the last messages, and older ones come before them', async () => {
  const { list, shown, fake } = await setup(8)
  expect(shown()).toEqual([6, 7, 8])
  expect(list.state).toMatchObject({ hasOlder: true, live: true })
  const loading = list.older()
  expect(list.state.isLoading).toBe(true)
  fake.publish('room:1', 9)
  await loading
  expect(shown()).toEqual([3, 4, 5, 6, 7, 8, 9])
  await list.older()
  expect(shown()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(list.state).toMatchObject({ hasOlder: false, isLoading: false })
})

test('an empty room has nothing older', async () => {
  const { list, shown, fake } = await setup(0)
  expect(list.state).toMatchObject({ live: true, hasOlder: false })
  fake.publish('room:1', 1)
  expect(shown()).toEqual([1])
})

test('above the limit the oldest are dropped, and can be loaded again', async () => {
  const { list, shown, fake } = await setup(3, { keep: 4 })
  for (const n of [4, 5, 6]) fake.publish('room:1', n)
  expect(shown()).toEqual([3, 4, 5, 6])
  expect(list.state.hasOlder).toBe(true)
  await list.older()
  expect(shown()).toEqual([1, 2, 3, 4, 5, 6])
})

test('where the oldest are let go while older ones are under way, those can be asked for again', async () => {
  const { list, shown, fake } = await setup(6, { keep: 3 })
  const loading = list.older()
  fake.publish('room:1', 7)
  expect(list.state.isLoading).toBe(false)
  await loading
  expect(shown()).toEqual([5, 6, 7])
  await list.older()
  expect(shown()).toEqual([2, 3, 4, 5, 6, 7])
})

test('what is sent is pending, then a message; what failed can be sent again or forgotten', async () => {
  const { list, shown, fake } = await setup(0)
  fake.disconnect()
  const sending = list.send('a')
  expect(list.state.pending.map(({ data }) => data)).toEqual(['a'])
  fake.reconnect()
  await sending
  expect(list.state.pending).toEqual([])
  expect(shown()).toEqual(['a'])

  fake.refusePublishes('room:1', 'forbidden')
  await list.send('b')
  await list.send('c')
  const [b, c] = list.state.failed
  expect([b.data, b.error.code, c.data]).toEqual(['b', 'forbidden', 'c'])
  fake.refusePublishes('room:1')
  await list.retry(b.messageId)
  list.discard(c.messageId)
  expect(list.state.failed).toEqual([])
  expect(shown()).toEqual(['a', 'b'])
})

test('what fails after the list was closed rejects: it would be lost in silence', async () => {
  const { list, fake } = await setup(0)
  fake.disconnect()
  const sending = list.send('a')
  list.close()
  fake.refusePublishes('room:1', 'forbidden')
  fake.reconnect()
  await expect(sending).rejects.toMatchObject({ code: 'forbidden' })
})

test('a failed message that was kept after all is shown once', async () => {
  const { list, shown, fake } = await setup(0)
  fake.refusePublishes('room:1', 'forbidden')
  await list.send('a')
  const [{ messageId }] = list.state.failed
  fake.publish('room:1', 'a', { messageId })
  expect(list.state.failed).toEqual([])
  expect(shown()).toEqual(['a'])
})

test('a message that the backend refused brings its reason', async () => {
  const { environment, socket, settle, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const publishing = keycast.room('room:1', { follow: false }).publish('hello')
  const refused = expect(publishing).rejects.toMatchObject({ code: 'message_refused', reason: 'profanity' })
  await settle()
  const [{ id }] = outs()
  socket().say({ type: 'error', id, key: 'room:1', code: 'message_refused', message: '', reason: 'profanity' })
  await refused
  keycast.close()
})

test('a failed message that a part of the history has is shown once', async () => {
  const { environment, socket, settle, outs } = createWorld()
  const list = createMessageList(connect('ws://gateway/ws', { environment }), 'room:1')
  socket().say(welcome())
  await settle()
  const begun = { key: 'room:1', epoch: 'E', seq: 4, oldest: 1, recovered: false, count: 0 }
  socket().say({ type: 'subscribed', id: outs()[0].id, keys: [begun] })
  const sending = list.send('hello')
  await settle()
  const [{ id, messageId }] = outs()
  socket().say({ type: 'error', id, key: 'room:1', code: 'log_full', message: '', subscribed: true })
  await sending
  expect(list.state.failed).toMatchObject([{ messageId, data: 'hello' }])
  socket().say({ type: 'gap', key: 'room:1', epoch: 'E', seq: 90, oldest: 5, reason: 'trimmed' })
  await settle()
  const message = { seq: 90, at: 1, messageId, data: 'hello' }
  const part = { key: 'room:1', epoch: 'E', oldest: 5, newest: 90, more: false, messages: [message] }
  socket().say({ type: 'history', id: outs()[0].id, ...part })
  await settle()
  expect([list.state.messages.map(({ data }) => data), list.state.failed]).toEqual([['hello'], []])
  list.close()
})

test.each([
  ['are gone until the right is back, then loaded anew', {}, [], ['three', 'four', 'five']],
  ['stay where the page wants it so', { keepForbidden: true }, ['three', 'four'], ['three', 'four', 'five']],
])('the messages of a user who may see them no more %s', async (_, options, meanwhile, after) => {
  const { environment, socket, settle, pass, outs } = createWorld()
  const list = createMessageList(connect('ws://gateway/ws', { environment }), 'room:1', { last: 2, ...options })
  const shown = () => list.state.messages.map(({ data }) => data)
  /** @param {number} seq @param {string} data */
  const message = (seq, data) => ({ type: 'message', key: 'room:1', seq, at: seq, data })
  socket().say(welcome())
  await settle()
  const begun = { key: 'room:1', epoch: 'E', seq: 4, oldest: 1, recovered: false, count: 2 }
  socket().say({ type: 'subscribed', id: outs()[0].id, keys: [begun] })
  socket().say(message(3, 'three'))
  socket().say(message(4, 'four'))
  expect(shown()).toEqual(['three', 'four'])

  socket().say({ type: 'error', key: 'room:1', code: 'forbidden', message: '', subscribed: false })
  await settle()
  expect([list.state.health, shown()]).toEqual(['forbidden', meanwhile])
  await pass(1_000)
  const [{ id }] = outs()
  socket().say({ type: 'subscribed', id, keys: [{ ...begun, seq: 5, recovered: true, count: 1 }] })
  socket().say(message(5, 'five'))
  await settle()
  for (const { id, type } of outs()) {
    const messages = [message(3, 'three'), message(4, 'four')]
    if (type === 'history')
      socket().say({ type, id, key: 'room:1', epoch: 'E', oldest: 1, newest: 5, more: true, messages })
  }
  await settle()
  expect([list.state.health, shown()]).toEqual(['live', after])
  list.close()
})

test('deleted messages leave the list, what tells of them never enters it, and older parts come without them', async () => {
  /** @type {Record<string, (item: any) => void>} */
  const listeners = {}
  const position = { epoch: 'E', seq: 0 }
  const state = { live: false, health: 'loading', error: undefined, pending: [], joinedAs: undefined }
  /** @param {number} seq @param {object} [rest] */
  const message = (seq, rest) => ({ type: 'message', position: { epoch: 'E', seq }, at: 1, data: seq, ...rest })
  const room = {
    ...{ state, pending: [], position },
    /** @param {string} name @param {(item: any) => void} listener */
    on: (name, listener) => {
      listeners[name] = listener
    },
    history: async () => ({ messages: [message(1), message(2, { deleted: true, data: null })], more: false }),
    close() {},
  }
  const list = createMessageList(/** @type {any} */ ({ room: () => room }), 'room:1')
  room.position = { epoch: 'E', seq: 2 }
  listeners.change({ ...state, live: true })
  for (let seq = 3; seq <= 6; seq++) listeners.message(message(seq))
  listeners.message(
    message(7, {
      deletes: [
        [2, 3],
        [5, 5],
      ],
      data: null,
    }),
  )
  expect(list.state.messages.map(({ data }) => data)).toEqual([4, 6])
  await list.older()
  expect(list.state.messages.map(({ data }) => data)).toEqual([1, 4, 6])
  expect(list.state.hasOlder).toBe(false)
})

test('what is deleted while older messages are under way is not among them', async () => {
  const { environment, socket, settle, outs } = createWorld()
  const list = createMessageList(connect('ws://gateway/ws', { environment }), 'room:1')
  socket().say(welcome())
  await settle()
  const begun = { key: 'room:1', epoch: 'E', seq: 4, oldest: 1, recovered: false, count: 0 }
  socket().say({ type: 'subscribed', id: outs()[0].id, keys: [begun] })
  const loading = list.older()
  await settle()
  const [{ id }] = outs()
  socket().say({ type: 'message', key: 'room:1', seq: 5, at: 1, deletes: [[3, 3]], data: null })
  const messages = [2, 3, 4].map(seq => ({ seq, at: 1, data: seq }))
  socket().say({ type: 'history', id, key: 'room:1', epoch: 'E', oldest: 1, newest: 4, more: true, messages })
  await loading
  expect(list.state.messages.map(({ data }) => data)).toEqual([2, 4])
  list.close()
})
