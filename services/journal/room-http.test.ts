import Fastify from 'fastify'
import { addRoomCalls } from './room-http.ts'

async function ask(describe: (key: string) => Promise<any>, path = '/v1/rooms/room:a/b') {
  const app = Fastify()
  addRoomCalls(app, { describe })
  const { statusCode, body } = await app.inject(path)
  return [statusCode, JSON.parse(body)]
}

test('a room is described, also one whose id has slashes', async () => {
  expect(await ask(async key => ({ key, seq: 3 }))).toEqual([200, { key: 'room:a/b', seq: 3 }])
})

test('a key that is no room here is not found', async () => {
  const expected = { code: 'unknown_room', message: 'no such namespace' }
  expect(await ask(async () => ({ problem: 'no such namespace' }))).toEqual([404, expected])
})

test('while the log is out of reach the answer is 503, with the reason', async () => {
  const expected = { code: 'journal_unavailable', message: 'the log cannot be read: Valkey is away' }
  expect(await ask(() => Promise.reject(new Error('Valkey is away')))).toEqual([503, expected])
})
