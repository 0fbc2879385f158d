import { ProtocolError } from './fields.ts'
import { encode, readClientMessage } from './messages.ts'
import {
  createMessageHeads,
  historyBody,
  MESSAGE_TAIL,
  positionsAfter,
  readHistoryQuery,
  readPublishFields,
} from './room-messages.ts'

const key = 'room:1'

const read = (message: unknown) => readClientMessage(typeof message === 'string' ? message : JSON.stringify(message))

function problemOf(attempt: () => unknown) {
  try {
    attempt()
  } catch (error) {
    if (error instanceof ProtocolError) return { code: error.code, id: error.id, message: error.message }
    throw error
  }
  throw new Error('it was accepted')
}

test('a subscribe says where the stream of a room is to begin', () => {
  const keys = [
    'tick:1',
    { key, after: { epoch: 'E', seq: 0 } },
    { key: 'room:2', last: 500, presence: true },
    { key: 'room:3', presence: false },
  ]
  expect(read({ type: 'subscribe', keys })).toMatchObject({
    keys: [
      { key: 'tick:1', version: undefined },
      { key, after: { epoch: 'E', seq: 0 }, last: undefined, presence: false },
      { key: 'room:2', after: undefined, last: 500, presence: true },
      { key: 'room:3', presence: false },
    ],
  })
})

test.each([
  ['a position that is a number', { after: 7 }, '"after"'],
  ['a position that is null', { after: null }, '"after"'],
  ['a position without epoch', { after: { seq: 1 } }, '"after"'],
  ['an epoch that is too long', { after: { epoch: 'e'.repeat(65), seq: 1 } }, '"after"'],
  ['a negative seq', { after: { epoch: 'E', seq: -1 } }, '"after"'],
  ['last of nothing', { last: 0 }, '"last"'],
  ['too many of the last', { last: 501 }, '"last"'],
  ['both', { last: 1, after: { epoch: 'E', seq: 1 } }, 'not both'],
  ['presence that is no boolean', { presence: 1 }, '"presence"'],
])('%s is refused', (_, start, hint) => {
  const problem = problemOf(() => read({ type: 'subscribe', id: 3, keys: [{ key, ...start }] }))
  expect(problem).toMatchObject({ code: 'bad_message', id: 3, message: expect.stringContaining(hint) })
})

test('the data of a publish is its text, as it was written', () => {
  expect(read(`{"type":"publish","id":1,"key":"${key}","messageId":"0123456789abcdef","data": {"n": 1.0} }`)).toEqual({
    type: 'publish',
    id: 1,
    key,
    messageId: '0123456789abcdef',
    data: '{"n": 1.0}',
  })
  expect(read({ type: 'publish', key, data: null })).toMatchObject({ messageId: undefined, data: 'null' })
})

test.each([
  ['a messageId that is too short', { messageId: 'x'.repeat(15), data: 1 }, '"messageId"'],
  ['one that is too long', { messageId: 'x'.repeat(65), data: 1 }, '"messageId"'],
  ['one with another character', { messageId: `${'x'.repeat(16)}.`, data: 1 }, '"messageId"'],
  ['no data', {}, '"data" is missing'],
  ['data that is nested too deep', { data: JSON.parse('['.repeat(65) + ']'.repeat(65)) }, 'deeper than 64'],
])('a publish with %s is refused', (_, fields, hint) => {
  expect(problemOf(() => read({ type: 'publish', id: 1, key, ...fields })).message).toContain(hint)
})

test('data may be nested 64 levels', () => {
  const data = '['.repeat(64) + ']'.repeat(64)
  expect(read(`{"type":"publish","key":"${key}","data":${data}}`)).toMatchObject({ data })
})

test('a publish over HTTP names for whom it is', () => {
  expect(readPublishFields(`{"key":"${key}","data":[ ],"from":"ann"}`)).toMatchObject({ key, data: '[ ]', from: 'ann' })
  expect(readPublishFields(`{"key":"${key}","data":1}`).from).toBe('')
  expect(problemOf(() => readPublishFields(`{"key":"${key}","data":1,"from":1}`)).message).toContain('"from"')
  expect(problemOf(() => readPublishFields(`{"key":"${key}","data":1,"from":""}`)).message).toContain('"from"')
  expect(problemOf(() => readPublishFields(`{"key":"${key}","data":1,"from":"a\\n"}`)).message).toContain('"from"')
})

test('a part of the history is 50 messages unless said, and 500 at most', () => {
  expect(read({ type: 'history', id: 1, key })).toEqual({ type: 'history', id: 1, key, limit: 50 })
  expect(read({ type: 'history', key, epoch: 'E', after: 7, limit: 1_000 })).toMatchObject({
    epoch: 'E',
    after: 7,
    limit: 500,
  })
})

test.each([
  ['two bounds', { after: 1, before: 2 }],
  ['a bound that is no whole number', { after: 1.5 }],
  ['a bound that is text', { before: '7' }],
  ['a limit of nothing', { limit: 0 }],
  ['an epoch that is none', { epoch: '' }],
])('a history with %s is refused', (_, fields) => {
  expect(problemOf(() => read({ type: 'history', id: 1, key, ...fields }))).toMatchObject({
    code: 'bad_message',
    id: 1,
  })
})

test('over HTTP the numbers of a history are text', () => {
  expect(readHistoryQuery(key, { before: '7', limit: '5' })).toMatchObject({ before: 7, limit: 5 })
  expect(problemOf(() => readHistoryQuery(key, { after: ['1', '2'] })).code).toBe('bad_message')
})

const message = { seq: 7, at: 5, from: 'ä"', messageId: 'abc', data: Buffer.from('{"n": 1.0}') }

test('head, data and tail make one message', () => {
  const headOf = createMessageHeads(key)
  expect(JSON.parse(headOf(message) + message.data + MESSAGE_TAIL)).toEqual({
    type: 'message',
    key,
    seq: 7,
    at: 5,
    from: 'ä"',
    messageId: 'abc',
    data: { n: 1 },
  })
  expect(JSON.parse(`${headOf({ ...message, from: '', messageId: undefined })}1${MESSAGE_TAIL}`)).toEqual({
    type: 'message',
    key,
    seq: 7,
    at: 5,
    data: 1,
  })
})

test.each([0, 1, 2])('a history of %i messages is one JSON object', count => {
  const head = { type: 'history' as const, id: 1, key, epoch: 'E', oldest: 1, newest: 9, more: false }
  const body = historyBody({ ...head, truncated: false }, Array(count).fill(message))
  const {
    type,
    key: _,
    data: __,
    ...fields
  } = JSON.parse(createMessageHeads(key)(message) + message.data + MESSAGE_TAIL)
  expect(JSON.parse(String(body))).toEqual({ ...head, messages: Array(count).fill({ ...fields, data: { n: 1 } }) })
  expect(JSON.parse(String(historyBody({ ...head, truncated: true }, []))).truncated).toBe(true)
})

test('message, subscribed and gap say where they leave their reader; no other message does', () => {
  const after = (text: string) => positionsAfter(text) && [...(positionsAfter(text) as Map<string, unknown>)]
  const head = createMessageHeads('room:1')({ seq: 7, at: 1, from: 'ann', messageId: undefined })
  expect(after(`${head}"any data}`)).toEqual([['room:1', { seq: 7 }]])
  const room = { key: 'room:1', epoch: 'E', seq: 9, oldest: 1, recovered: true, count: 2 }
  const subscribed = encode({ type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }, room] })
  expect(after(subscribed)).toEqual([['room:1', { epoch: 'E', seq: 7 }]])
  const gap = encode({ type: 'gap', key: 'room:1', epoch: 'F', seq: 3, oldest: 1, reason: 'epoch' })
  expect(after(gap)).toEqual([['room:1', expect.objectContaining({ epoch: 'F', seq: 3 })]])
  expect(after('{"type":"value","key":"tick:1","version":"v","data":{"type":"gap"}}')).toBeUndefined()
})
