import { comment, eventsOf } from './events.ts'
import { textFrame, textFrameStart } from './frames.ts'

const none = () => undefined

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
  expect(eventsOf(pieces, none).toString()).toBe(
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
  expect(eventsOf([frame], none).toString()).toBe('data: {"data":{    "a": [ 1 ]} }\n\n')
  expect(frame.equals(before)).toBe(true)
})

test('an event that moves a position carries the id with it, so that neither comes without the other', () => {
  const seen: string[] = []
  const idAfter = (text: string) => {
    seen.push(text)
    return text.includes('moves') ? 'hash~E.1' : undefined
  }
  const events = eventsOf(['{"moves":1}', textFrame('{"stays":1}').frame], idAfter)
  expect(events.toString()).toBe('id: hash~E.1\ndata: {"moves":1}\n\ndata: {"stays":1}\n\n')
  expect(seen).toEqual(['{"moves":1}', '{"stays":1}'])
})

test('what is no text is no event', () => {
  expect(() => eventsOf([Buffer.from([0x82, 0])], none)).toThrow(TypeError)
})
