import { errorCodes } from './codes.js'
import { ProtocolError } from './fields.ts'
import {
  deltaLine,
  encode,
  errorMessage,
  readClientMessage,
  readRequestId,
  VALUE_TAIL,
  valueHead,
  valueLine,
} from './messages.ts'

const read = (message: unknown) => readClientMessage(JSON.stringify(message))

const problemOf = (text: string) => {
  try {
    readClientMessage(text)
  } catch (error) {
    if (error instanceof ProtocolError) return { code: error.code, id: error.id, message: error.message }
    throw error
  }
  throw new Error('the message was accepted')
}

test('each request is read with its id', () => {
  expect(read({ type: 'get', id: 1, key: 'a:1', version: 'v' })).toEqual({
    type: 'get',
    id: 1,
    key: 'a:1',
    version: 'v',
  })
  expect(read({ type: 'unsubscribe', id: 'x', keys: ['a:1'] })).toEqual({ type: 'unsubscribe', id: 'x', keys: ['a:1'] })
  expect(read({ type: 'ping' })).toEqual({ type: 'ping', id: undefined })
})

test('a subscribe names keys with or without the version held', () => {
  expect(read({ type: 'subscribe', keys: ['a:1', { key: 'a:2', version: 'v' }] })).toEqual({
    type: 'subscribe',
    id: undefined,
    keys: [
      { key: 'a:1', version: undefined },
      { key: 'a:2', version: 'v' },
    ],
  })
})

test('fields nobody asked for are ignored, so that clients may be newer than the gateway', () => {
  expect(read({ type: 'ping', id: 1, mood: 'fine' })).toEqual({ type: 'ping', id: 1 })
})

test.each([
  ['not JSON', '{', 'bad_message', 'JSON object'],
  ['a list', '[]', 'bad_message', 'JSON object'],
  ['null', 'null', 'bad_message', 'JSON object'],
  ['no type', '{}', 'bad_message', '"type" is missing'],
  ['an unknown type', '{"type":"steal"}', 'unknown_type', '"steal"'],
  ['a type of the wrong type', '{"type":7}', 'unknown_type', '7'],
  ['an id that is an object', '{"type":"ping","id":{}}', 'bad_message', '"id"'],
  ['an id that is too long', `{"type":"ping","id":"${'x'.repeat(129)}"}`, 'bad_message', '"id"'],
  ['a get without key', '{"type":"get"}', 'bad_message', 'key'],
  ['a version that is a number', '{"type":"get","key":"a:1","version":3}', 'bad_message', '"version"'],
  [
    'a version that is too long',
    `{"type":"get","key":"a:1","version":"${'x'.repeat(65)}"}`,
    'bad_message',
    '"version"',
  ],
  ['a subscribe without keys', '{"type":"subscribe"}', 'bad_message', '"keys"'],
  ['a subscribe to nothing', '{"type":"subscribe","keys":[]}', 'bad_message', '"keys"'],
  ['a key that is a number', '{"type":"subscribe","keys":[1]}', 'bad_message', 'key'],
  ['a key that is a list', '{"type":"subscribe","keys":[["a:1"]]}', 'bad_message', 'key'],
  ['an unsubscribe with versions', '{"type":"unsubscribe","keys":[{"key":"a:1"}]}', 'bad_message', 'key'],
])('%s is refused', (_, text, code, hint) => {
  const problem = problemOf(text)
  expect(problem.code).toBe(code)
  expect(problem.message).toContain(hint)
})

test('a refusal carries the id of the request, so that the client can tell which failed', () => {
  expect(problemOf('{"type":"get","id":9}').id).toBe(9)
})

test('a refusal never says back more than an excerpt', () => {
  expect(problemOf(JSON.stringify({ type: 'x'.repeat(100_000) })).message.length).toBeLessThan(100)
})

test.each([
  ['type', 'unknown_type'],
  ['id', 'bad_message'],
])('a "%s" nested 100,000 levels deep is refused like any other', (field, code) => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  expect(problemOf(`{"${field}":${deep}}`).code).toBe(code)
})

test('absent fields are left out of what is sent', () => {
  expect(encode({ type: 'ok', id: undefined })).toBe('{"type":"ok"}')
  expect(encode(errorMessage({ code: 'bad_key', message: 'why' }, { key: 'x' }))).toBe(
    '{"type":"error","key":"x","code":"bad_key","message":"why"}',
  )
})

test("an error without a text of its own has its code's", () => {
  expect(errorMessage({ code: 'rate_limited', retryAfterMs: 5 }, { id: 1 })).toEqual({
    type: 'error',
    id: 1,
    key: undefined,
    code: 'rate_limited',
    message: errorCodes.rate_limited,
    retryAfterMs: 5,
  })
})

test.each([
  ['json', '{"a":1}', { type: 'value', key: 'a:1', version: 'v', data: { a: 1 } }],
  ['text', '"hi"', { type: 'value', key: 'a:1', version: 'v', contentType: 'text/x', text: 'hi' }],
  ['base64', '"aGk="', { type: 'value', key: 'a:1', version: 'v', contentType: 'text/x', base64: 'aGk=' }],
])('head, %s body and tail make one message', (format, body, expected) => {
  const head = valueHead({ key: 'a:1', version: 'v', contentType: 'text/x', format: format as any })
  expect(JSON.parse(head + body + VALUE_TAIL)).toEqual(expected)
})

test('a get is answered with its id in the head', () => {
  const head = valueHead({ id: 3, key: 'a:1', version: 'v', contentType: 'application/json', format: 'json' })
  expect(JSON.parse(`${head}null${VALUE_TAIL}`).id).toBe(3)
})

test('before bytes stands one line, whatever the fields hold', () => {
  const value = { id: 'a\nb', key: 'a:1', version: 'v', contentType: 'text/plain' }
  expect(JSON.parse(valueLine(value))).toEqual({ type: 'value', ...value })
  expect(valueLine(value).indexOf('\n')).toBe(valueLine(value).length - 1)
  expect(deltaLine({ key: 'a:1', from: 'v', version: 'w', contentType: 'text/plain' })).toBe(
    '{"type":"delta","key":"a:1","from":"v","version":"w","contentType":"text/plain"}\n',
  )
})

test.each(['9007199254740993', '-9007199254740993', '1e999'])(
  'an id of %s, which would come back changed, is refused',
  id => {
    expect(() => readClientMessage(`{"type":"ping","id":${id}}`)).toThrow('2^53')
  },
)

test('a request that is refused is known by its id, and a long one is not parsed for it', () => {
  const long = `"keys":[${'"a:1",'.repeat(1_000)}`
  expect(readRequestId('{"type":"ping","id":1}')).toBe(1)
  expect(readRequestId('{"id":"')).toBeUndefined()
  expect(readRequestId(`{"type":"subscribe","id":7,${long}`)).toBe(7)
  expect(readRequestId(` { "id" : "a\\"b" , ${long}`)).toBe('a"b')
  expect(readRequestId(`{${long}"a:2"],"id":7}`)).toBeUndefined()
  expect(readRequestId(`{"id":9007199254740993,${long}`)).toBeUndefined()
  expect(readRequestId(`{"id":"${'x'.repeat(2_000)}",${long}`)).toBeUndefined()
})
