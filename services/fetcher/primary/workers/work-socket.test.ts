import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createContainment, realWorld } from '@keycast/service'
import { Dealer } from 'zeromq'
import { type Credit, decodeLeases, encodeWork, type Lease, type ResultMessage } from '../../worker-messages.ts'
import { bindWork } from './work-socket.ts'

let cleanups: (() => unknown)[] = []
let parent: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'kc-'))
  cleanups.push(() => rmSync(parent, { recursive: true }))
})
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
  cleanups = []
})

async function bind(options?: Partial<Parameters<typeof bindWork>[0]>) {
  const socket = await bindWork({
    ...realWorld,
    parent,
    onMessage() {},
    onBroken: error => {
      throw error
    },
    ...options,
  })
  cleanups.push(() => socket.close())
  return socket
}

function connect(endpoint: string) {
  const dealer = new Dealer({ linger: 0 })
  cleanups.push(() => dealer.close())
  dealer.connect(endpoint)
  return dealer
}

const creditOf = (worker: number) => ({ type: 'credit', worker, credit: 2, cpuMs: 0, residentBytes: 0 }) as const

const lease: Lease = {
  type: 'lease',
  lease: 1,
  key: 'doc:1',
  url: 'http://b/1',
  headers: {},
  timeoutMs: 1,
  bytesMax: 1,
  delta: false,
}

test('credit and results come in, leases go out', async () => {
  let receive: (received: { routingId: Buffer; message: Credit | ResultMessage; body?: Buffer }) => void = () => {}
  const { endpoint, send } = await bind({
    onMessage: (routingId, message, body) => receive({ routingId, message, body }),
  })
  const next = () =>
    new Promise<Parameters<typeof receive>[0]>(resolve => {
      receive = resolve
    })
  const worker = connect(endpoint)

  const credit = next()
  await worker.send(encodeWork([{ message: creditOf(7) }]))
  const { routingId, message } = await credit
  expect(message).toEqual(creditOf(7))

  send(routingId, lease)
  expect(decodeLeases(await worker.receive())).toEqual([{ message: lease }])

  const result = next()
  await worker.send(
    encodeWork([
      {
        message: {
          type: 'result',
          lease: 1,
          kind: 'value',
          version: 'v',
          contentType: 'text/plain',
          format: 'text',
          status: 200,
          store: true,
        },
        body: Buffer.from('body'),
      },
    ]),
  )
  expect(await result).toMatchObject({ message: { kind: 'value', version: 'v' }, body: Buffer.from('body') })
})

test('a lease to nobody is dropped, and the next one arrives', async () => {
  let announced: (id: Buffer) => void = () => {}
  const { endpoint, send } = await bind({ onMessage: routingId => announced(routingId) })
  const routingId = new Promise<Buffer>(resolve => {
    announced = resolve
  })
  const worker = connect(endpoint)
  await worker.send(encodeWork([{ message: creditOf(7) }]))
  const known = await routingId
  send(Buffer.from('nobody'), lease)
  send(known, { ...lease, lease: 2 })
  expect(decodeLeases(await worker.receive())).toEqual([{ message: { ...lease, lease: 2 } }])
})

test('leases of one turn go out as one message to each worker, in order', async () => {
  const known = new Map<number, Buffer>()
  let announced = () => {}
  const both = new Promise(resolve => {
    announced = () => known.size === 2 && resolve(undefined)
  })
  const { endpoint, send } = await bind({
    onMessage(routingId, message) {
      known.set((message as Credit).worker, routingId)
      announced()
    },
  })
  const workers = [connect(endpoint), connect(endpoint)]
  for (const [index, worker] of workers.entries()) {
    await worker.send(encodeWork([{ message: creditOf(index) }]))
  }
  await both
  for (let number = 0; number < 6; number++) {
    send(known.get(number % 2) as Buffer, { ...lease, lease: number })
  }
  const numbers = (parts: Buffer[]) => decodeLeases(parts).map(({ message }) => message.lease)
  expect(numbers(await workers[0].receive())).toEqual([0, 2, 4])
  expect(numbers(await workers[1].receive())).toEqual([1, 3, 5])
})

test('every socket has a path of its own, that only its user can reach, and that is gone when it is closed', async () => {
  const [first, second] = [await bind(), await bind()]
  expect(first.endpoint).not.toBe(second.endpoint)
  const path = first.endpoint.slice('ipc://'.length)
  expect(path.length).toBeLessThan(108)
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
  expect(existsSync(path)).toBe(true)
  cleanups.pop()
  cleanups.pop()
  first.close()
  second.close()
  expect(readdirSync(parent)).toEqual([])
})

test('what a killed primary left behind is removed; what is in use, or new, stays', async () => {
  const make = (name: string) => {
    const directory = join(parent, `keycast-work-${name}`)
    mkdirSync(directory)
    return directory
  }
  const age = (directory: string) => utimesSync(directory, 1, 1)
  const left = make('left')
  writeFileSync(join(left, 'work'), '') // refuses connections, as a socket does that nobody listens to
  age(left)
  const empty = make('empty')
  age(empty)
  const used = make('used')
  const listener = createServer().listen(join(used, 'work'))
  await once(listener, 'listening')
  cleanups.push(() => new Promise(resolve => listener.close(resolve)))
  age(used)
  const starting = make('starting')

  await bind()

  expect(existsSync(left)).toBe(false)
  expect(existsSync(empty)).toBe(false)
  expect(existsSync(used)).toBe(true)
  expect(existsSync(starting)).toBe(true)
})

test.each([
  ['no JSON', [Buffer.from('{')]],
  ['a result of an unknown kind', [Buffer.from('[{"type":"result","lease":1,"kind":"rumour"}]')]],
  ['what the code behind fails at', encodeWork([{ message: creditOf(666) }])],
])('a worker that sends %s is told of, and the others are heard', async (_, parts) => {
  const containment = createContainment({ now: () => 0, ends: ['worker'], log: { error() {} } as any })
  let heard: (worker: number) => void = () => {}
  let failed: (routingId: Buffer) => void = () => {}
  const { endpoint } = await bind({
    onMessage(_, message) {
      if (message.type !== 'credit') return
      if (message.worker === 666) throw new TypeError('a bug')
      heard(message.worker)
    },
    onFailed: routingId => failed(routingId),
    containment,
  })
  const failure = new Promise(resolve => {
    failed = resolve
  })
  const [offender, bystander] = [connect(endpoint), connect(endpoint)]
  await offender.send(parts)
  expect(await failure).toBeInstanceOf(Buffer)
  const hearing = new Promise(resolve => {
    heard = resolve
  })
  await bystander.send(encodeWork([{ message: creditOf(7) }]))
  expect(await hearing).toBe(7)
  expect(containment.counts).toEqual({ worker: 1, process: 0 })
})
