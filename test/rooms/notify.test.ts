// A backend is told of the messages of its rooms, and who is there: whatever happens to it, or to journals, it hears of
// each message, in order. And it is told which values somebody views, by the node that has them.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { joinRooms } from '../support/rooms.ts'
import { startRooms, startSystem } from '../support/system.ts'
import { startToldBackend } from '../support/told-backend.ts'
import { startValkey } from '../support/valkey.ts'

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
    const deleted = await gateway.call('/v1/rooms/room:3/messages/1', undefined, 'DELETE')
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

describe('of viewers', () => {
  async function start() {
    const backend = await startToldBackend()
    const values = await startBackend()
    const notify = { ...backend.notify, viewers: true } as const
    const system = await startSystem({
      namespaces: { article: { url: `${values.origin}/{id}`, refresh: '1h', notify } },
      fetchers: 2,
      gateways: 2,
    })
    const view = async (gateway: { url: string }, keys: string[]) => {
      for (const key of keys) values.on(`/${key.slice(8)}`, answers.json(documentOf(1)))
      const viewer = await connect(gateway.url)
      await viewer.subscribe(keys)
      // When it has the values, the node knows of it.
      await Promise.all(keys.map(key => viewer.reaches(key, 1)))
      return viewer
    }
    /** As it changed: a node that takes a key over tells of it again. */
    const told = (key: string) =>
      backend.viewers
        .filter(state => state.key === key)
        .map(({ watched }) => watched)
        .filter((watched, index, all) => watched !== all[index - 1])
    return { ...system, backend, view, told }
  }

  let system: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    system = await start()
  })

  test('it is told that a key has viewers when the first comes, and that it has none when the last has left', async () => {
    const { gateways, backend, view, told } = system
    const first = await view(gateways[0], ['article:7'])
    await eventually(() => told('article:7').length > 0, 'the backend being told of the first')
    const second = await view(gateways[1], ['article:7'])
    first.close()
    // Told after the first would have been.
    const other = await view(gateways[0], ['article:8'])
    other.close()
    await eventually(() => told('article:8').length === 2, 'the backend being told of another key')
    expect(told('article:7')).toEqual([true])
    second.close()
    await eventually(() => told('article:7').length === 2, 'the backend being told of the last')
    expect([told('article:7'), told('article:8')]).toEqual([
      [true, false],
      [true, false],
    ])
    expect(backend.unsigned()).toBe(0)
  })

  test("a killed node's keys are told of again by the other, and by the first once it has them back: never as having no viewers", async () => {
    const { gateways, fetchers, startFetcher, backend, view } = system
    const keys = Array.from({ length: 20 }, (_, n) => `article:moves-${n}`)
    let viewers = await Promise.all(gateways.map(gateway => view(gateway, keys)))
    const watched = (of: string[]) => of.every(key => backend.viewers.some(each => each.key === key && each.watched))
    await eventually(() => watched(keys), 'the backend being told of all keys')
    const [gone] = fetchers
    const owned = async () => {
      const owners = await Promise.all(keys.map(async key => (await gateways[0].inspect(key)).owner.node))
      return keys.filter((_, n) => owners[n] === gone.node)
    }
    // Those that are the node's own: it would also have those of a node that is taken for lost.
    await gateways[0].usesAllNodes()
    const moving = await owned()
    expect(moving.length).toBeGreaterThan(0)

    backend.viewers.length = 0
    await gone.process.kill()
    await eventually(() => watched(moving), 'the other node telling of them', LONG)
    backend.viewers.length = 0
    await startFetcher(gone.ports)
    await eventually(() => watched(moving), 'the first node telling of them', LONG)
    expect(backend.viewers.filter(({ watched }) => !watched)).toEqual([])
    const isLeft = (key: string) => backend.viewers.some(each => each.key === key && !each.watched)
    await eventually(
      async () => {
        for (const viewer of viewers) viewer.close()
        await pause(2_000)
        // A link that was lost meanwhile leaves the backend untold: viewers come and go once more.
        const silent = keys.filter(key => !isLeft(key))
        if (silent.length > 0) viewers = await Promise.all(gateways.map(gateway => view(gateway, silent)))
        return silent.length === 0
      },
      'the backend being told that all have left',
      LONG,
    )
  })
})
