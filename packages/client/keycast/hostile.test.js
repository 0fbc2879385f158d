// A gateway that lies. The client neither hangs nor asks without end, and each promise that it gave is kept or broken.
import { connect } from '../keycast.js'
import { createWorld, welcome } from '../test-support.js'

/** @param {object} [options] */
function setup(options = {}) {
  const world = createWorld()
  const keycast = connect('ws://gateway/ws', { environment: world.environment, ...options })
  const dials = () => world.done().filter(deed => 'dials' in deed).length
  return { ...world, keycast, dials }
}

test('a gateway that says closing without a time as each session begins is dialled ever more rarely', async () => {
  const { socket, pass, settle, dials, keycast } = setup()
  await settle()
  let count = 0
  for (let n = 0; n < 600; n += 1) {
    if (dials()) {
      count += 1
      socket().say(welcome())
      socket().say({ type: 'closing' })
    }
    await pass(100)
  }
  // At 0, 0, 2, 6, 14 and 30 s, and 30 s later.
  expect(count).toBe(6)
  keycast.close()
})

test('a gateway that gives tokens no time has the application asked once a second, not without end', async () => {
  let asked = 0
  const { socket, pass, settle, keycast } = setup({ token: async () => `t${++asked}` })
  await settle()
  socket().say(welcome())
  for (let n = 0; n < 100; n += 1) {
    socket().say({ type: 'authed', id: 'auth', user: 'ann' })
    await pass(10)
  }
  expect(asked).toBeLessThanOrEqual(2)
  keycast.close()
})

test('a gateway that says token_expired again and again has the application asked once at a time', async () => {
  let asked = 0
  const { socket, settle, keycast } = setup({
    token: () => {
      asked += 1
      return asked > 1 ? new Promise(() => {}) : 't1'
    },
  })
  await settle()
  socket().say(welcome())
  socket().say({ type: 'authed', id: 'auth', user: 'ann', expiresInMs: 3_600_000 })
  for (let n = 0; n < 100; n += 1) socket().say({ type: 'error', code: 'token_expired', message: '' })
  await settle()
  expect(asked).toBe(2)
  keycast.close()
})

test('an answer that cannot be read rejects what was asked, and the session goes on', async () => {
  const { socket, settle, done, keycast } = setup()
  await settle()
  socket().say(welcome())
  done()
  const asked = [keycast.get('broken:1'), keycast.room('room:1', { follow: false }).history(), keycast.get('whole:1')]
  const outcomes = Promise.allSettled(asked)
  await settle()
  const [broken, history, whole] = done().map(deed => /** @type {any} */ (deed).out)
  const head = { type: 'value', version: 'v', contentType: 'application/json' }
  socket().say({ ...head, id: broken.id, key: 'broken:1' }, Buffer.from('{'))
  socket().say({ type: 'history', id: history.id, key: 'room:1' })
  socket().say({ ...head, id: whole.id, key: 'whole:1' }, Buffer.from('1'))
  expect(await outcomes).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }, { value: 1 }])
  expect(keycast.state.name).toBe('open')
  keycast.close()
})

test('a request of the application that is no JSON is rejected, and ends no session', async () => {
  const { socket, settle, pass, done, keycast } = setup()
  await settle()
  socket().say(welcome())
  const room = keycast.room('room:1', { follow: false })
  await expect(room.join(/** @type {any} */ (1n))).rejects.toThrow(TypeError)
  await expect(room.history({ limit: /** @type {any} */ (1n) })).rejects.toThrow(TypeError)
  socket().lose(1006)
  await pass(1_000)
  socket().say(welcome())
  expect(keycast.state.name).toBe('open')
  done()
  keycast.get('a:1').catch(() => {})
  expect(done()).toMatchObject([{ out: { type: 'get', key: 'a:1' } }])
  keycast.close()
})

test('messages whose seq is no number are left out, and the order holds', async () => {
  const { socket, settle, done, keycast } = setup()
  await settle()
  socket().say(welcome())
  const room = keycast.room('room:1')
  /** @type {number[]} */
  const given = []
  room.on('message', ({ position }) => given.push(position.seq))
  await settle()
  const { id } = /** @type {any} */ (done().at(-1)).out
  const begun = { key: 'room:1', epoch: 'e', seq: 4, oldest: 1, recovered: false, count: 0 }
  socket().say({ type: 'subscribed', id, keys: [begun] })
  for (const seq of [undefined, 'x', 5, 5, null, 3, 6]) socket().say({ type: 'message', key: 'room:1', seq, data: 0 })
  expect(given).toEqual([5, 6])
  keycast.close()
})

test('at most 10,000 messages of a room wait to be published', async () => {
  const { keycast } = setup()
  const room = keycast.room('room:1', { follow: false })
  const published = Array.from({ length: 10_001 }, (_, n) => room.publish(n))
  const outcomes = Promise.allSettled(published)
  expect(room.pending.length).toBe(10_000)
  await expect(published[10_000]).rejects.toMatchObject({ code: 'too_many_waiting', key: 'room:1' })
  keycast.close()
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true)
  expect(room.pending).toEqual([])
})

test('a room whose last handle is closed as the session names it is not subscribed to', async () => {
  const { socket, settle, pass, done, keycast } = setup()
  await settle()
  socket().say(welcome())
  const [closing, staying] = [keycast.room('room:1'), keycast.room('room:2')]
  await settle()
  const { id } = /** @type {any} */ (done().at(-1)).out
  for (const key of ['room:1', 'room:2']) {
    socket().say({ type: 'subscribed', id, keys: [{ key, epoch: 'e', seq: 4, oldest: 1, recovered: false, count: 0 }] })
  }
  closing.on('change', ({ health }) => health === 'loading' && closing.close())
  await settle()
  socket().lose(1006)
  await pass(1_000)
  done()
  socket().say(welcome())
  await settle()
  const after = { epoch: 'e', seq: 4 }
  expect(done()).toEqual([{ out: { type: 'subscribe', id: expect.any(Number), keys: [{ key: 'room:2', after }] } }])
  expect(staying.state.health).toBe('loading')
  keycast.close()
})
