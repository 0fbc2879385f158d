import { setImmediate } from 'node:timers/promises'
import { realWorld } from '@keycast/service'
import {
  batchPerTurn,
  type Credit,
  decodeFromWorker,
  decodeLeases,
  encodeWork,
  type Lease,
  type Loaded,
  MESSAGES_MAX,
  type ResultMessage,
  WorkError,
} from './worker-messages.ts'

const part = (...messages: unknown[]) => Buffer.from(JSON.stringify(messages))

const value: ResultMessage = {
  type: 'result',
  lease: 7,
  kind: 'value',
  version: 'v',
  contentType: 'application/json',
  format: 'json',
  status: 200,
  store: true,
}
const current = {
  type: 'result',
  lease: 8,
  kind: 'current',
  status: 304,
  store: true,
} as const

const lease: Lease = {
  type: 'lease',
  lease: 7,
  key: 'conversation:1',
  url: 'http://127.0.0.1:3000/conversations/1',
  headers: { authorization: 'Bearer x' },
  timeoutMs: 2_000,
  bytesMax: 4_194_304,
  delta: true,
  etag: 'W/"a"',
}

test('leases arrive as they were sent', () => {
  const leases = [lease, { ...lease, lease: 8 }]
  expect(decodeLeases(encodeWork(leases.map(message => ({ message }))))).toEqual(leases.map(message => ({ message })))
})

test('the bodies of questions follow their leases', () => {
  const asking = { ...lease, lease: 8, statusOf: 'POST', hasBody: true } as const
  const leases = [
    { message: asking, body: Buffer.from('1') },
    { message: lease, body: undefined },
    { message: { ...asking, lease: 9 }, body: Buffer.from('') },
  ]
  expect(decodeLeases(encodeWork(leases))).toEqual(leases)
  const answer = { type: 'result', lease: 8, kind: 'status', status: 200, hasBody: true } as const
  const answered = [{ message: answer, body: Buffer.from('{}'), delta: undefined }]
  expect(decodeFromWorker(encodeWork(answered))).toEqual(answered)
})

test('values travel with their bodies untouched and a delta behind its body, other messages alone', () => {
  const sent: Loaded<Credit | ResultMessage>[] = [
    { message: value, body: Buffer.from('{}') },
    { message: current },
    { message: { ...value, deltaFrom: 'u' }, body: Buffer.from('[]'), delta: Buffer.from('delta') },
    { message: { type: 'credit', worker: 1, credit: 256, cpuMs: 1.5, residentBytes: 1_000 } },
  ]
  const parts = encodeWork(sent)
  expect(parts[1]).toBe(sent[0].body)
  expect(decodeFromWorker(parts)).toEqual(sent)
})

test.each([
  ['no JSON', [Buffer.from('{')]],
  ['null', [Buffer.from('null')]],
  ['no list', [Buffer.from('{}')]],
  ['a list of something else', [part(null)]],
  ['another type', [part({ type: 'lease' })]],
  ['an unknown result', [part({ type: 'result', lease: 1, kind: 'maybe' })]],
  ['an unknown code', [part({ type: 'result', lease: 1, kind: 'failed', code: 'bad_mood' })]],
  ['a code that is no text', [part({ type: 'result', lease: 1, kind: 'failed', code: { toString: 1 } })]],
  ['credit of a worker that does not say what it uses', [part({ type: 'credit', worker: 1, credit: 1 })]],
  ['a value without its body', [part(value)]],
  ['a delta from nowhere', [part(value), Buffer.from('x'), Buffer.from('y')]],
  ['a delta announced that is not there', [part({ ...value, deltaFrom: 'v' }), Buffer.from('x')]],
  ['the second of two values without its body', [part(value, value), Buffer.from('x')]],
  ['a body without a value', [part(current), Buffer.from('x')]],
])('%s is refused by the primary', (_, parts) => {
  expect(() => decodeFromWorker(parts)).toThrow(WorkError)
})

test.each([
  ['no JSON', [Buffer.from('{')]],
  ['a result', [part({ type: 'result', lease: 1 })]],
  ['a lease without a URL', [part({ type: 'lease', lease: 1 })]],
])('%s is refused by a worker', (_, parts) => {
  expect(() => decodeLeases(parts)).toThrow(WorkError)
})

test('what is added within a turn goes out together, and in order; what comes later, later', async () => {
  const sent: number[][] = []
  const batch = batchPerTurn(realWorld.turn, (items: number[]) => sent.push(items))
  batch.add(1, undefined)
  await Promise.resolve()
  batch.add(2, undefined)
  expect(sent).toEqual([])
  await setImmediate()
  expect(sent).toEqual([[1, 2]])
  batch.add(3, undefined)
  await setImmediate()
  expect(sent).toEqual([[1, 2], [3]])
})

test('more than one message may hold goes out as several', async () => {
  const sent: number[][] = []
  const batch = batchPerTurn(realWorld.turn, (items: number[]) => sent.push(items))
  const items = Array.from({ length: 2 * MESSAGES_MAX + 1 }, (_, index) => index)
  for (const item of items) batch.add(item, undefined)
  await setImmediate()
  expect(sent.map(({ length }) => length)).toEqual([MESSAGES_MAX, MESSAGES_MAX, 1])
  expect(sent.flat()).toEqual(items)
})

test('items for several receivers are gathered for each, and each message is as full as it may be', async () => {
  const sent: [string, number][] = []
  const batch = batchPerTurn(realWorld.turn, (items: number[], to: string) => sent.push([to, items.length]))
  for (let item = 0; item < 4 * MESSAGES_MAX; item++) batch.add(item, `worker ${item % 4}`)
  await setImmediate()
  expect(sent).toEqual([0, 1, 2, 3].map(worker => [`worker ${worker}`, MESSAGES_MAX]))
})
