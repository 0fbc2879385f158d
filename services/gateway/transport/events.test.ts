import { comment, copiedBytes, eventsOf } from './events.ts'
import { textFrame, textFrameStart } from './frames.ts'

const none = () => undefined

const partsOf = (...of: Parameters<typeof eventsOf>) => [...eventsOf(...of)].flat()
const written = (...of: Parameters<typeof eventsOf>) => Buffer.concat(partsOf(...of)).toString()

test('texts, frames, and frames in parts become one event each, in order', () => {
  const body = Buffer.from('"b"}')
  const long = JSON.stringify({ long: 'x'.repeat(70_000) })
  const pieces = [
    '{"a":"ä"}',
    textFrame('{"b":1}').frame,
    Buffer.concat([textFrame('{"c":1}').frame, textFrame(JSON.stringify({ d: 'y'.repeat(200) })).frame]),
    textFrameStart('{"id":1,"e":', body.length),
    body,
    comment,
    textFrame(long).frame,
  ]
  expect(written(pieces, none)).toBe(
    [
      'data: {"a":"ä"}',
      'data: {"b":1}',
      'data: {"c":1}',
      `data: ${JSON.stringify({ d: 'y'.repeat(200) })}`,
      'data: {"id":1,"e":"b"}',
      ':',
      `data: ${long}`,
      '',
    ].join('\n\n'),
  )
})

test('JSON that was written on several lines stays one line, and the shared frame stays as it is', () => {
  const { frame } = textFrame('{"data":{\r\n  "a": [\n1\n]}\n}')
  const before = Buffer.from(frame)
  expect(written([frame], none)).toBe('data: {"data":{    "a": [ 1 ]} }\n\n')
  expect(frame.equals(before)).toBe(true)
})

test.each([
  ['of a large frame', false, '{"data":'],
  ['of one with line ends', true, '{"data":{\n'],
])('streams hold the memory %s together', (_, isBlanked, head) => {
  const body = Buffer.from(`"${'x'.repeat(70_000)}"${isBlanked ? '\n' : ''}`)
  const { frame } = textFrame(head, body, '}')
  const rest = textFrame('', Buffer.from(`${body}}`)).frame.subarray(10)
  const start = textFrameStart(head, rest.length)
  const large = (pieces: Buffer[]) => partsOf(pieces, none).filter(part => part.length > 10_000)
  const [one, other] = [large([frame]), large([frame])]
  expect([one.length, other.length]).toEqual([1, 1])
  expect(one[0].buffer === other[0].buffer).toBe(true)
  expect(one[0].buffer === frame.buffer).toBe(!isBlanked)
  const [first, second] = [large([start, rest])[0], large([start, rest])[0]]
  expect(first.buffer === second.buffer).toBe(true)
  expect(written([start, rest, frame], none)).toBe(`data: ${`${head}${body}}`.replaceAll('\n', ' ')}\n\n`.repeat(2))
  expect([frame, start, rest].map(copiedBytes)).toEqual([0, start.length, 0])
  const many = Buffer.concat([frame, frame])
  expect([many, '{"ä":1}'].map(copiedBytes)).toEqual([many.length, 8])
})

test('an event that moves a position carries the id with it, so that neither comes without the other', () => {
  const seen: string[] = []
  const idAfter = (text: string) => {
    seen.push(text)
    return text.includes('moves') ? 'hash~E.1' : undefined
  }
  const events = written(['{"moves":1}', textFrame('{"stays":1}').frame], idAfter)
  expect(events).toBe('id: hash~E.1\ndata: {"moves":1}\n\ndata: {"stays":1}\n\n')
  expect(seen).toEqual(['{"moves":1}', '{"stays":1}'])
})

test('what is no text is no event', () => {
  expect(() => written([Buffer.from([0x82, 0])], none)).toThrow(TypeError)
})

test('of a text all of it tells where its reader stands, of a frame the start', () => {
  const long = JSON.stringify({
    type: 'subscribed',
    keys: Array.from({ length: 100 }, (_, id) => ({ key: `tick:${id}` })),
  })
  const seen: string[] = []
  written([long, textFrame(long).frame], text => void seen.push(text))
  expect(seen).toEqual([long, long.slice(0, 512)])
})
