import { dialects } from './index.js'
import { numberAfter } from './number-after.js'
import { createMessageReader } from './read-in-place.js'

test('a number is read after its name, as far as it has digits', () => {
  expect(numberAfter('{"key":"room:1","seq":1234,"us":5}', '"seq":')).toBe(1_234)
  expect(numberAfter('{"us":0}', '"us":')).toBe(0)
  expect(numberAfter('{"us":"none"}', '"seq":')).toBeNaN()
})

test.each([
  [
    'keycast',
    {
      hello: ['{"type":"welcome","session":"s"}'],
      message: '{"type":"message","key":"room:1","seq":7,"at":1,"data":{"us":99}}',
      published: '{"type":"published","id":12,"key":"room:1","epoch":"e","seq":7,"at":1}',
      entered: '{"type":"subscribed","id":0,"keys":[{"key":"room:1","epoch":"e","seq":0}]}',
    },
  ],
  [
    'socket.io',
    {
      hello: ['0{"sid":"a"}', '40{"sid":"b"}'],
      message: '42["message",{"key":"room:1","seq":7,"at":1,"messageId":"m","data":{"us":99}}]',
      published: '4312[{"seq":7}]',
      entered: '430[]',
    },
  ],
])('%s: a client gets ready, and tells answers apart', (name, { hello, message, published, entered }) => {
  const dialect = dialects[name]
  expect(dialect.onHello(hello.at(-1) ?? '')).toBe('ready')
  for (const head of hello.slice(0, -1)) expect(dialect.onHello(head)).toMatchObject({ reply: expect.any(String) })
  expect(dialect.onHello('nonsense')).toBeUndefined()
  expect([message, published, entered, 'nonsense'].map(dialect.kindOf)).toEqual([
    'message',
    'published',
    'entered',
    'unexpected',
  ])
  expect(dialect.idOf(published)).toBe(12)
  expect([numberAfter(message, '"seq":'), numberAfter(message, '"us":')]).toEqual([7, 99])
  const read = createMessageReader(dialect)
  const inPlace = (/** @type {string} */ text) => read(Buffer.from(`--${text}--`), 2, text.length + 2)
  expect(inPlace(message)).toEqual({ seq: 7, us: 99 })
  for (const other of [published, entered, '', message.slice(0, -8), message.replace('"seq":', '"seq"=')]) {
    expect(inPlace(other)).toBeUndefined()
  }
  expect(dialect.publish(12, 'room:1', 'm-12', 99)).toContain('"us":99')
})
