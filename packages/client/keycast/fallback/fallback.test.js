import { BlockedWebSocket } from '../../test-stream-world.js'
import { welcome } from '../../test-support.js'
import { connect } from '../connect.js'
import { createFallback } from './fallback.js'

/**
 * A network: what answers each path, and what was asked.
 *
 * @param {{ answers?: Record<string, (init: RequestInit) => Response | Promise<Response>>, WebSocket?: any }} [options]
 */
function setup({ answers = {}, WebSocket = BlockedWebSocket } = {}) {
  let nowMs = 0
  /** @type {{ task: () => void, atMs: number }[]} */
  let timers = []
  /** @type {string[]} */
  const asked = []
  const Socket = createFallback({
    WebSocket,
    fetch: async (address, init = {}) => {
      const { pathname, search } = new URL(String(address))
      asked.push(pathname + search)
      const answer = answers[pathname]
      if (!answer) throw new TypeError('no connection')
      return answer(init)
    },
    setTimeout(task, ms) {
      const timer = { task, atMs: nowMs + ms }
      timers.push(timer)
      return timer
    },
    clearTimeout(timer) {
      timers = timers.filter(each => each !== timer)
    },
  })
  /** Lets all go on that needs no time. */
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
  }
  return {
    Socket,
    asked,
    settle,
    /** @param {number} ms */
    async pass(ms) {
      nowMs += ms
      const due = timers.filter(({ atMs }) => atMs <= nowMs)
      timers = timers.filter(({ atMs }) => atMs > nowMs)
      for (const { task } of due) task()
      await settle()
    },
    open(url = 'wss://example.com/ws') {
      const socket = new Socket(url, 'keycast.v1.bytes')
      /** @type {any[]} */
      const heard = []
      socket.onmessage = ({ data }) => heard.push(read(data))
      socket.onclose = ({ code, reason }) => heard.push({ code, reason })
      return { socket, heard, take: () => heard.splice(0) }
    },
  }
}

/** @param {string | ArrayBuffer} data */
function read(data) {
  if (typeof data === 'string') return JSON.parse(data)
  const text = Buffer.from(data).toString()
  const end = text.indexOf('\n')
  return { ...JSON.parse(text.slice(0, end)), bytes: text.slice(end + 1) }
}

/** A stream that says these messages, and goes on. @param {object[]} messages */
const streamOf = (...messages) => {
  const text = messages.map(message => `data: ${JSON.stringify(message)}\n\n`).join('')
  const body = new ReadableStream({ start: controller => controller.enqueue(new TextEncoder().encode(text)) })
  return new Response(body, { headers: { 'keycast-stream': 'its name' } })
}

/** Streams get through; how often a WebSocket was tried is counted. */
function setUpCounted(stream = () => streamOf(welcome())) {
  let count = 0
  class CountedWebSocket extends BlockedWebSocket {
    constructor() {
      super()
      count++
    }
  }
  const test = setup({ WebSocket: CountedWebSocket, answers: { '/v1/stream': stream } })
  return { ...test, dialled: () => count }
}

/** A gateway that is there. */
const library = () => new Response('', { headers: { 'content-type': 'text/javascript; charset=utf-8' } })

/** That says nothing. */
const heldBack = () => new Response(new ReadableStream())

test('where a WebSocket is refused, an event stream takes its place, and requests beside it', async () => {
  /** @type {RequestInit[]} */
  const sent = []
  const { open, settle, asked } = setup({
    answers: {
      '/v1/stream': () => streamOf(welcome()),
      '/v1/stream/send': init => {
        sent.push(init)
        return new Response(null, { status: 204 })
      },
    },
  })
  const { socket, take } = open()
  await settle()
  expect(take()).toEqual([welcome()])
  socket.send('{"n":1}')
  socket.send('{"n":2}')
  socket.send('{"n":3}')
  await settle()
  // Messages given while a request is under way go together, in their order.
  expect(sent.map(({ body }) => body)).toEqual(['{"n":1}', '{"n":2}\n{"n":3}'])
  expect(sent[0].headers).toMatchObject({ 'keycast-stream': 'its name' })
  expect(asked[0]).toBe('/v1/stream')
})

test.each([
  [
    'throws',
    class {
      constructor() {
        throw new Error('forbidden')
      }
    },
  ],
  ['is none', null],
])('an event stream takes the place of a WebSocket that %s', async (_, WebSocket) => {
  const { asked, settle, open } = setup({ WebSocket })
  open()
  await settle()
  expect(asked[0]).toBe('/v1/stream')
})

test('a WebSocket that says nothing for 4 s is given up for a stream, one that speaks is kept', async () => {
  /** @type {any[]} */
  const sockets = []
  class SlowWebSocket {
    isClosed = false
    /** @type {any} */
    onmessage = null
    constructor() {
      sockets.push(this)
    }
    close() {
      this.isClosed = true
    }
  }
  const { open, pass, asked } = setup({
    WebSocket: SlowWebSocket,
    answers: { '/v1/stream': () => streamOf(welcome()) },
  })
  open()
  await pass(3_999)
  sockets[0].onmessage({ data: '{"type":"welcome"}' })
  await pass(10_000)
  expect([sockets[0].isClosed, asked]).toEqual([false, []])
  const { take } = open()
  await pass(4_000)
  expect([sockets[1].isClosed, asked, take()]).toEqual([true, ['/v1/stream'], [welcome()]])
})

test('what a gateway closes a WebSocket for is told, and no other way is tried', async () => {
  class ClosedWebSocket {
    /** @type {any} */
    onclose = null
    constructor() {
      queueMicrotask(() => this.onclose({ code: 4001, reason: 'no token' }))
    }
  }
  const { open, settle, asked } = setup({ WebSocket: ClosedWebSocket })
  const { take } = open()
  await settle()
  expect([take(), asked]).toEqual([[{ code: 4001, reason: 'no token' }], []])
})

test('what worked is tried first the next time', async () => {
  const { open, settle, dialled } = setUpCounted()
  for (let n = 0; n < 2; n++) {
    const { socket } = open()
    await settle()
    socket.close()
  }
  expect(dialled()).toBe(1)
})

test('beside a stream a WebSocket is tried again after 5 s, then ever more rarely, until the socket is closed', async () => {
  const { open, pass, settle, dialled } = setUpCounted()
  const { socket } = open()
  await settle()
  const counts = []
  for (const ms of [4_999, 1, 9_999, 1, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 599_999, 1]) {
    await pass(ms)
    counts.push(dialled())
  }
  expect(counts).toEqual([1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10])
  socket.close()
  await pass(600_000)
  expect(dialled()).toBe(10)
})

test('a better way that speaks takes the place of requests that wait: all was away for a moment', async () => {
  const answers = /** @type {Record<string, () => Response>} */ ({ '/keycast.js': library })
  const { open, pass, settle, asked } = setup({ answers })
  const { take } = open()
  await settle()
  expect(take()).toMatchObject([{ type: 'welcome' }])
  await pass(5_000)
  expect(take()).toEqual([])
  answers['/v1/stream'] = () => streamOf(welcome())
  await pass(10_000)
  expect(take()).toEqual([{ code: 1006, reason: 'there is a better way' }])
  asked.length = 0
  const again = open()
  await settle()
  expect([again.take(), asked]).toEqual([[welcome()], ['/v1/stream']])
})

test('where a way that worked gives place to the next, that one is remembered', async () => {
  let isHeldBack = false
  const { open, pass, settle, asked } = setup({
    answers: {
      '/v1/stream': () => (isHeldBack ? heldBack() : streamOf(welcome())),
      '/keycast.js': library,
    },
  })
  open()
  await settle()
  isHeldBack = true
  open()
  await pass(4_000)
  asked.length = 0
  const { take } = open()
  await settle()
  expect(asked).toEqual(['/keycast.js'])
  expect(take()).toMatchObject([{ type: 'welcome' }])
})

test('a room waits for a better way, and does not end, whatever is wanted of it', async () => {
  const noRoom = () => Response.json({ code: 'unknown_namespace', message: 'none' }, { status: 404 })
  const { Socket, settle } = setup({
    answers: { '/keycast.js': library, '/v1/values/room:1': noRoom, '/v1/values/room:2': noRoom },
  })
  const keycast = connect('wss://example.com/ws', { WebSocket: Socket })
  const rooms = [keycast.room('room:1'), keycast.room('room:2', { last: 50, presence: true })]
  await settle()
  for (const { state } of rooms) {
    expect([state.health, state.error?.code, state.error?.subscribed]).toEqual(['loading', 'journal_unavailable', true])
  }
  keycast.close()
})

test('lines of other scripts end no message of a stream', async () => {
  const data = 'one\u2028two\u2029three\u0085four'
  const { open, settle } = setup({
    answers: {
      '/v1/stream': () =>
        streamOf(welcome(), { type: 'message', data }, { type: 'value', key: 'a:1', version: 'v', data }),
    },
  })
  const { take } = open()
  await settle()
  expect(take()).toMatchObject([welcome(), { data }, { key: 'a:1', bytes: JSON.stringify(data) }])
})

test('messages go together no longer than the longest message that the gateway takes', async () => {
  /** @type {string[]} */
  const sent = []
  const { open, settle } = setup({
    answers: {
      '/v1/stream': () => streamOf({ type: 'welcome', limits: { messageBytes: 1_024 } }),
      '/v1/stream/send': ({ body }) => {
        sent.push(String(body))
        return new Response(null, { status: Buffer.byteLength(String(body)) > 1_024 ? 413 : 204 })
      },
    },
  })
  const { socket, heard } = open()
  await settle()
  const messages = Array.from({ length: 10 }, () => '–'.repeat(150))
  for (const message of [...messages, 'x'.repeat(1_024)]) socket.send(message)
  await settle()
  await settle()
  await settle()
  expect(sent.join('\n').split('\n')).toEqual([...messages, 'x'.repeat(1_024)])
  expect(heard).toHaveLength(1)
})

test('what a proxy lets through no more of is said again a second later', async () => {
  let isFull = true
  /** @type {unknown[]} */
  const sent = []
  const { open, settle, pass } = setup({
    answers: {
      '/v1/stream': () => streamOf(welcome()),
      '/v1/stream/send': ({ body }) => {
        sent.push(body)
        return new Response(null, { status: isFull ? 429 : 204 })
      },
    },
  })
  const { socket, take } = open()
  await settle()
  take()
  socket.send('1')
  await settle()
  socket.send('2')
  isFull = false
  await pass(1_000)
  expect(sent).toEqual(['1', '1\n2'])
  expect(take()).toEqual([])
})

/** An event stream whose requests are answered only when the test says so. */
function setUpHeld() {
  /** @type {string[]} */
  const sent = []
  /** @type {(() => void)[]} */
  const answers = []
  /** @type {AbortSignal | null | undefined} */
  let signal
  /** @type {ReadableStreamDefaultController} */
  let stream
  const say = (/** @type {string} */ text) => stream.enqueue(new TextEncoder().encode(text))
  const test = setup({
    answers: {
      '/v1/stream': init => {
        signal = init.signal
        const body = new ReadableStream({
          start(controller) {
            stream = controller
          },
        })
        say(`data: ${JSON.stringify(welcome())}\n\n`)
        return new Response(body, { headers: { 'keycast-stream': 'its name' } })
      },
      '/v1/stream/send': ({ body }) => {
        sent.push(String(body))
        return new Promise(resolve => answers.push(() => resolve(new Response(null, { status: 204 }))))
      },
    },
  })
  return {
    ...test,
    sent,
    answer: () => answers.shift()?.(),
    comment: () => say(':\n\n'),
    hasEnded: () => signal?.aborted,
  }
}

test('what was said before a close is posted, and then the stream ends', async () => {
  const { open, settle, sent, answer, hasEnded } = setUpHeld()
  const { socket, take } = open()
  await settle()
  take()
  socket.send('1')
  socket.send('2')
  socket.close()
  await settle()
  expect([sent, hasEnded()]).toEqual([['1'], false])
  answer()
  await settle()
  expect([sent, hasEnded()]).toEqual([['1', '2'], false])
  answer()
  await settle()
  expect([hasEnded(), take()]).toEqual([true, []])
})

test('a close waits 5 s at most for what is still to be posted, and for nothing else', async () => {
  const { open, settle, pass, sent, hasEnded } = setUpHeld()
  const { socket } = open()
  await settle()
  socket.send('1')
  socket.send('2')
  socket.close()
  await pass(4_999)
  expect(hasEnded()).toBe(false)
  await pass(1)
  expect([sent, hasEnded()]).toEqual([['1'], true])

  const idle = setUpHeld()
  const { socket: other } = idle.open()
  await idle.settle()
  other.close()
  expect(idle.hasEnded()).toBe(true)
})

test('each comment of a gateway is answered by an empty request, unless one is under way', async () => {
  const { open, settle, sent, answer, comment } = setUpHeld()
  const { socket } = open()
  await settle()
  comment()
  await settle()
  expect(sent).toEqual([''])
  comment()
  await settle()
  answer()
  await settle()
  expect(sent).toEqual([''])
  socket.close()
})

test('a stream is read alike, however its bytes come', async () => {
  const messages = [welcome(), { type: 'message', data: 'é\u2028\n\n😀' }, { type: 'message', data: 2 }]
  const bytes = new TextEncoder().encode(
    `retry: 5\n\n${messages.map(message => `id: x\ndata: ${JSON.stringify(message)}\n\n:\n\n`).join('')}`,
  )
  for (const size of [1, 2, 3, 7, 64, bytes.length]) {
    const { open, settle } = setup({
      answers: {
        '/v1/stream': () => {
          let at = 0
          const body = new ReadableStream({
            pull(controller) {
              if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + size))
              at += size
            },
          })
          return new Response(body, { headers: { 'keycast-stream': 'its name' } })
        },
        '/v1/stream/send': () => new Response(null, { status: 204 }),
      },
    })
    const { heard } = open()
    while (heard.length < messages.length) await settle()
    expect(heard).toEqual(messages)
  }
})

test('a way that worked and does no more is forgotten', async () => {
  let isUp = true
  const { open, settle, dialled } = setUpCounted(() =>
    isUp ? streamOf(welcome()) : Response.json({ code: 'capacity', message: 'full' }, { status: 503 }),
  )
  open()
  await settle()
  isUp = false
  const { take } = open()
  await settle()
  expect(take()).toEqual([{ code: 1006, reason: 'full' }])
  open()
  await settle()
  expect(dialled()).toBe(2)
})

test.each([
  [413, 1009],
  [404, 1006],
  // By a page in a gateway's place.
  [200, 1006],
])('a request that is answered with %i ends the socket with %i', async (status, code) => {
  const { open, settle } = setup({
    answers: {
      '/v1/stream': () => streamOf(welcome()),
      '/v1/stream/send': () => new Response('{"code":"x","message":"why"}', { status }),
    },
  })
  const { socket, take } = open()
  await settle()
  take()
  socket.send('{}')
  await settle()
  expect(take()).toEqual([{ code, reason: 'why' }])
})

test.each([
  [503, '{"code":"capacity","message":"this gateway is full"}', []],
  [429, 'too many', []],
  [403, '{"code":"forbidden","message":"not this page"}', []],
  [404, '{"code":"unknown_path","message":"an older gateway"}', ['/keycast.js']],
  [403, '<html>blocked by a proxy</html>', ['/keycast.js']],
])(
  'a stream answered with %i %s: requests that wait are tried only where it is blocked',
  async (status, body, then) => {
    const { open, settle, asked } = setup({ answers: { '/v1/stream': () => new Response(body, { status }) } })
    const { take } = open()
    await settle()
    expect(asked).toEqual(['/v1/stream', ...then])
    expect(take()).toEqual([{ code: 1006, reason: expect.any(String) }])
  },
)

test('where all are away the socket is lost, whatever was tried', async () => {
  const { open, settle, asked } = setup()
  const { take } = open()
  await settle()
  expect(asked).toEqual(['/v1/stream', '/keycast.js'])
  expect(take()).toEqual([{ code: 1006, reason: expect.stringContaining('no connection') }])
})

test('where streams are held back, values come by requests that wait', async () => {
  /** @type {(response: Response) => void} */
  let answer = () => {}
  const { open, pass, settle, asked } = setup({
    answers: {
      '/v1/stream': heldBack,
      '/keycast.js': library,
      '/v1/values/doc:1': () =>
        new Response('{"n":1.0}', {
          headers: { etag: 'W/"v1"', 'keycast-cursor': '7.1', 'content-type': 'application/json' },
        }),
      '/v1/values/doc:2': () => Response.json({ code: 'not_found', message: 'nothing' }, { status: 404 }),
      '/v1/values/room:1': () => Response.json({ code: 'unknown_namespace', message: 'none' }, { status: 404 }),
      '/v1/values/doc:3': () => Response.json({ code: 'forbidden', message: 'not you' }, { status: 403 }),
      '/v1/wait/doc:1': () =>
        new Promise(resolve => {
          answer = resolve
        }),
    },
  })
  const { socket, take } = open()
  await settle()
  await pass(4_000)
  expect(take()).toMatchObject([{ type: 'welcome' }])
  const keys = ['doc:1', { key: 'doc:2' }, 'doc:3', 'room:1', { key: 'room:2', last: 50 }]
  socket.send(JSON.stringify({ type: 'subscribe', id: 1, keys }))
  await settle()
  const said = take()
  expect(said).toContainEqual({ type: 'subscribed', id: 1, keys: [] })
  const value = { type: 'value', key: 'doc:1', contentType: 'application/json' }
  expect(said).toContainEqual({ ...value, version: 'v1', order: 7, bytes: '{"n":1.0}' })
  expect(said).toContainEqual({ type: 'error', key: 'doc:2', subscribed: true, code: 'not_found', message: 'nothing' })
  expect(said).toContainEqual({ type: 'error', key: 'doc:3', subscribed: false, code: 'forbidden', message: 'not you' })
  for (const key of ['room:1', 'room:2']) {
    expect(said).toContainEqual(expect.objectContaining({ key, subscribed: true, code: 'journal_unavailable' }))
  }
  await pass(1_000)
  expect(asked).toContain('/v1/wait/doc:1?after=v1&cursor=7.1')
  answer(new Response(null, { status: 204, headers: { 'keycast-cursor': '7.2' } }))
  await settle()
  // That nothing has changed is a sign of life, too.
  expect(take()).toEqual([{ type: 'pong' }])
  await pass(1_000)
  expect(asked.at(-1)).toBe('/v1/wait/doc:1?after=v1&cursor=7.2')
  answer(new Response('2', { headers: { etag: '"v2"', 'keycast-cursor': '8.2', 'content-type': 'application/json' } }))
  await settle()
  expect(take()).toEqual([{ ...value, version: 'v2', order: 8, bytes: '2' }])
  await pass(1_000)
  expect(asked.at(-1)).toBe('/v1/wait/doc:1?after=v2&cursor=8.2')
  socket.send(JSON.stringify({ type: 'unsubscribe', id: 2, keys: ['doc:1'] }))
  answer(new Response('3'))
  await settle()
  expect(take()).toEqual([{ type: 'ok', id: 2 }])
  socket.send(JSON.stringify({ type: 'get', id: 3, key: 'doc:1' }))
  socket.send(JSON.stringify({ type: 'ping', id: 4 }))
  socket.send(JSON.stringify({ type: 'publish', id: 5, key: 'room:1', data: 1 }))
  await settle()
  const answers = take()
  expect(answers).toHaveLength(3)
  expect(answers).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ type: 'pong', id: 4 }),
      expect.objectContaining({ type: 'error', id: 5, code: 'journal_unavailable' }),
      expect.objectContaining({ type: 'value', id: 3, version: 'v1' }),
    ]),
  )
})

test('over requests that wait a ping asks whether gateways can be reached', async () => {
  let isUp = true
  const { open, settle } = setup({
    answers: {
      '/keycast.js': () => (isUp ? library() : Promise.reject(new TypeError('no connection'))),
    },
  })
  const { socket, take } = open()
  await settle()
  expect(take()).toMatchObject([{ type: 'welcome' }])
  socket.send('{"type":"ping","id":1}')
  expect(take()).toEqual([])
  await settle()
  expect(take()).toEqual([{ type: 'pong', id: 1, count: 0 }])
  isUp = false
  socket.send('{"type":"ping","id":2}')
  await settle()
  expect(take()).toMatchObject([{ code: 1006 }])
})

test('a client with a token, which requests that wait cannot serve, tries a WebSocket each time', async () => {
  let count = 0
  class SilentWebSocket {
    onmessage = null
    constructor() {
      count++
    }
    close() {}
  }
  const { open, pass, settle } = setup({
    WebSocket: SilentWebSocket,
    answers: { '/v1/stream': heldBack, '/v1/keycast.js': library, '/keycast.js': library },
  })
  for (const times of [1, 2]) {
    const { socket, take } = open()
    await settle()
    await pass(4_000)
    await pass(4_000)
    expect(take()).toMatchObject([{ type: 'welcome' }])
    socket.send('{"type":"auth","id":"auth","token":"t"}')
    expect(take()).toMatchObject([{ code: 1006 }])
    expect(count).toBe(times)
  }
})

test('an address is read relative to the page, as a WebSocket reads it', async () => {
  const page = /** @type {any} */ (globalThis)
  page.location = { href: 'https://example.com/page' }
  try {
    const { open, asked, settle } = setup()
    open('/ws')
    await settle()
    expect(asked).toContain('/v1/stream')
  } finally {
    delete page.location
  }
})

test('what somebody on the way answers in the place of a gateway is no value', async () => {
  const { open, settle, pass } = setup({
    answers: {
      '/keycast.js': library,
      '/v1/values/doc:1': () => new Response('<html>Sign in</html>', { headers: { 'content-type': 'text/html' } }),
    },
  })
  const { socket, take } = open()
  await settle()
  await pass(0)
  socket.send('{"type":"subscribe","id":1,"keys":["doc:1"]}')
  await settle()
  expect(take()).toContainEqual(expect.objectContaining({ type: 'error', key: 'doc:1', code: 'backend_unreachable' }))
})

test('no way follows a redirect: the token would go there, and values come from there', async () => {
  /** @type {any[]} */
  const redirects = []
  const note = (/** @type {RequestInit} */ { redirect }) => redirects.push(redirect)
  let isStreamed = true
  const { open, settle } = setup({
    answers: {
      '/v1/stream': init => {
        note(init)
        return isStreamed ? streamOf(welcome()) : new Response('', { status: 404 })
      },
      '/v1/stream/send': init => {
        note(init)
        return new Response(null, { status: 204 })
      },
      '/keycast.js': init => {
        note(init)
        return library()
      },
    },
  })
  const { socket } = open()
  await settle()
  socket.send('{"type":"auth","token":"secret"}')
  await settle()
  isStreamed = false
  open('wss://other.example.com/ws')
  await settle()
  expect(redirects).toEqual(Array(4).fill('error'))
})

test('an event that does not end is given up before it takes all memory', async () => {
  const chunk = new TextEncoder().encode('x'.repeat(8 * 1024 ** 2))
  let reads = 0
  const endless = new ReadableStream({
    start: controller => controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(welcome())}\n\ndata: `)),
    pull(controller) {
      reads += 1
      controller.enqueue(chunk)
    },
  })
  const { open } = setup({ answers: { '/v1/stream': () => new Response(endless) } })
  const { socket, heard } = open()
  const closed = new Promise(resolve => {
    const { onclose } = socket
    socket.onclose = event => {
      onclose?.(event)
      resolve(event)
    }
  })
  await closed
  expect(heard.at(-1)).toEqual({ code: 1006, reason: 'too long' })
  expect(reads).toBeLessThan(20)
})

/** A client over requests that wait. @param {Record<string, () => Response | Promise<Response>>} answers */
async function setUpWaits(answers) {
  const test = setup({ answers: { '/keycast.js': library, ...answers } })
  const opened = test.open()
  await test.settle()
  opened.take()
  return { ...test, ...opened }
}

/** @param {string} version @param {string} cursor */
const versioned = (version, cursor) =>
  new Response('1', {
    headers: { etag: `"${version}"`, 'keycast-cursor': cursor, 'content-type': 'application/json' },
  })
const first = () => versioned('v1', '7.1')

test('a request beside a stream that three comments overtake ends the socket, for nothing else tells of it', async () => {
  const { open, settle, sent, answer, comment } = setUpHeld()
  const { socket, take } = open()
  await settle()
  take()
  socket.send('1')
  comment()
  comment()
  await settle()
  answer()
  await settle()
  socket.send('2')
  comment()
  comment()
  await settle()
  expect([sent, take()]).toEqual([['1', '2'], []])
  comment()
  await settle()
  expect(take()).toEqual([{ code: 1006, reason: 'no answer' }])
})

test.each([
  ['the same answer', first],
  ['that nothing is new', () => new Response(null, { status: 204, headers: { 'keycast-cursor': '7.1' } })],
  ['an error', () => Response.json({ code: 'backend_error', message: 'm', retryAfterMs: 0 }, { status: 502 })],
])('a key is asked for once a second at most where each request is answered at once with %s', async (_, answer) => {
  const { socket, settle, pass, asked } = await setUpWaits({ '/v1/values/doc:1': answer, '/v1/wait/doc:1': answer })
  asked.splice(0)
  socket.send('{"type":"subscribe","id":1,"keys":["doc:1"]}')
  for (let turn = 0; turn < 20; turn++) await settle()
  for (let second = 0; second < 5; second++) await pass(1_000)
  const ofKey = asked.filter(path => path.includes('doc:1'))
  expect(ofKey.length).toBeGreaterThan(0)
  expect(ofKey.length).toBeLessThanOrEqual(6)
})

test('a page that stands in the place of all others is no gateway, nor is an answer of nothing a value', async () => {
  const { open, settle } = setup({ answers: { '/keycast.js': () => new Response('<html>Sign in</html>') } })
  const { take } = open()
  await settle()
  expect(take()).toEqual([{ code: 1006, reason: 'no gateway' }])

  const waits = await setUpWaits({ '/v1/values/doc:1': () => new Response(null, { status: 204 }) })
  waits.socket.send('{"type":"subscribe","id":1,"keys":["doc:1"]}')
  await waits.settle()
  expect(waits.take()).toContainEqual(expect.objectContaining({ key: 'doc:1', code: 'backend_unreachable' }))
})

test('a gateway that is behind shows nothing older over requests that wait, nor does a better way after them', async () => {
  let value = () => versioned('old', '6.1')
  /** @type {(response: Response) => void} */
  let answer = () => {}
  const { socket, take, pass, settle, asked } = await setUpWaits({
    '/v1/values/doc:1': () => value(),
    '/v1/wait/doc:1': () =>
      new Promise(resolve => {
        answer = resolve
      }),
  })
  const current = { type: 'current', key: 'doc:1', version: 'v1', order: 7 }
  socket.send('{"type":"subscribe","id":1,"keys":[{"key":"doc:1","version":"v1","order":7}]}')
  await settle()
  expect(take()).toEqual([{ type: 'subscribed', id: 1, keys: [] }, current])
  await pass(1_000)
  // So that the gateway asks for what it has missed.
  expect(asked.at(-1)).toBe('/v1/wait/doc:1?after=v1&cursor=7.1')
  answer(Response.json({ code: 'fetcher_unavailable', message: 'm' }, { status: 503 }))
  value = () => new Response(null, { status: 304, headers: { 'keycast-cursor': '6.2' } })
  await settle()
  await pass(10_000)
  expect(take()).toEqual([expect.objectContaining({ type: 'error', code: 'fetcher_unavailable' }), current])
  await pass(1_000)
  expect(asked.at(-1)).toBe('/v1/wait/doc:1?after=v1&cursor=7.2')
  answer(versioned('v2', '8.2'))
  await settle()
  expect(take()).toMatchObject([{ type: 'value', version: 'v2', order: 8 }])
})

test('a request that waits and is not answered in 150 s has died on the way, and ends the socket', async () => {
  const never = () => new Promise(() => {})
  const { socket, take, pass, settle } = await setUpWaits({
    '/v1/values/doc:1': first,
    '/v1/wait/doc:1': /** @type {any} */ (never),
  })
  socket.send('{"type":"subscribe","id":1,"keys":["doc:1"]}')
  await settle()
  await pass(1_000)
  take()
  await pass(149_000)
  expect(take()).toEqual([])
  await pass(1_000)
  expect(take()).toEqual([{ code: 1006, reason: 'no answer' }])
})

test('of more than 100 keys the others come when some leave, over requests that wait, or with a better way', async () => {
  const keys = Array.from({ length: 101 }, (_, id) => `doc:${id}`)
  const { socket, take, pass, settle } = await setUpWaits(
    Object.fromEntries(
      keys.flatMap(key => [
        [`/v1/values/${key}`, () => versioned(key, '7.1')],
        [`/v1/wait/${key}`, () => new Promise(() => {})],
      ]),
    ),
  )
  socket.send(JSON.stringify({ type: 'subscribe', id: 1, keys }))
  await settle()
  const error = { type: 'error', key: 'doc:100', code: 'too_many_keys', subscribed: true, retryAfterMs: 30_000 }
  const told = take()
  expect(told.filter(({ type }) => type === 'value')).toHaveLength(100)
  expect(told).toContainEqual(expect.objectContaining(error))
  socket.send('{"type":"unsubscribe","id":2,"keys":["doc:3"]}')
  await pass(30_000)
  expect(take()).toContainEqual(expect.objectContaining({ type: 'value', key: 'doc:100' }))
})
