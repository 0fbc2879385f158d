import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realWorld } from '@keycast/service'
import { Router } from 'zeromq'
import { decodeFromWorker, encodeWork, type Lease, MESSAGES_MAX } from '../worker-messages.ts'
import type { Deltas } from './deltas.ts'
import type { Pulled } from './response.ts'
import { openWorkSocket } from './work-socket.ts'
import { startWorker } from './worker.ts'

let cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups) cleanup()
  cleanups = []
})

/** A primary's socket, and a worker at its other end. */
async function setup({
  pull = async () => current,
  deltas = noDeltas,
  credit = 4,
  beatMs = 60_000,
}: {
  pull?: (lease: Lease) => Promise<Pulled>
  deltas?: Deltas
  credit?: number
  beatMs?: number
} = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'keycast-'))
  const endpoint = `ipc://${directory}/work`
  const router = new Router({ linger: 0 })
  await router.bind(endpoint)
  let onBroken: (error: unknown) => void = () => {}
  const logged: unknown[][] = []
  const broken = new Promise<unknown>(resolve => {
    onBroken = resolve
  })
  const worker = startWorker({
    ...realWorld,
    openWorkSocket: onLease => openWorkSocket({ ...realWorld, endpoint, onLease, onBroken }),
    puller: { pull },
    asker: {
      ask: async ({ headers }) => ({ result: { kind: 'status', status: headers.authorization ? 204 : 401 } }),
    },
    deltas,
    id: 3,
    credit,
    beatMs,
    usage: () => ({ cpuMs: 20, residentBytes: 5_000 }),
    log: { error: (...line: unknown[]) => void logged.push(line) },
  })
  cleanups.push(() => {
    worker.stop()
    router.close()
    rmSync(directory, { recursive: true })
  })
  const [routingId, ...first] = await router.receive()
  let read: ReturnType<typeof decodeFromWorker> = []
  return {
    router,
    worker,
    broken,
    logged,
    first: decodeFromWorker(first)[0],
    async next() {
      if (read.length === 0) read = decodeFromWorker((await router.receive()).slice(1))
      return read.shift() as (typeof read)[number]
    },
    lease: (number: number, changes?: Partial<Lease>) =>
      router.send([routingId, ...encodeWork([{ message: lease(number, changes) }])]),
    /** In one message. */
    leases: (count: number, changes?: Partial<Lease>) =>
      router.send([
        routingId,
        ...encodeWork(Array.from({ length: count }, (_, number) => ({ message: lease(number, changes) }))),
      ]),
    say: (text: string) => router.send([routingId, text]),
  }
}

const noDeltas = { make: () => ({}), confirm() {} }

const current: Pulled = { result: { kind: 'current', status: 304, store: true } }

const lease = (number: number, changes?: Partial<Lease>): Lease => ({
  type: 'lease',
  lease: number,
  key: `conversation:${number}`,
  url: `http://127.0.0.1:1/${number}`,
  headers: {},
  timeoutMs: 1_000,
  bytesMax: 1_000,
  delta: true,
  ...changes,
})

test('a worker says first who it is and how much it takes', async () => {
  const { first } = await setup({ credit: 7 })
  expect(first).toEqual({ message: { type: 'credit', worker: 3, credit: 7, cpuMs: 20, residentBytes: 5_000 } })
})

test('it says so again with each beat', async () => {
  const { first, next } = await setup({ beatMs: 5 })
  expect(await next()).toEqual(first)
  expect(await next()).toEqual(first)
})

test('each lease ends in one result, values with their bytes', async () => {
  const body = Buffer.from(JSON.stringify('x'.repeat(130_000)))
  const value: Pulled = {
    result: {
      kind: 'value',
      version: 'v',
      contentType: 'application/json',
      format: 'json',
      status: 200,
      store: true,
      maxAgeMs: 5,
    },
    body,
  }
  const pulled: string[] = []
  const { lease, next } = await setup({
    pull: async ({ url }) => {
      pulled.push(url)
      return url.endsWith('1') ? value : current
    },
  })

  await lease(1)
  const first = await next()
  await lease(2)
  const second = await next()

  expect(first).toEqual({ message: { type: 'result', lease: 1, ...value.result }, body })
  expect(second).toEqual({ message: { type: 'result', lease: 2, ...current.result }, body: undefined })
  expect(pulled).toEqual(['http://127.0.0.1:1/1', 'http://127.0.0.1:1/2'])
})

test('as many leases as go in one message are taken, however long the headers of their namespace are', async () => {
  const { leases, next } = await setup({ credit: MESSAGES_MAX })
  await leases(MESSAGES_MAX, { headers: { authorization: 'x'.repeat(200_000) } })
  for (let count = 0; count < MESSAGES_MAX; count++) expect((await next()).message).toMatchObject(current.result)
})

test('an empty body is a body', async () => {
  const { lease, next } = await setup({
    pull: async () => ({
      result: { kind: 'value', version: 'v', contentType: 'text/plain', format: 'text', status: 200, store: true },
      body: Buffer.alloc(0),
    }),
  })
  await lease(1)
  expect((await next()).body).toEqual(Buffer.alloc(0))
})

test('a body that the backend confirms is held on to, for the next delta', async () => {
  const confirmed: unknown[][] = []
  const { lease, next } = await setup({
    pull: async () => current,
    deltas: { ...noDeltas, confirm: (...args) => confirmed.push(args) },
  })
  await lease(1, { version: 'v1' })
  await next()
  expect(confirmed).toEqual([[expect.objectContaining({ version: 'v1' }), current.result]])
})

test('a value that differs little from the version its lease names comes with the delta, or with why not', async () => {
  const content = { contentType: 'text/plain', format: 'text', status: 200, store: true } as const
  const delta = Buffer.from('the delta')
  const asked: unknown[][] = []
  const { lease, next } = await setup({
    pull: async ({ lease }) => ({
      result: { kind: 'value', version: `v${lease}`, ...content },
      body: Buffer.from('x'),
    }),
    deltas: {
      ...noDeltas,
      make: (...args) => {
        asked.push(args)
        return args[1].version === 'v2' ? { delta } : { skipped: 'gain' }
      },
    },
  })
  await lease(2, { version: 'v1' })
  expect(await next()).toMatchObject({ message: { version: 'v2', deltaFrom: 'v1' }, delta })
  await lease(3, { version: 'v2' })
  const { message, delta: none } = await next()
  expect(message).toMatchObject({ version: 'v3', deltaSkipped: 'gain' })
  expect(none).toBeUndefined()
  expect(asked).toEqual([
    [
      expect.objectContaining({ key: 'conversation:2', version: 'v1', delta: true }),
      expect.objectContaining({ version: 'v2', store: true }),
      Buffer.from('x'),
    ],
    [
      expect.objectContaining({ key: 'conversation:3', version: 'v2', delta: true }),
      expect.objectContaining({ version: 'v3', store: true }),
      Buffer.from('x'),
    ],
  ])
})

test('a slow pull holds up no other', async () => {
  let finish: (pulled: Pulled) => void = () => {}
  const { lease, next } = await setup({
    pull: ({ lease }) => (lease === 1 ? new Promise(resolve => (finish = resolve)) : Promise.resolve(current)),
  })

  await lease(1)
  await lease(2)
  expect((await next()).message).toMatchObject({ lease: 2 })
  finish(current)
  expect((await next()).message).toMatchObject({ lease: 1 })
})

test('many results at once all arrive, none twice', async () => {
  const { lease, next } = await setup({ credit: 1_000 })
  const numbers = Array.from({ length: 1_000 }, (_, index) => index)

  for (const number of numbers) await lease(number)
  const seen = []
  for (const _ of numbers) seen.push(((await next()).message as any).lease)

  expect(seen.sort((a, b) => a - b)).toEqual(numbers)
})

test.each([
  ['pull', { pull: () => Promise.reject(new TypeError('no function')) }],
  ['delta', { deltas: { ...noDeltas, confirm: () => throws() } }],
])('a %s that fails by a defect of ours costs its own lease, not the worker', async (_, broken) => {
  const { lease, next, logged } = await setup({ credit: 1, ...broken })

  for (const number of [1, 2, 3]) {
    await lease(number)
    expect((await next()).message).toMatchObject({ lease: number, kind: 'failed', code: 'invalid_content' })
  }

  expect(logged).toEqual([[{ err: expect.any(TypeError), namespace: 'conversation' }, expect.any(String)]])
})

function throws(): never {
  throw new TypeError('no function')
}

test('a lease over the credit is an error that ends the worker', async () => {
  const { lease, broken } = await setup({ credit: 1, pull: () => new Promise(() => {}) })
  await lease(1)
  await lease(2)
  expect(await broken).toMatchObject({ message: 'lease 2 is over the credit of 1' })
})

test('what is no lease is an error that ends the worker', async () => {
  const { say, broken } = await setup()
  await say('{}')
  expect(await broken).toMatchObject({ name: 'WorkError' })
})

test('a pull that ends after the worker was stopped disturbs nobody', async () => {
  let finish: (pulled: Pulled) => void = () => {}
  let started: () => void = () => {}
  const underWay = new Promise(resolve => (started = () => resolve(undefined)))
  let failed = false
  const { lease, worker, broken } = await setup({
    pull: () => {
      started()
      return new Promise(resolve => (finish = resolve))
    },
  })
  broken.then(() => (failed = true))
  await lease(1)
  await underWay

  worker.stop()
  finish(current)
  await new Promise(setImmediate)

  expect(failed).toBe(false)
})

test('a lease whose status alone is wanted is no pull', async () => {
  const { next, lease } = await setup({ pull: () => Promise.reject(new Error('pulled')) })
  await lease(1, { statusOf: 'HEAD', headers: { authorization: 'Bearer ann' } })
  expect((await next()).message).toMatchObject({ type: 'result', kind: 'status', status: 204 })
})

test('nobody is asked without the token that the backend is to be shown', async () => {
  const pulled: string[] = []
  const { lease, next } = await setup({
    pull: async ({ url }) => {
      pulled.push(url)
      return current
    },
  })
  await lease(1, { lacksToken: true })
  const { message } = await next()
  expect(message).toMatchObject({ lease: 1, kind: 'failed', code: 'backend_refused' })
  expect(pulled).toEqual([])
})
