import { numberAfter } from './fields.ts'
import { dialects } from './index.ts'
import { createMessageReader } from './read-in-place.ts'

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
      answered: '{"type":"published","id":12,"key":"room:1","epoch":"e","seq":7,"at":1}',
      entered: '{"type":"subscribed","id":0,"keys":[{"key":"room:1","epoch":"e","seq":0}]}',
      refused: '{"type":"error","id":12,"key":"room:1","code":"name_taken"}',
      pong: '{"type":"pong","count":1}',
      value: '{"type":"value","id":12,"key":"text:1","version":"v","data":["a"]}',
    },
  ],
  [
    'bytes',
    {
      hello: ['{"type":"welcome","session":"s"}'],
      message: '{"type":"message","key":"room:1","seq":7,"at":1,"data":{"us":99}}',
      answered: '{"type":"published","id":12,"key":"room:1","epoch":"e","seq":7,"at":1}',
      entered: '{"type":"subscribed","id":0,"keys":[{"key":"room:1","epoch":"e","seq":0}]}',
      refused: '{"type":"error","id":12,"key":"room:1","code":"name_taken"}',
      pong: '{"type":"pong","count":1}',
      value: '{"type":"value","id":12,"key":"text:1","version":"v","contentType":"application/json"}\n["a"]',
    },
  ],
  [
    'socket.io',
    {
      hello: ['0{"sid":"a"}', '40{"sid":"b"}'],
      message: '42["message",{"key":"room:1","seq":7,"at":1,"messageId":"m","data":{"us":99}}]',
      answered: '4312[{"seq":7}]',
      entered: '430[]',
      refused: '4312[{"code":"name_taken"}]',
      pong: '42["pong",{"count":1}]',
      value: '4312[{"key":"text:1","data":["a"]}]',
    },
  ],
  [
    'socketcluster',
    {
      hello: ['{"rid":0,"data":{"id":"Zm9v","pingTimeout":30000,"isAuthenticated":false}}'],
      message:
        '{"event":"#publish","data":{"channel":"room:1","data":{"seq":7,"at":1,"messageId":"m","data":{"us":99}}}}',
      answered: '{"rid":12}',
      entered: '{"rid":0}',
      refused: '{"rid":12,"error":{"name":"Error","message":"somebody else has it","code":"name_taken"}}',
      pong: '{"event":"pong","data":{"count":1}}',
      value: '{"rid":12,"data":{"key":"text:1","data":["a"]}}',
    },
  ],
])('%s: a client gets ready, and tells answers apart', (name, said) => {
  const { hello, message, answered, entered, refused, pong, value } = said
  const dialect = dialects[name]
  expect(dialect.onHello(hello.at(-1) ?? '')).toBe('ready')
  for (const head of hello.slice(0, -1)) expect(dialect.onHello(head)).toMatchObject({ reply: expect.any(String) })
  expect(dialect.onHello('nonsense')).toBeUndefined()
  expect([message, answered, entered, refused, pong, 'nonsense'].map(dialect.kindOf)).toEqual([
    'message',
    'answered',
    'entered',
    'refused',
    'pong',
    'unexpected',
  ])
  expect(['value', 'answered']).toContain(dialect.kindOf(value))
  expect([answered, refused, value].map(dialect.idOf)).toEqual([12, 12, 12])
  expect(dialect.valueIn(value)).toMatchObject({ key: 'text:1', data: ['a'] })
  expect([numberAfter(message, '"seq":'), numberAfter(message, '"us":')]).toEqual([7, 99])
  const read = createMessageReader(dialect)
  const inPlace = (text: string) => read(Buffer.from(`--${text}--`), 2, text.length + 2)
  expect(inPlace(message)).toEqual({ seq: 7, us: 99 })
  for (const other of [answered, entered, '', message.slice(0, -8), message.replace('"seq":', '"seq"=')]) {
    expect(inPlace(other)).toBeUndefined()
  }
  expect(dialect.publish(12, 'room:1', 'm-12', 99)).toContain('"us":99')
})

test.each([
  ['socket.io', '2', '3'],
  ['socketcluster', '', ''],
])("%s: a server's ping %j is answered with %j", (name, ping, reply) => {
  expect(dialects[name].kindOf(ping)).toEqual({ reply })
})
