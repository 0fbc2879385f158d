import { decodeBeat, decodeFromHub, decodeRequest, encodeAnswers, encodeMessage, WireError } from './envelope.js'

/** @param {unknown} message */
const bytes = message => encodeMessage(/** @type {any} */ (message))
const value = /** @type {const} */ ({
  type: 'value',
  key: 'a:1',
  version: 'v',
  ageMs: 3,
  maxAgeMs: 1_000,
  store: true,
  contentType: 'application/json',
  format: 'json',
})

test('requests arrive as they were sent', () => {
  const watch = { type: 'watch', link: 'L', number: 1, wants: [{ key: 'a:1', held: { version: 'v', ageMs: 5 } }] }
  expect(decodeRequest(bytes(watch))).toEqual(watch)
  const unwatch = { type: 'unwatch', link: 'L', number: 2, keys: ['a:1'] }
  expect(decodeRequest(bytes(unwatch))).toEqual(unwatch)
})

test('answers arrive with each body beside its head, and bodies are not copied on the way out', () => {
  const body = Buffer.from('{"big":true}')
  const current = /** @type {const} */ ({
    type: 'current',
    key: 'a:2',
    version: 'w',
    ageMs: 0,
    maxAgeMs: 0,
    store: false,
  })
  const failed = /** @type {const} */ ({ type: 'failed', key: 'a:3', code: 'not_found', message: 'gone', ageMs: 1 })
  const parts = encodeAnswers({ link: 'L', number: 4, reached: 2 }, [{ ...value, body }, current, failed])

  expect(parts[1]).toBe(body)
  expect(decodeFromHub(parts)).toEqual({
    type: 'answers',
    link: 'L',
    number: 4,
    reached: 2,
    answers: [{ ...value, body }, current, failed],
  })
})

test('a delta arrives beside the body it makes, the next body beside its own head', () => {
  const first = { ...value, body: Buffer.from('[1,2]'), delta: { from: 'u', bytes: Buffer.from('delta') } }
  const second = { ...value, key: 'a:2', body: Buffer.from('[]') }
  const parts = encodeAnswers({ link: 'L', number: 1, reached: 1 }, [first, second])
  expect(parts).toHaveLength(4)
  expect(decodeFromHub(parts)).toMatchObject({ answers: [first, second] })
})

test.each([
  ['not JSON', Buffer.from('{')],
  ['null', Buffer.from('null')],
  ['no link', bytes({ type: 'unwatch', number: 1, keys: [] })],
  ['a link that is no name', bytes({ type: 'unwatch', link: 'x'.repeat(65), number: 1, keys: [] })],
  ['no number', bytes({ type: 'unwatch', link: 'L', keys: [] })],
  ['a number below zero', bytes({ type: 'unwatch', link: 'L', number: -1, keys: [] })],
  ['an unknown type', bytes({ type: 'steal', link: 'L', number: 1, keys: [] })],
  ['no keys', bytes({ type: 'unwatch', link: 'L', number: 1 })],
  ['a key that is no string', bytes({ type: 'unwatch', link: 'L', number: 1, keys: [1] })],
  ['a want that is null', bytes({ type: 'watch', link: 'L', number: 1, wants: [null] })],
  [
    'an age that is none',
    bytes({ type: 'watch', link: 'L', number: 1, wants: [{ key: 'a:1', held: { version: 'v', ageMs: -1 } }] }),
  ],
])('a request with %s is refused', (_, part) => {
  expect(() => decodeRequest(part)).toThrow(WireError)
})

test('beats are checked like everything else', () => {
  expect(decodeBeat(bytes({ type: 'beat', link: 'L', number: 1, taken: 2 }))).toEqual({
    type: 'beat',
    link: 'L',
    number: 1,
    taken: 2,
  })
  expect(decodeBeat(bytes({ type: 'bye', link: 'L' }))).toEqual({ type: 'bye', link: 'L' })
  expect(() => decodeBeat(bytes({ type: 'beat', link: 'L', number: 1 }))).toThrow(WireError)
  expect(() => decodeBeat(bytes({ type: 'resync', link: 'L', taken: 1 }))).toThrow(WireError)
})

test.each([
  ['a body missing', [{ ...value }], []],
  ['a body too many', [], [Buffer.from('x')]],
  ['a delta missing', [{ ...value, deltaFrom: 'u' }], [Buffer.from('x')]],
  ['a delta too many', [{ ...value }], [Buffer.from('x'), Buffer.from('y')]],
  ['a delta from nowhere', [{ ...value, deltaFrom: 1 }], [Buffer.from('x'), Buffer.from('y')]],
  ['a version missing', [{ ...value, version: undefined }], [Buffer.from('x')]],
  ['a format unknown', [{ ...value, format: 'xml' }], [Buffer.from('x')]],
  ['a code unknown', [{ type: 'failed', key: 'a:1', code: 'oops', ageMs: 1 }], []],
  ['a code from the prototype', [{ type: 'failed', key: 'a:1', code: 'toString', ageMs: 1 }], []],
])('answers with %s are refused', (_, answers, bodies) => {
  expect(() =>
    decodeFromHub([bytes({ type: 'answers', link: 'L', number: 1, reached: 1, answers }), ...bodies]),
  ).toThrow(WireError)
})
