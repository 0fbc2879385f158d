// The client without rooms, with a key that it wants as a value and that is a room.
import { createWorld, welcome } from '../test-support.js'
import { connect } from './values-only.js'

async function start() {
  const world = createWorld()
  const keycast = connect('ws://gateway/ws', { environment: world.environment })
  world.socket().say(welcome())
  world.done()
  return { ...world, keycast }
}

test('keys that wait for the journal do not hold up the values after them', async () => {
  const { keycast, socket, settle, outs } = await start()
  const handle = keycast.value('room:1')
  keycast.value('room:2')
  await settle()
  const [{ id }] = outs()
  const away = { type: 'error', id, code: 'journal_unavailable', message: '', subscribed: true, retryAfterMs: 1_000 }
  socket().say({ ...away, key: 'room:1' })
  keycast.value('a:1')
  await settle()
  expect(outs()).toEqual([])
  socket().say({ ...away, key: 'room:2' })
  await settle()
  expect(outs()).toMatchObject([{ type: 'subscribe', keys: ['a:1'] }])
  expect(handle.state.error).toMatchObject({ code: 'journal_unavailable', subscribed: true })
  keycast.close()
})

test('a room is unsubscribed: its messages are of no use here', async () => {
  const { keycast, socket, settle, outs } = await start()
  const handle = keycast.value('room:1')
  await settle()
  const [{ id }] = outs()
  socket().say({ type: 'subscribed', id, keys: [{ key: 'room:1', epoch: 'E', seq: 4, oldest: 1, recovered: false }] })
  expect(outs()).toMatchObject([{ type: 'unsubscribe', keys: ['room:1'] }])
  expect(handle.state.error).toMatchObject({ code: 'not_a_value' })
  keycast.close()
})
