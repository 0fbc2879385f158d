// Subscriptions to keys whose backend decides who reads them, and that end for another reason.
import type { RoomsEvents } from '@keycast/backbone'
import { createMemoryRooms } from '@keycast/backbone/memory'
import { authorizeKept, createTestGateway } from '../test-support.ts'

const KEEP_MS = 10_000
const authorize = authorizeKept(KEEP_MS)

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function setUp() {
  const memory = createMemoryRooms()
  let events: RoomsEvents | undefined
  const started = createTestGateway({
    namespaces: { doc: { authorize } },
    rooms: { room: { authorize } },
    journal: {
      ...memory,
      backbone(given) {
        events = given
        return memory.backbone(given)
      },
    },
  })
  await started.gateway.start()
  stops.push(started.gateway.stop)
  const { backbone, pass, turn } = started

  async function admitAll() {
    const questions = backbone.questions.splice(0)
    for (const { resolve } of questions) resolve({ verdict: 'admitted', ageMs: 0, message: '' })
    await turn()
    return questions.length
  }

  return {
    ...started,
    admitAll,
    /** The journal cannot have the room. */
    failRoom: (key: string) => events?.onFailed(key, { code: 'unknown_namespace', message: 'no such namespace' }),
    /** How often the backend is asked in so many of its decisions' times. */
    async askedOver(keeps: number) {
      let asked = 0
      for (let ms = 0; ms < keeps * KEEP_MS; ms += 1_000) {
        await pass(1_000)
        asked += await admitAll()
      }
      return asked
    },
  }
}

test.each([
  ['a value', 'doc:1', 'capacity'],
  ['a room', 'room:1', 'unknown_namespace'],
])('the backend is not asked any more for a subscription to %s that ended without its word', async (_, key, code) => {
  const { backbone, connect, admitAll, failRoom, askedOver } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  await admitAll()
  await client.received()
  expect(await askedOver(3)).toBeGreaterThan(0)
  await client.received()

  if (key === 'room:1') failRoom(key)
  else backbone.failed(key, 'capacity', { retryAfterMs: undefined })

  expect(await client.received()).toMatchObject([{ type: 'error', key, code, subscribed: false }])
  expect(await askedOver(3)).toBe(0)
  const { session } = client.connection
  expect(session?.viewer?.decisions.get(key)?.sessions.size).toBe(0)
  client.connection.terminate()
})

test('one that ended so may be subscribed again, and is asked for again while it stands', async () => {
  const { backbone, connect, admitAll, askedOver } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: ['doc:1'] })
  await admitAll()
  backbone.failed('doc:1', 'capacity', { retryAfterMs: undefined })
  await client.received()

  expect(await client.ask({ type: 'subscribe', id: 2, keys: ['doc:1'] })).toMatchObject([{ type: 'subscribed', id: 2 }])
  expect(await askedOver(3)).toBeGreaterThan(0)
  client.connection.terminate()
  expect(await askedOver(3)).toBe(0)
})
