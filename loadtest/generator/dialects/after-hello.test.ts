import { encodeFrame } from '../frames.ts'
import { afterHello } from './after-hello.ts'
import { dialects } from './index.ts'

/** @param name of a dialect */
function connect(name: string) {
  const tallied = { unexpected: 0 }
  const inner = { onMessage: jest.fn(), onEnd: jest.fn(), onWhole: jest.fn(() => true) }
  const open = jest.fn(() => inner)
  const sent: number[] = []
  const client = { send: (frame: Buffer) => sent.push(frame.length) } as any
  const behaves = afterHello(dialects[name], { headBytesMax: 9, open }, tallied).open(client, 3, 42)
  const say = (head: string) => behaves.onMessage(head, head.length, 1, undefined)
  return { tallied, inner, open, sent, client, behaves, say }
}

test('a workload has a client once the server let it begin, and everything from then on', () => {
  const { inner, open, sent, client, behaves, say, tallied } = connect('socket.io')
  const wholeBefore = behaves.onWhole?.(Buffer.alloc(1), 0, 1)
  say('0{"sid":"a"}')
  expect(open).not.toHaveBeenCalled()
  say('40{"sid":"b"}')
  say('42["pong",{"count":1}]')

  expect(wholeBefore).toBe(false)
  expect(open.mock.calls).toEqual([[client, 3, 42]])
  expect(inner.onMessage.mock.calls).toEqual([['42["pong",{"count":1}]', 22, 1, undefined]])
  expect(behaves.onWhole?.(Buffer.alloc(1), 0, 1)).toBe(true)
  behaves.onEnd()
  expect(inner.onEnd).toHaveBeenCalledTimes(1)
  expect(sent).toEqual([encodeFrame('40').length])
  expect(tallied.unexpected).toBe(0)
})

test('where the server waits for it the client speaks first', () => {
  expect(connect('keycast').sent).toEqual([])
  expect(connect('socketcluster').sent).toHaveLength(1)
})

test('a client that ends before it could begin is none to the workload', () => {
  const { inner, behaves, say, tallied } = connect('keycast')
  say('HTTP/1.1 is what I speak')
  behaves.onEnd()

  expect(tallied.unexpected).toBe(1)
  expect(inner.onEnd).not.toHaveBeenCalled()
})
