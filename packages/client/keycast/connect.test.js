// The client as a whole: where it connects, what an application hears of it, and that it leaves nothing behind.
import { createDelta } from 'fossil-delta'
import { connect } from '../keycast.js'
import { createWorld, welcome } from '../test-support.js'

/** @param {string | URL} url */
function dialled(url) {
  const { environment, deeds } = createWorld()
  connect(url, { environment })
  return deeds[0]
}

test.each([
  ['ws://host:8080/ws', 'ws://host:8080/ws'],
  ['https://host/ws', 'wss://host/ws'],
  [new URL('http://host/a/ws?x=1'), 'ws://host/a/ws?x=1'],
])('%s is dialled as %s', (given, url) => {
  expect(dialled(given)).toEqual({ dials: url, offers: 'keycast.v1.bytes' })
})

test.each([0, -1, 0.001, null, 'soon'])(
  'with a heartbeat of %p a client pings four times a second at most',
  async heartbeatMs => {
    const { environment, socket, pass, done } = createWorld()
    connect('ws://host/ws', { environment })
    socket().say({ ...welcome(), heartbeatMs })
    let pings = 0
    for (let ms = 0; ms < 10_000; ms += 10) {
      await pass(10)
      for (const deed of done()) {
        if (!('out' in deed)) continue
        pings++
        socket().say({ type: 'pong', id: deed.out.id, count: pings })
      }
    }
    expect(pings).toBeLessThanOrEqual(40)
  },
)

test('in a page a path is enough', () => {
  const world = /** @type {any} */ (globalThis)
  world.location = { href: 'https://example.com/app/index.html' }
  try {
    expect(dialled('/ws')).toMatchObject({ dials: 'wss://example.com/ws' })
  } finally {
    delete world.location
  }
})

test.each([
  ['/ws', undefined],
  ['localhost:8080/ws', undefined],
  ['localhost:8080/ws', 'a token'],
  ['ftp://host/ws', undefined],
])('%s is no URL of a WebSocket, with the token %s', (url, token) => {
  const { environment } = createWorld()
  expect(() => connect(url, { environment, token })).toThrow(
    expect.objectContaining({ name: 'TypeError', message: 'Invalid URL' }),
  )
})

test('what can never work is said at once', () => {
  const saved = globalThis.WebSocket
  const world = /** @type {any} */ (globalThis)
  world.WebSocket = undefined
  expect(() => connect('ws://host/')).toThrow('no WebSocket')
  world.WebSocket = saved
})

test('the state is told to whoever asks, with what a person wants to know', async () => {
  const { environment, socket, settle, pass } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  /** @type {import('../keycast.js').ConnectionState[]} */
  const states = []
  const off = keycast.on('state', state => states.push(state))
  await settle()
  socket().say(welcome())
  socket().lose(1006, 'cable pulled')
  await pass(1_000)
  socket().lose(4007, 'far too much')
  expect(states).toEqual([
    { name: 'connecting' },
    { name: 'open', session: 's' },
    { name: 'waiting', retryAt: 1_000, reason: 'cable pulled' },
    { name: 'connecting' },
    { name: 'closed', code: 4007, reason: 'far too much' },
  ])
  off()
  keycast.close()
  expect(states).toHaveLength(5)
  expect(keycast.state).toEqual({ name: 'closed', reason: 'closed here' })
  expect(() => keycast.on(/** @type {any} */ ('open'), () => {})).toThrow(TypeError)
})

test('why no connection was made is said where the platform tells, and the next try is at a whole millisecond', async () => {
  const { environment, socket, pass } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment: { ...environment, random: () => 0.1234567 } })
  const refused = 'connect ECONNREFUSED 127.0.0.1:8080'
  socket().onerror?.({ message: refused })
  socket().lose(1006)
  expect(keycast.state).toEqual({ name: 'waiting', retryAt: 123, reason: refused })
  await pass(124)
  socket().onerror?.({ type: 'error' })
  socket().lose(1006)
  expect(keycast.state).toMatchObject({ reason: 'the connection was lost' })
  keycast.close()
})

test.each([
  ['fields of the wrong types', { type: 'subscribed', id: 1, keys: 5 }],
  ['no fields', { type: 'welcome' }],
  ['limits that are no numbers', { ...welcome(), limits: { keysPerSession: { valueOf: 1, toString: 1 } } }],
  ['a list in place of a key', { type: 'subscribed', id: 1, keys: [null] }],
])('a message with %s ends the connection and not the program, and the client comes back', async (_, message) => {
  const { environment, socket, settle, pass } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  keycast.value('a:1')
  await settle()
  socket().say(welcome())
  await settle()
  socket().lose(1006)
  await pass(2_000)
  if (message.type !== 'welcome') socket().say(welcome())
  socket().say(message)
  expect(keycast.state).toMatchObject({ name: 'waiting', reason: expect.stringContaining('unreadable: TypeError') })
  await pass(10_000)
  socket().say(welcome())
  expect(keycast.state.name).toBe('open')
  keycast.close()
})

test('a value nested 100,000 levels deep is shown like any other', async () => {
  const { environment, socket, settle } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  const doc = keycast.value('a:1')
  await settle()
  socket().say(welcome())
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  const value = { type: 'value', key: 'a:1', version: 'v1', contentType: 'application/json' }
  socket().say(value, Buffer.from(deep))
  expect(doc.state.value).toEqual([expect.any(Array)])
  socket().onmessage?.({ data: `{"type":${deep}}` })
  expect(keycast.state.name).toBe('open')
  keycast.close()
})

test('a listener may close the client, whatever it is told', async () => {
  for (const name of ['connecting', 'open', 'waiting']) {
    const { environment, socket, settle, pass, timers, window, document } = createWorld()
    const keycast = connect('ws://gateway/ws', { environment })
    keycast.value('a:1')
    keycast.on('state', state => {
      if (state.name === name) keycast.close()
    })
    await settle()
    socket().say(welcome())
    socket().lose(1006)
    await pass(60_000)
    expect(keycast.state.name).toBe('closed')
    expect(timers.size).toBe(0)
    for (const target of [window, document]) {
      expect([...target.listeners.values()].every(listeners => listeners.size === 0)).toBe(true)
    }
  }
})

test('where there is no page, as in Node, it connects and comes back all the same', async () => {
  const { environment, socket, pass, done } = createWorld({ page: false })
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  socket().lose(1006)
  await pass(1_000)
  expect(done().filter(deed => 'dials' in deed)).toHaveLength(2)
  keycast.close()
})

test('a page that is hidden from the start sets no timer', () => {
  const { environment, document, timers } = createWorld()
  document.visibilityState = 'hidden'
  connect('ws://gateway/ws', { environment })
  expect(timers.size).toBe(0)
})

test('where there is no SHA-256 a delta is shown by its checksum alone', async () => {
  const { environment, socket, settle } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment: { ...environment, subtle: undefined } })
  const handle = keycast.value('a:1')
  socket().say(welcome())
  await settle()
  const line = { key: 'a:1', contentType: 'application/json' }
  const [one, two] = [Buffer.from('[1]'), Buffer.from('[2]')]
  socket().say({ ...line, type: 'value', version: 'one' }, one)
  socket().say({ ...line, type: 'delta', from: 'one', version: 'two' }, Buffer.from(createDelta(one, two)))
  expect(handle.state).toMatchObject({ value: [2], version: 'two' })
})

test('5,000 keys are resumed in two messages', async () => {
  const { environment, socket, settle, pass, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  const keys = Array.from({ length: 5_000 }, (_, n) => `conversation:${n}`)
  for (const key of keys) keycast.value(key)
  socket().say(welcome())
  const [first, ...others] = outs()
  expect([first.keys.length, others]).toEqual([5_000, []])
  socket().say({ type: 'subscribed', id: first.id, keys: [] })
  const version = 'v'.repeat(22)
  for (const key of keys) {
    socket().say({ type: 'value', key, version, contentType: 'application/json' }, Buffer.from('1'))
  }
  await settle()
  socket().lose(1006)
  await pass(1_000)
  socket().say(welcome())
  const [second] = outs()
  socket().say({ type: 'subscribed', id: second.id, keys: [] })
  const [third] = outs()
  socket().say({ type: 'subscribed', id: third.id, keys: [] })
  expect(outs()).toEqual([])
  expect([...second.keys, ...third.keys]).toEqual(keys.map(key => ({ key, version })))
})

test('gets beyond what a gateway lets wait are held back', async () => {
  const { environment, socket, settle, done } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  done()
  const asked = Array.from({ length: 100 }, (_, n) => keycast.get(`a:${n}`))
  await settle()
  const sent = done()
  expect(sent).toHaveLength(64)
  for (const deed of sent) {
    if ('out' in deed)
      socket().say({ type: 'value', ...deed.out, version: 'v', contentType: 'text/json' }, Buffer.from('7'))
  }
  const rest = done()
  expect(rest).toHaveLength(36)
  for (const deed of rest) {
    if ('out' in deed) socket().say({ ...deed.out, type: 'error', code: 'not_found', message: '' })
  }
  const results = await Promise.allSettled(asked)
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(64)
})

/** @type {[string, (world: ReturnType<typeof createWorld>) => void, number][]} */
const losses = [
  ['a loss', world => world.socket().lose(1006), 0],
  ['a page that is left', world => world.page('pagehide'), 0],
  ['a gateway that closes', world => world.socket().say({ type: 'closing', reconnectAfterMs: 100 }), 100],
  ['a close for good', world => world.socket().lose(4007), 0],
]

test.each(losses)(
  'a listener that hears of %s in a room can close the client: it stays closed',
  async (_, lose, ms) => {
    const world = createWorld()
    const keycast = connect('ws://gateway/ws', { environment: world.environment })
    const room = keycast.room('room:1')
    world.socket().say(welcome())
    const { out } = /** @type {any} */ (world.done().at(-1))
    const begun = { key: 'room:1', epoch: 'E', seq: 4, oldest: 1, recovered: false, count: 0 }
    world.socket().say({ type: 'subscribed', id: out.id, keys: [begun] })
    await world.settle()
    room.on('change', ({ live }) => {
      if (!live) keycast.close()
    })
    world.done()
    lose(world)
    await world.pass(ms)
    await world.pass(60_000)
    expect(keycast.state).toEqual({ name: 'closed', reason: 'closed here' })
    expect(world.done().filter(deed => 'dials' in deed)).toEqual([])
    expect(world.timers.size).toBe(0)
  },
)

test('a listener that hears that a closed client goes on can close it: nothing is dialled', async () => {
  const { environment, socket, settle, done } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  const handle = keycast.value('a:1')
  socket().lose(4007)
  await settle()
  handle.on('change', ({ error }) => {
    if (!error) keycast.close()
  })
  await settle()
  done()
  keycast.reconnect()
  expect(keycast.state).toEqual({ name: 'closed', reason: 'closed here' })
  expect(done()).toEqual([])
})

test('after the gateway closed for good no timer is left, for a value that was kept either', async () => {
  const { environment, socket, settle, timers, done } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  const handle = keycast.value('a:1')
  socket().say(welcome())
  await settle()
  const { out } = /** @type {any} */ (done().at(-1))
  socket().say({ type: 'subscribed', id: out.id, keys: [{ key: 'a:1' }] })
  socket().say({ type: 'value', key: 'a:1', version: 'v', contentType: 'application/json' }, Buffer.from('1'))
  handle.close()
  await settle()
  socket().lose(4007)
  expect(timers.size).toBe(0)
  expect(keycast.peek('a:1').value).toBeUndefined()
})

test.each([undefined, 'a token'])(
  'a WebSocket that cannot be made, with the token %s, is a state, and tried again',
  async token => {
    const { environment, settle, pass } = createWorld()
    let tries = 0
    class Insecure {
      constructor() {
        tries += 1
        throw new Error('insecure')
      }
    }
    const WebSocket = /** @type {any} */ (Insecure)
    const keycast = connect('ws://gateway/ws', { environment: { ...environment, WebSocket }, token })
    await settle()
    expect(keycast.state).toEqual({ name: 'waiting', retryAt: 1_000, reason: 'Error: insecure' })
    await pass(1_000)
    expect(tries).toBe(2)
    keycast.close()
  },
)

test('a token function that rejects with nothing is a state, and asked again', async () => {
  const { environment, settle, pass } = createWorld()
  let tries = 0
  const token = () => {
    tries += 1
    return Promise.reject()
  }
  const keycast = connect('ws://gateway/ws', { environment, token })
  await settle()
  expect(keycast.state).toMatchObject({ name: 'waiting', retryAt: 1_000 })
  await pass(1_000)
  expect(tries).toBe(2)
  keycast.close()
})

test('a listener that hears of the end may connect again: every handle goes on', async () => {
  const { environment, socket, settle, done, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const handles = [keycast.value('a:1'), keycast.room('room:1'), keycast.value('a:2')]
  /** @type {string[]} */
  const told = []
  handles[0].on('change', ({ error }) => error && keycast.reconnect())
  keycast.on('state', ({ name }) => told.push(name))
  await settle()
  socket().lose(4007)
  await settle()
  expect(handles.map(({ state }) => state.error)).toEqual([undefined, undefined, undefined])
  done()
  socket().say(welcome())
  await settle()
  const keys = outs().flatMap(({ keys }) => keys)
  expect([keycast.state.name, keys]).toEqual(['open', ['room:1', 'a:1', 'a:2']])
  expect(told).toEqual(['open', 'connecting', 'open'])
  keycast.close()
})

test('a message of an unknown type says nothing of a key', async () => {
  const { environment, socket, settle, outs } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const handle = keycast.value('a:1')
  await settle()
  const [{ id }] = outs()
  socket().say({ type: 'subscribed', id, keys: [{ key: 'a:1' }] })
  const error = { type: 'error', key: 'a:1', subscribed: true, code: 'backend_error', message: '', retryAfterMs: 1 }
  socket().say(error)
  socket().say({ type: 'hint', key: 'a:1' })
  expect(handle.state.error).toMatchObject({ code: 'backend_error' })
  socket().say({ type: 'value', key: 'a:1', version: 'v', contentType: 'application/json' }, Buffer.from('1'))
  expect(handle.state).toMatchObject({ value: 1, error: undefined })
  keycast.close()
})

test('what is kept for ever is kept, and a message without a deadline waits', async () => {
  const { environment, socket, settle, pass, outs } = createWorld()
  // As platforms do: what they cannot count is over at once.
  const setTimeout = (/** @type {() => void} */ task, /** @type {number} */ ms) =>
    environment.setTimeout(task, ms < 2 ** 31 ? ms : 1)
  const keycast = connect('ws://gateway/ws', { environment: { ...environment, setTimeout }, keepMs: Infinity })
  socket().say(welcome())
  const handle = keycast.value('a:1')
  await settle()
  const [{ id }] = outs()
  socket().say({ type: 'subscribed', id, keys: [{ key: 'a:1' }] })
  socket().say({ type: 'value', key: 'a:1', version: 'v', contentType: 'application/json' }, Buffer.from('1'))
  handle.close()
  const room = keycast.room('room:1', { follow: false })
  const published = room.publish('hi', { deadlineMs: Infinity })
  await pass(1_000)
  expect([keycast.peek('a:1').value, room.pending.length]).toEqual([1, 1])
  keycast.close()
  await expect(published).rejects.toMatchObject({ code: 'publish_unknown' })
})

test('a listener that closes the client while it resumes leaves every handle closed', async () => {
  const { environment, socket, settle } = createWorld()
  const keycast = connect('ws://gateway/ws', { environment })
  socket().say(welcome())
  const handles = [keycast.room('room:1'), keycast.room('room:2'), keycast.value('a:1')]
  await settle()
  socket().lose(4007)
  handles[0].on('change', (/** @type {{ error?: unknown }} */ { error }) => {
    if (!error) keycast.close()
  })
  await settle()

  keycast.reconnect()
  await settle()
  expect(keycast.state.name).toBe('closed')
  expect(handles.map(({ state }) => state.error?.code)).toEqual(['closed', 'closed', 'closed'])
})
