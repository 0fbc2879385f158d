import { createConnection } from './connection.js'

class FakeSocket {
  /** @type {FakeSocket[]} */
  static made = []
  constructor(/** @type {string} */ url, /** @type {string} */ protocol) {
    this.url = url
    this.protocol = protocol
    this.closed = false
    /** @type {any[]} */
    this.sent = []
    /** @type {(event: { data: string }) => void} */
    this.onmessage = () => {}
    /** @type {(event: { code: number, reason: string }) => void} */
    this.onclose = () => {}
    FakeSocket.made.push(this)
  }
  /** @param {string} text */
  send(text) {
    this.sent.push(JSON.parse(text))
  }
  close() {
    this.closed = true
  }
  /** @param {object} message */
  say(message) {
    this.onmessage({ data: JSON.stringify(message) })
  }
}

/** @param {{ random?: () => number }} [options] */
function setup({ random = () => 1 } = {}) {
  FakeSocket.made = []
  let nowMs = 0
  /** @type {{ task: () => void, atMs: number } | undefined} */
  let timer
  /** @type {import('./connection.js').ConnectionState[]} */
  const states = []
  /** @type {any[]} */
  const messages = []
  const connection = createConnection({
    url: 'ws://here/ws',
    onState: state => states.push(state),
    onMessage: message => messages.push(message),
    WebSocket: FakeSocket,
    random,
    now: () => nowMs,
    timers: {
      set: (task, ms) => {
        timer = { task, atMs: nowMs + ms }
        return timer
      },
      clear: () => {
        timer = undefined
      },
    },
  })
  const pass = (/** @type {number} */ ms) => {
    const untilMs = nowMs + ms
    while (timer && timer.atMs <= untilMs) {
      const { task, atMs } = timer
      timer = undefined
      nowMs = atMs
      task()
    }
    nowMs = untilMs
  }
  const socket = () => /** @type {FakeSocket} */ (FakeSocket.made.at(-1))
  const welcome = () => socket().say({ type: 'welcome', session: 's', heartbeatMs: 1_000, limits: {} })
  connection.connectNow()
  return { connection, states, messages, pass, socket, welcome, sockets: () => FakeSocket.made.length }
}

/** @param {ReturnType<typeof setup>} world */
const waitOf = ({ connection }) => {
  const state = connection.state()
  if (state.name !== 'waiting') throw new Error(`the connection is ${state.name}`)
  return state.untilMs
}

test('it is live once the gateway said welcome', () => {
  const { states, socket, welcome } = setup()
  expect(socket().protocol).toBe('keycast.v1.json')
  welcome()
  expect(states.map(({ name }) => name)).toEqual(['connecting', 'live'])
})

test('messages reach the page, the connection’s own do not', () => {
  const { messages, socket, welcome } = setup()
  welcome()
  socket().say({ type: 'pong', count: 1 })
  socket().say({ type: 'value', key: 'a:1', version: 'v', data: 1 })
  expect(messages).toEqual([{ type: 'value', key: 'a:1', version: 'v', data: 1 }])
})

test('waits double with each failure, up to a bound', () => {
  const world = setup()
  const waits = Array.from({ length: 9 }, () => {
    world.socket().onclose({ code: 1006, reason: '' })
    const waitMs = waitOf(world)
    world.connection.connectNow()
    return waitMs
  })
  expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000])
})

test('the wait is anything from nothing to its bound: full jitter', () => {
  const world = setup({ random: () => 0.25 })
  world.socket().onclose({ code: 1006, reason: '' })
  expect(waitOf(world)).toBe(125)
})

test('a connection that lasted starts the waits anew, one that was dropped at once does not', () => {
  const world = setup()
  world.socket().onclose({ code: 1006, reason: '' })
  world.pass(500)
  world.welcome()
  world.socket().onclose({ code: 1006, reason: '' })
  expect(waitOf(world)).toBe(500 + 1_000)
  world.pass(1_000)
  world.welcome()
  for (let second = 0; second < 6; second += 1) {
    world.pass(1_000)
    world.socket().say({ type: 'pong', count: second })
  }
  world.socket().onclose({ code: 1006, reason: '' })
  expect(waitOf(world)).toBe(7_500 + 500)
})

test('a gateway that is closing is left when it asks, not by the dice', () => {
  const world = setup({ random: () => 0 })
  world.welcome()
  world.socket().say({ type: 'closing', reconnectAfterMs: 3_000 })
  world.pass(500)
  world.socket().onclose({ code: 1012, reason: '' })
  expect(waitOf(world)).toBe(3_000)
  world.pass(2_499)
  expect(world.sockets()).toBe(1)
  world.pass(1)
  expect(world.sockets()).toBe(2)
})

test('a gateway that said closing and never hangs up is left all the same', () => {
  const { pass, socket, sockets, welcome, connection } = setup()
  welcome()
  const old = socket()
  old.say({ type: 'closing', reconnectAfterMs: 3_000 })
  pass(3_000)
  expect(old.closed).toBe(true)
  expect(sockets()).toBe(2)
  old.onclose({ code: 1005, reason: '' })
  expect(connection.state().name).toBe('connecting')
})

test('silence is noticed: no answer to a ping ends the connection', () => {
  const { pass, socket, welcome, connection } = setup()
  welcome()
  pass(1_000)
  expect(socket().sent).toEqual([{ type: 'ping' }])
  socket().say({ type: 'pong', count: 1 })
  pass(1_000)
  pass(9_999)
  expect(connection.state().name).toBe('live')
  pass(1)
  expect(connection.state()).toMatchObject({ name: 'waiting', reason: 'the connection went silent' })
})

test('a handshake nobody answers is given up', () => {
  const { pass, connection } = setup()
  pass(10_000)
  expect(connection.state().name).toBe('waiting')
})

test('a close that says coming back makes no sense is believed, until a person insists', () => {
  const { pass, socket, sockets, welcome, connection } = setup()
  welcome()
  socket().onclose({ code: 4007, reason: '' })
  expect(connection.state()).toMatchObject({ name: 'stopped', reason: expect.stringContaining('past the limits') })
  pass(60_000)
  expect(sockets()).toBe(1)
  connection.connectNow()
  expect(sockets()).toBe(2)
})

test('when the network is back a wait ends, and a live connection is asked for a sign of life', () => {
  const { connection, socket, sockets, welcome } = setup()
  welcome()
  connection.check()
  expect(socket().sent).toEqual([{ type: 'ping' }])
  socket().onclose({ code: 1006, reason: '' })
  connection.check()
  expect(sockets()).toBe(2)
})

test('what is sent while not live is dropped', () => {
  const { connection, socket } = setup()
  connection.send({ type: 'ping' })
  expect(socket().sent).toEqual([])
})
