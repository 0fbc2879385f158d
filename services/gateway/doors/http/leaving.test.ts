// Whatever comes to the public doors over HTTP, in any order, several requests at a time, cut anywhere and read or not: once
// its connections are gone nothing of it is left, and others have as much room as before.
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { eventually } from '../../../../test/support/deadline.ts'
import { createRandom } from '../../../../test/support/random.js'
import { readRule } from '../../access/rule.ts'
import { issuers, sign } from '../../access/test-tokens.ts'
import { authorizeKept, createTestGateway, noMetrics } from '../../test-support.ts'
import { createTestApp } from './test-support.ts'

const START_MS = 1_795_000_000_000
const STEPS = 600
const UNREAD_BYTES_MAX = 1_000_000
const KEYS = ['tick:1', 'tick:2', 'tick:3', 'doc:1', 'own:1', 'room:1', 'none:1']
const SENT = [
  '',
  '\n',
  'x',
  '{"type":"subscribe","keys":["tick:1","doc:1"]}',
  '{"type":"get","id":1,"key":"own:1"}',
  '{"type":"unsubscribe","keys":["tick:1"]}\n{"type":"ping"}',
  '{"type":"publish","id":1,"key":"room:1","data":1}',
]
const UPGRADE = [
  'GET /ws HTTP/1.1',
  'host: x',
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  `sec-websocket-key: ${'A'.repeat(22)}==`,
]
/** Of the metrics, those that count what clients hold. */
const COUNTS = ['subscriptions', 'subscriptions_awaiting', 'watched_keys', 'watched_rooms', 'sessions']

const token = await sign({ sub: 'ann', nowMs: START_MS, ttlSeconds: 3_000 })
const ruleOf = (rule: object, user: boolean) => readRule(rule, { user, strict: true }).rule
const authorize = authorizeKept(5_000)

const stops: (() => Promise<void>)[] = []
afterEach(() => Promise.all(stops.splice(0).map(stop => stop())))

async function setUp() {
  const counts = new Map<string, () => unknown>()
  const test = createTestGateway({
    startAtMs: START_MS,
    namespaces: { tick: {}, doc: { authorize }, own: { isPerUser: true } },
    rooms: { room: {} },
    policy: {
      anonymous: ruleOf({ read: ['*:**'], publish: ['*:**'] }, false),
      everyone: ruleOf({ read: ['*:**'] }, true),
      tokens: issuers,
    },
    metrics: { ...noMetrics, read: (name, _, value) => void (typeof value === 'function' && counts.set(name, value)) },
  })
  await test.gateway.start()
  const app = createTestApp({ ...test.gateway, unreadBytesMax: UNREAD_BYTES_MAX })
  test.gateway.attach(app.server)
  stops.push(async () => {
    await test.gateway.stop()
    await app.close()
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo

  async function open(onData: (text: string) => void = () => {}) {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => {}).on('data', bytes => onData(String(bytes)))
    await once(socket, 'connect')
    return socket
  }
  const connections = () =>
    new Promise<number>((done, fail) =>
      app.server.getConnections((error, count) => (error ? fail(error) : done(count))),
    )
  return {
    ...test,
    open,
    /** What is held for clients, by name. */
    held: async () => ({
      connections: await connections(),
      ...Object.fromEntries(COUNTS.map(name => [name, counts.get(name)?.()])),
    }),
  }
}

/** Does one thing after another. */
function createStrangers({ open, backbone, pass }: Awaited<ReturnType<typeof setUp>>, seed: number) {
  const { integer, pick } = createRandom(seed)
  const isOneOf = (many: number) => integer(many) === 0
  const sockets: Socket[] = []
  /** Names of streams that were opened. */
  const names = ['none']
  /** With what a wait for some key goes on. */
  const afters = [`after=x&cursor=1.${Math.floor(START_MS / 20_000) + 1}`]
  let values = 0

  async function come() {
    sockets.push(
      await open(text => {
        for (const [, name] of text.matchAll(/^keycast-stream: (.*)\r$/gim)) names.push(name)
        const version = /^etag: (?:W\/)?"(.*)"\r$/im.exec(text)?.[1]
        const cursor = /^keycast-cursor: (.*)\r$/im.exec(text)?.[1]
        if (version && cursor) afters.push(`after=${version}&cursor=${cursor}`)
      }),
    )
  }

  const headers = () => [
    'host: x',
    ...(isOneOf(5) ? [`authorization: Bearer ${token}`] : []),
    ...(isOneOf(20) ? ['expect: 100-continue'] : []),
    ...(isOneOf(10) ? ['accept-encoding: br'] : []),
    ...(isOneOf(20) ? ['connection: close'] : []),
  ]
  const textOf = (lines: string[], body = '') => `${lines.join('\r\n')}\r\n\r\n${body}`
  const get = (path: string) => textOf([`${isOneOf(10) ? 'HEAD' : 'GET'} ${path} HTTP/1.1`, ...headers()])
  function post(path: string, body: string, more: string[] = []) {
    // Of some not all comes.
    const length = body.length + (isOneOf(5) ? 100 : 0)
    return textOf([`POST ${path} HTTP/1.1`, ...headers(), ...more, `content-length: ${length}`], body)
  }
  const requests = [
    () => get(`/v1/values/${pick(KEYS)}`),
    () => get(`/v1/values/${pick(KEYS)}`),
    () => get(`/v1/wait/${pick(KEYS)}?${pick(afters)}`),
    () => get(`/v1/stream?keys=${pick(KEYS)},${pick(KEYS)}`),
    () => get('/v1/messages/room:1?limit=5'),
    () => post('/v1/stream/send', pick(SENT), [`keycast-stream: ${pick(names)}`]),
    () => post('/v1/ticket', ''),
    () => textOf(UPGRADE),
  ]

  function takeOut() {
    const [socket] = sockets.splice(integer(sockets.length), 1)
    return socket as Socket | undefined
  }
  function reset(socket: Socket | undefined) {
    // Node 24 never closes one that is shutting down: its process would not exit.
    if (socket?.writableEnded) socket.destroy()
    else socket?.resetAndDestroy()
  }
  function answerAsked() {
    const asked = backbone.calls.filter(call => /^(watch|get) /.test(call)).slice(-30)
    const key = pick(asked)?.replace(/^\w+ /, '')
    if (key === undefined) return
    const retryAfterMs = pick([undefined, 1_000])
    if (isOneOf(7)) backbone.failed(key, pick(['not_found', 'backend_error', 'forbidden'] as const), { retryAfterMs })
    else backbone.value(key, JSON.stringify({ value: ++values, filler: 'x'.repeat(integer(9_000)) }), { order: values })
  }
  function decide() {
    const verdict = pick(['admitted', 'refused'] as const)
    backbone.questions.shift()?.resolve({ verdict, ageMs: 0, message: '' } as any)
  }
  const acts: (() => unknown)[] = [
    come,
    () => pick(sockets)?.write(pick(requests)()),
    () => pick(sockets)?.write(pick(requests)()),
    () => pick(sockets)?.write(Array.from({ length: 1 + integer(5) }, () => pick(requests)()).join('')),
    () => pick(sockets)?.write(pick(requests)().slice(0, integer(60))),
    () => takeOut()?.destroy(),
    () => reset(takeOut()),
    () => pick(sockets)?.end(),
    () => pick(sockets)?.pause(),
    () => pick(sockets)?.resume(),
    answerAsked,
    answerAsked,
    decide,
    () => pass(integer(3_000)),
    () => new Promise(resolve => setImmediate(resolve)),
  ]

  return {
    act: () => pick(acts)(),
    leave() {
      for (const socket of sockets.splice(0)) socket.destroy()
    },
  }
}

test.each([1, 2, 3, 4, 5])('of whoever comes over HTTP nothing is left (%i)', async seed => {
  const test = await setUp()
  const { backbone, pass, open, held } = test
  const strangers = createStrangers(test, seed)
  for (let step = 0; step < STEPS; step++) await strangers.act()
  strangers.leave()

  const none = { connections: 0, ...Object.fromEntries(COUNTS.map(name => [name, 0])) }
  const isLeft = async () => {
    for (const question of backbone.questions.splice(0)) question.resolve({ verdict: 'admitted', ageMs: 0 } as any)
    await pass(20_000)
    return JSON.stringify(await held()) !== JSON.stringify(none)
  }
  await eventually(async () => !(await isLeft()), 'nothing of the strangers being left')
  expect(await held()).toEqual(none)

  const answered = new Promise<string>(
    resolve => void open(resolve).then(last => last.write('GET /v1/values/tick:99 HTTP/1.1\r\nhost: x\r\n\r\n')),
  )
  await eventually(() => backbone.calls.includes('get tick:99'), 'the key being asked for')
  backbone.value('tick:99', JSON.stringify('x'.repeat(UNREAD_BYTES_MAX - 100)))
  expect((await answered).slice(0, 15)).toBe('HTTP/1.1 200 OK')
})
