import { addressOf, pathOf } from './requests.js'

test('requests go where the WebSocket would have gone', () => {
  expect(addressOf('wss://example.com/ws', 'stream')).toBe('https://example.com/v1/stream')
  expect(addressOf('ws://127.0.0.1:8080/live/ws', 'stream/send')).toBe('http://127.0.0.1:8080/live/v1/stream/send')
})

test('a key in a path is written as docs/protocol.md says', () => {
  expect(pathOf('task:acme/4~2?status=open')).toBe('task:acme/4~2%3Fstatus%3Dopen')
  expect(pathOf("a:(it's é)!")).toBe('a:%28it%27s%20%C3%A9%29%21')
})
