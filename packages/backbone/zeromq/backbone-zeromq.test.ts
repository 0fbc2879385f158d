// The promise kept over real sockets: the parts that backbone-memory.test.ts cannot show.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { realWorld } from '@keycast/service'
import { Dealer, Pull, Push, Router } from 'zeromq'
import { endpointsOf } from '../gateway/discovery.ts'
import type { Log } from '../gateway/link.ts'
import { startLogLink, startLogNode } from '../memory/test-service.ts'
import { createZeromqBackbone, createZeromqHub, createZeromqRooms } from './backbone-zeromq.ts'
import { bindZeromq } from './bind.ts'
import { dialZeromq } from './dial.ts'

const deep = '['.repeat(5_000) + ']'.repeat(5_000)

const log: Log = { debug() {}, info() {}, warn() {}, error() {} }

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function startNode({ requestsPort = 0, answersPort = 0 }: { requestsPort?: number; answersPort?: number } = {}) {
  const hub = createZeromqHub({ host: '127.0.0.1', requestsPort, answersPort, log })
  const heard = createQueue()
  const bodies = new Map<string, Buffer>()
  await hub.start({
    onWatch: (link, { key, position }) => {
      heard.push(`watch ${key}${position ? ` ${position.version}` : ''}`)
      hub.tell(link, key)
    },
    onGet: (link, { key }) => hub.tell(link, key),
    onUnwatch: (_, key) => heard.push(`unwatch ${key}`),
    onCancelGet: () => {},
    onNotice: (_, { keys }) => {
      for (const key of keys) heard.push(`refresh ${key}`)
    },
    onLinkLost: () => {
      heard.push('lost')
    },
    answersFor: (_, key) => {
      const body = bodies.get(key)
      if (!body) return { answers: [], more: false }
      const version = String(body.length)
      const terms = { ageMs: 0, maxAgeMs: 0, store: true, contentType: 'x/y', format: 'base64' } as const
      return { answers: [{ type: 'value', key, version, ...terms, body }], more: false }
    },
  })
  cleanups.push(() => hub.stop())
  return { hub, heard, bodies, ...hub.ports() }
}

/** Resolves when the node's ports can be bound again: libzmq frees them some time after the sockets are closed. */
async function stopped({ hub, requestsPort, answersPort }: Awaited<ReturnType<typeof startNode>>) {
  await hub.stop()
  for (const port of [requestsPort, answersPort]) {
    while (!(await isFree(port)));
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

async function startGateway(nodes: string, gatewayLog = log) {
  const answers = createQueue()
  const backbone = createZeromqBackbone({
    nodes,
    messageBytesMax: 64 * 2 ** 20,
    events: { held: () => undefined, onAnswer: answer => answers.push(answer) },
    log: gatewayLog,
  })
  await backbone.start()
  cleanups.push(() => backbone.stop())
  return { backbone, answers }
}

/** Arrivals, to be awaited one by one. */
function createQueue() {
  const items: any[] = []
  const waiting: ((item: any) => void)[] = []
  return {
    push(item: any) {
      const next = waiting.shift()
      if (next) next(item)
      else items.push(item)
    },
    next: () => (items.length > 0 ? Promise.resolve(items.shift()) : new Promise(resolve => waiting.push(resolve))),
  }
}

test('a value crosses byte for byte', async () => {
  const node = await startNode()
  const body = Buffer.from(Array.from({ length: 130_000 }, (_, i) => i % 256))
  node.bodies.set('a:1', body)
  const { backbone, answers } = await startGateway(`127.0.0.1:${node.requestsPort}:${node.answersPort}`)

  backbone.watch('a:1')

  expect((await answers.next()).body.equals(body)).toBe(true)
})

test('a node that is started after the gateway is found', async () => {
  const early = await startNode()
  const { requestsPort, answersPort } = early
  await stopped(early)
  const { backbone, answers } = await startGateway(`127.0.0.1:${requestsPort}:${answersPort}`)
  backbone.watch('a:1')

  const node = await startNode({ requestsPort, answersPort })
  node.bodies.set('a:1', Buffer.from('x'))

  expect((await answers.next()).version).toBe('1')
})

test('a node that is restarted on its ports is told everything again', async () => {
  const first = await startNode()
  const { requestsPort, answersPort } = first
  const { backbone } = await startGateway(`127.0.0.1:${requestsPort}:${answersPort}`)
  backbone.watch('a:1')
  await first.heard.next()
  await stopped(first)

  const second = await startNode({ requestsPort, answersPort })

  expect(await second.heard.next()).toBe('watch a:1')
})

test('a node that stops says so: no gateway waits for its silence', async () => {
  const node = await startNode()
  const told = createQueue()
  const tell = (fields: unknown, what: string | undefined) => told.push(what ?? fields)
  const { backbone } = await startGateway(`127.0.0.1:${node.requestsPort}:${node.answersPort}`, {
    ...log,
    info: tell as any,
    warn: tell as any,
  })
  backbone.watch('a:1')
  await node.heard.next()
  expect(await told.next()).toBe('linking to a node')
  expect(await told.next()).toBe('a node answers')

  await node.hub.stop()

  expect(await told.next()).toBe('a node does not answer')
})

test('a refresh crosses and is confirmed', async () => {
  const node = await startNode()
  const { backbone } = await startGateway(`127.0.0.1:${node.requestsPort}:${node.answersPort}`)

  await backbone.refresh(['a:1'], { deadlineMs: 5_000 })

  expect(await node.heard.next()).toBe('refresh a:1')
})

test('strangers who write to the ports are not heard, and others are served on', async () => {
  const node = await startNode()
  node.bodies.set('a:1', Buffer.from('x'))
  for (const port of [node.requestsPort, node.answersPort]) {
    const stranger = connect(port, '127.0.0.1')
    stranger.on('error', () => {}).resume()
    cleanups.push(async () => void stranger.destroy())
    await new Promise(resolve => stranger.write(Buffer.alloc(100_000, 'GET / HTTP/1.1\r\n'), resolve))
  }
  const { backbone, answers } = await startGateway(`127.0.0.1:${node.requestsPort}:${node.answersPort}`)

  backbone.watch('a:1')

  expect((await answers.next()).key).toBe('a:1')
})

test('messages that are no messages are dropped, and others are served on', async () => {
  const node = await startNode()
  node.bodies.set('a:1', Buffer.from('x'))
  const push = new Push({ linger: 1_000 })
  push.connect(`tcp://127.0.0.1:${node.requestsPort}`)
  const dealer = new Dealer({ linger: 1_000 })
  dealer.connect(`tcp://127.0.0.1:${node.answersPort}`)
  const deepType = `{"link":"L","number":1,"taken":1,"type":${deep}}`
  const deepKey = `{"link":"L","number":1,"type":"unwatch","keys":[${deep}]}`
  for (const parts of [['{'], ['null', 'x'], ['{"type":"watch"}'], [''], [deepType], [deepKey], [deep]]) {
    await push.send(parts)
    await dealer.send(parts)
  }
  const { backbone, answers } = await startGateway(`127.0.0.1:${node.requestsPort}:${node.answersPort}`)

  backbone.watch('a:1')

  expect((await answers.next()).key).toBe('a:1')
  push.close()
  dealer.close()
})

test('a node that says what nests 5,000 levels deep is none, and the keys are served by another', async () => {
  const [pull, router] = [new Pull({ linger: 0 }), new Router({ linger: 0 })]
  cleanups.push(async () => {
    pull.close()
    router.close()
  })
  await pull.bind('tcp://127.0.0.1:*')
  await router.bind('tcp://127.0.0.1:*')
  const portOf = (socket: Pull | Router) => String(socket.lastEndpoint).split(':').at(-1)
  const node = await startNode()
  const nodes = `127.0.0.1:${portOf(pull)}:${portOf(router)},127.0.0.1:${node.requestsPort}:${node.answersPort}`
  const { backbone, answers } = await startGateway(nodes)
  const keys = Array.from({ length: 20 }, (_, id) => `a:${id}`)
  for (const key of keys) {
    node.bodies.set(key, Buffer.from('x'))
    backbone.watch(key)
  }
  const speaking = (async () => {
    for await (const [routingId, beat] of router) {
      const { link } = JSON.parse(beat.toString())
      try {
        await router.send([routingId, `{"type":${deep},"link":"${link}"}`])
      } catch (error) {
        // The test was over between a beat and its answer.
        if (!router.closed) throw error
      }
    }
  })()
  const answered = new Set<string>()
  while (answered.size < keys.length) answered.add((await answers.next()).key)
  router.close()
  await speaking
})

test('a port that is taken is named', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  cleanups.push(async () => void taken.close())
  const { port } = taken.address() as AddressInfo

  await expect(startNode({ answersPort: port })).rejects.toThrow(`tcp://127.0.0.1:${port}`)
})

test('a hub without CURVE binds loopback addresses only', () => {
  for (const host of ['0.0.0.0', '10.0.0.1', '::', 'localhost']) {
    expect(() => createZeromqHub({ host, requestsPort: 0, answersPort: 0, log })).toThrow(host)
  }
})

test('a gateway without CURVE links loopback addresses only', () => {
  for (const host of ['fetcher', '10.0.0.1', 'localhost']) {
    const nodes = `127.0.0.1:7001:7002,${host}:7001:7002`
    const events = {} as any
    expect(() => createZeromqBackbone({ nodes, messageBytesMax: 1, events, log })).toThrow(host)
    expect(() => createZeromqRooms({ nodes, events, log })).toThrow(host)
  }
})

test('entries and commands of a second service cross with all their parts', async () => {
  let ports = { requestsPort: 0, answersPort: 0 }
  const bind = bindZeromq(
    { requests: 'tcp://127.0.0.1:*', answers: 'tcp://127.0.0.1:*' },
    {
      log,
      now: () => 0,
      bound: bound => {
        ports = bound
      },
    },
  )
  const node = await startLogNode({ ...realWorld, bind })
  cleanups.push(() => node.hub.stop())
  const { link, received, append } = startLogLink({
    dial: dialZeromq(endpointsOf(`127.0.0.1:${ports.requestsPort}:${ports.answersPort}`), { messageBytesMax: 2 ** 20 }),
    ...realWorld,
  })
  cleanups.push(async () => link.stop())
  link.watch('room:1')

  const ends = await Promise.all(['one', 'two', 'three'].map(text => append('room:1', `id-${text}`, text)))

  expect(ends).toMatchObject([1, 2, 3].map(seq => ({ type: 'result', result: { seq } })))
  expect(received.map(({ data, stamp }) => `${data} ${stamp}`)).toEqual(['one id-one', 'two id-two', 'three id-three'])
})
