import { decodeFromWorker, decodeLease, encodeWork, WorkError } from './work.js'

/** @param {unknown} message */
const part = message => Buffer.from(JSON.stringify(message))

test('a lease arrives as it was sent', () => {
  /** @type {import('./work.js').Lease} */
  const lease = {
    type: 'lease',
    lease: 7,
    key: 'conversation:1',
    url: 'http://127.0.0.1:3000/conversations/1',
    headers: { authorization: 'Bearer x' },
    timeoutMs: 2_000,
    bytesMax: 4_194_304,
    etag: 'W/"a"',
  }
  expect(decodeLease(encodeWork(lease))).toEqual(lease)
})

test('a value travels with its body untouched, other messages alone', () => {
  /** @type {import('./work.js').Result} */
  const value = {
    type: 'result',
    lease: 7,
    outcome: 'value',
    version: 'v',
    contentType: 'application/json',
    format: 'json',
    status: 200,
    store: true,
    durationMs: 3,
  }
  const body = Buffer.from('{}')
  const parts = encodeWork(value, body)
  expect(parts[1]).toBe(body)
  expect(decodeFromWorker(parts)).toEqual({ message: value, body })

  /** @type {import('./work.js').Credit} */
  const credit = { type: 'credit', worker: 1, credit: 256 }
  expect(decodeFromWorker(encodeWork(credit))).toEqual({ message: credit, body: undefined })
})

test('a delta travels behind the body it makes', () => {
  /** @type {import('./work.js').Result} */
  const value = {
    type: 'result',
    lease: 7,
    outcome: 'value',
    version: 'w',
    contentType: 'application/json',
    format: 'json',
    status: 200,
    store: true,
    deltaFrom: 'v',
    durationMs: 3,
  }
  const body = Buffer.from('{}')
  const delta = Buffer.from('delta')
  expect(decodeFromWorker(encodeWork(value, body, delta))).toEqual({ message: value, body, delta })
})

const value = { type: 'result', lease: 1, outcome: 'value' }

test.each([
  ['no JSON', [Buffer.from('{')]],
  ['null', [Buffer.from('null')]],
  ['another type', [part({ type: 'lease' })]],
  ['an unknown outcome', [part({ type: 'result', lease: 1, outcome: 'maybe' })]],
  ['an unknown code', [part({ type: 'result', lease: 1, outcome: 'failed', code: 'bad_mood' })]],
  ['a value without its body', [part({ type: 'result', lease: 1, outcome: 'value' })]],
  ['a delta from nowhere', [part(value), Buffer.from('x'), Buffer.from('y')]],
  ['a delta announced that is not there', [part({ ...value, deltaFrom: 'v' }), Buffer.from('x')]],
  ['a body without a value', [part({ type: 'result', lease: 1, outcome: 'current' }), Buffer.from('x')]],
])('%s is refused by the primary', (_, parts) => {
  expect(() => decodeFromWorker(parts)).toThrow(WorkError)
})

test.each([
  ['no JSON', [Buffer.from('{')]],
  ['a result', [part({ type: 'result', lease: 1 })]],
  ['a lease without a URL', [part({ type: 'lease', lease: 1 })]],
])('%s is refused by a worker', (_, parts) => {
  expect(() => decodeLease(parts)).toThrow(WorkError)
})
