// A backend is told of the messages of its rooms, and who is there: whatever happens to it, or to journals, it hears of
// each message, in order.
import { atEnd } from './support/cleanup.ts'
import { eventually } from './support/deadline.ts'
import { ask } from './support/http.ts'
import { API_TOKEN, joinRooms, startRooms } from './support/rooms.ts'
import { startToldBackend } from './support/told-backend.ts'
import { startValkey } from './support/valkey.ts'

const valkey = await startValkey()
atEnd(() => valkey.remove())

/** Longer than the journal that tells has, before another one may; and than a backend that failed is left alone. */
const LONG = { deadlineMs: 60_000 }

describe.each([
  ['lmdb', { journals: 1 }],
  ['valkey', { journals: 2, journalEnv: { JOURNAL_LOG: 'valkey', VALKEY_URL: valkey.url } }],
])('with the log in %s', (kind, options) => {
  async function start() {
    const backend = await startToldBackend()
    const notify = { ...backend.notify, members: true }
    const system = await startRooms({
      namespaces: { room: { members: 'named', history: { messages: 5 }, notify } },
      access: { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } },
      ...options,
    })
    return { backend, ...system }
  }

  let system: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    system = await start()
  })

  function setup() {
    const { gateways, backend } = system
    const [gateway] = gateways
    const say = (key: string, data: string) =>
      eventually(
        async () =>
          (
            await gateway.call('/v1/publish', {
              key,
              data,
              messageId: `${key}-${data}-`.replaceAll(/[^\w-]/g, '-').padEnd(16, '-'),
            })
          ).status === 200,
        `${data} being kept`,
      )
    const dataOf = (key: string) => backend.told(key).map(({ data }) => data)
    return { ...system, gateway, say, dataOf }
  }

  test('it hears of all that was published while it was down, though a journal was killed meanwhile', async () => {
    const { backend, journals, say, dataOf } = setup()
    const all = Array.from({ length: 30 }, (_, n) => `message ${n}`)
    await say('room:1', 'before')
    await eventually(() => dataOf('room:1').length === 1, 'the backend being told')
    await backend.stop()
    for (const text of all.slice(0, 15)) await say('room:1', text)
    const [journal] = journals
    journal.process().signal('SIGKILL')
    await journal.process().exited
    if (kind === 'lmdb') await journal.restart()
    for (const text of all.slice(15)) await say('room:1', text)
    await backend.start()
    await eventually(() => dataOf('room:1').length >= 31, 'the backend being told', LONG)
    expect(dataOf('room:1')).toEqual(['before', ...all])
    expect([backend.problems(), backend.gaps, backend.unsigned()]).toEqual([[], [], 0])
    if (kind === 'valkey') await journal.restart()
  })

  test('what it refuses is set aside, and what it cannot take now comes later', async () => {
    const { backend, journals, say, dataOf } = setup()
    let failures = 0
    backend.answer(({ key, messages = [] }) => {
      if (key !== 'room:2') return {}
      if (failures++ === 0) return { status: 500 }
      if (failures === 2) return 'nothing'
      if (failures === 3) return { status: 429, headers: { 'retry-after': '1' } }
      return messages.some(({ data }: any) => data === 'poison') ? { status: 422 } : {}
    })
    for (const text of ['a', 'poison', 'b', 'c']) await say('room:2', text)
    await eventually(() => dataOf('room:2').length === 3, 'the others being told', LONG)
    expect(dataOf('room:2')).toEqual(['a', 'b', 'c'])
    expect(failures).toBeGreaterThan(3)
    const setAside = async () => {
      const pages = await Promise.all(journals.map(({ internal }) => internal('/metrics')))
      const counts = pages.map(
        ({ body }) => /notify_messages_total\{outcome="set_aside"\} (\d+)/.exec(String(body))?.[1],
      )
      return counts.reduce((sum, count) => sum + Number(count), 0)
    }
    expect(await setAside()).toBe(1)
  })

  test('a message that was deleted before it was told is not told, but that it was deleted', async () => {
    const { backend, gateway, say } = setup()
    backend.answer(() => ({ status: 503 }))
    for (const text of ['secret', 'open']) await say('room:3', text)
    const path = `${gateway.internal}/v1/rooms/room:3/messages/1`
    const deleted = await ask(path, { method: 'DELETE', headers: { authorization: `Bearer ${API_TOKEN}` } })
    expect(deleted.json()).toEqual({ messagesDeleted: 1 })
    backend.answer(() => ({}))
    await eventually(() => backend.told('room:3').length === 2, 'the backend being told', LONG)
    expect(backend.told('room:3')).toMatchObject([
      { seq: 2, data: 'open' },
      { seq: 3, deletes: [[1, 1]] },
    ])
  })

  test('it is told who is in a room, and that nobody is any more', async () => {
    const { backend, gateway } = setup()
    const client = await joinRooms(gateway.url)
    await client.request({ type: 'join', key: 'room:4', name: 'Ann' })
    await eventually(() => backend.members.get('room:4')?.count === 1, 'the backend being told', LONG)
    expect(backend.members.get('room:4').members).toMatchObject([{ name: 'Ann', tabs: 1 }])
    await client.request({ type: 'leave', key: 'room:4' })
    await eventually(() => backend.members.get('room:4').count === 0, 'the backend being told', LONG)
    expect(backend.members.get('room:4').members).toEqual([])
  })
})
