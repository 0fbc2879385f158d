// Faults that only a log in a server of its own meets: it restarts, fills up, forgets its functions, and has other
// journals.
import { mkdirSync, readdirSync, readFileSync, rmdirSync, truncateSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { realWorld } from '@keycast/service'
import { startValkey } from '../../../../test/support/valkey.ts'
import { EMPTY_MS, FLOOR_STEP } from '../log.ts'
import { createConnection } from './connection.ts'
import { openValkeyLog } from './valkey.ts'

// Valkeys are started and killed here, which takes a busy machine seconds.

const silent: any = { info() {}, warn() {}, error() {} }

let valkey: Awaited<ReturnType<typeof startValkey>>
const logs: Awaited<ReturnType<typeof openValkeyLog>>[] = []
/** Servers still running, stopped at the end: one left would keep jest from ending. */
const replicas: (typeof valkey)[] = []
beforeAll(async () => {
  valkey = await startValkey()
})
afterAll(() => valkey.remove())
beforeEach(() => void valkey.cli('FLUSHALL'))
afterEach(async () => {
  for (const log of logs.splice(0)) await log.close()
  for (const replica of replicas.splice(0)) await replica.remove()
})

async function open(options?: Partial<Parameters<typeof openValkeyLog>[0]>) {
  const log = await openValkeyLog({ ...realWorld, url: valkey.url, bytesMax: 2 ** 30, report: silent, ...options })
  logs.push(log)
  return log
}

const retention = { messages: 10_000, ageMs: 1e9, bytes: 1e9 }

const publishOf = ({
  text = 'x',
  room = 'room:1',
  messageId,
}: {
  text?: string
  room?: string
  messageId?: string
} = {}) => ({
  room,
  messageId,
  from: 'ann',
  data: Buffer.from(JSON.stringify(text)),
  retention,
})

/** Until it resolves without an error and holds. */
async function eventually<T>(ask: () => Promise<T>, holds: (value: T) => boolean) {
  for (;;) {
    const value = await ask().catch(() => undefined)
    if (value !== undefined && holds(value)) return value
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

const isKept = ([outcome]: any[]) => outcome.error === undefined
const messageId = 'message-00000001'

test('after a restart what was acknowledged is there, in another epoch, and an id is still known', async () => {
  const log = await open()
  const [before] = (await log.append([publishOf({ messageId })])) as any[]
  await valkey.kill()
  expect(
    await eventually(
      () => log.append([publishOf()]),
      ([{ error }]) => error === 'journal_unavailable',
    ),
  ).toBeDefined()
  expect(log.notReady?.()).toMatch(/^Valkey at 127\.0\.0\.1:\d+ cannot be reached$/)
  await valkey.restart()
  const head = await eventually(
    () => log.head('room:1'),
    () => true,
  )
  expect(head).toMatchObject({ seq: 1, epoch: expect.not.stringMatching(before.position.epoch) })
  expect(await log.append([publishOf({ messageId })])).toMatchObject([
    { duplicate: true, position: { epoch: head.epoch, seq: 1 } },
  ])
  expect(await log.append([publishOf()])).toMatchObject([{ position: { epoch: head.epoch, seq: 2 } }])
})

test('killed with a batch under way, it cannot say what was kept, and nothing is kept twice', async () => {
  const log = await open()
  const batch = Array.from({ length: 1_000 }, (_, n) =>
    publishOf({ messageId: `message-${String(n).padStart(8, '0')}` }),
  )
  const appended = log.append(batch).then(
    outcomes => outcomes,
    () => undefined,
  )
  await valkey.kill()
  const outcomes = await appended
  await valkey.restart()
  await eventually(
    () => log.head('room:1'),
    () => true,
  )
  const again = await eventually(() => log.append(batch), isKept)
  expect(again.length).toBe(1_000)
  const { head, messages } = await log.read('room:1', { after: 0, limit: 2_000, bytesMax: 1e9 })
  expect(head.seq).toBe(1_000)
  expect(new Set(messages.map(({ messageId }) => messageId)).size).toBe(1_000)
  if (outcomes) expect(again.every(outcome => outcome.error === undefined && outcome.duplicate)).toBe(true)
})

/** As where Valkey was killed while it wrote its last batch: the file ends within the batch's last message. */
function tearFile(folder: string) {
  const files = join(folder, 'appendonlydir')
  const written = readdirSync(files).filter(name => name.endsWith('.incr.aof'))
  const last = join(files, written.sort((a, b) => Number(a.split('.')[2]) - Number(b.split('.')[2])).at(-1) as string)
  truncateSync(last, readFileSync(last).lastIndexOf('XADD') + 10)
}

test.each([
  ['once its file is', 0],
  ['before its file is', 500_000],
])(
  'killed while it writes a batch, and again %s written anew, it has what was acknowledged between, and nothing of the batch',
  async (_, slowUs) => {
    const torn = await startValkey({ settings: ['--rdb-key-save-delay', String(slowUs)] })
    replicas.push(torn)
    const log = await open({ url: torn.url })
    const textsOf = async () => {
      const { messages } = await log.read('room:1', { after: 0, limit: 100, bytesMax: 1e9 })
      return messages.map(({ data }) => JSON.parse(String(data)))
    }
    await log.append([publishOf({ text: 'first' })])
    await log.append(
      Array.from({ length: 5 }, (_, n) => publishOf({ text: `torn ${n}`, messageId: `${messageId}${n}` })),
    )
    await torn.kill()
    tearFile(torn.folder)
    await torn.restart()
    await eventually(() => log.append([publishOf({ text: 'second' }), publishOf({ text: 'third' })]), isKept)
    expect(await textsOf()).toEqual(['first', 'second', 'third'])
    await eventually(
      async () => torn.cli('INFO', 'persistence'),
      info => info.includes(`aof_rewrite_in_progress:${slowUs > 0 ? 1 : 0}`),
    )
    await torn.kill()
    await torn.restart()
    expect(await eventually(textsOf, () => true)).toEqual(['first', 'second', 'third'])
  },
)

test('killed while it writes a batch, and on a disk where it can begin no other file, it is not used until it can', async () => {
  const torn = await startValkey()
  replicas.push(torn)
  const log = await open({ url: torn.url })
  await log.append(Array.from({ length: 5 }, (_, n) => publishOf({ text: `torn ${n}` })))
  await torn.kill()
  tearFile(torn.folder)
  const inTheWay = join(torn.folder, 'appendonlydir', 'temp-appendonly.aof.manifest')
  mkdirSync(inTheWay)
  await torn.restart()
  await eventually(
    async () => torn.cli('INFO', 'persistence'),
    info => info.includes('aof_last_bgrewrite_status:err'),
  )
  expect(await log.append([publishOf()])).toEqual([{ error: 'journal_unavailable' }])
  rmdirSync(inTheWay)
  const texts = ['first', 'second', 'third']
  await eventually(() => log.append(texts.map(text => publishOf({ text }))), isKept)
  await torn.kill()
  await torn.restart()
  const { messages } = await eventually(
    () => log.read('room:1', { after: 0, limit: 100, bytesMax: 1e9 }),
    () => true,
  )
  expect(messages.map(({ data }) => JSON.parse(String(data)))).toEqual(texts)
})

test('killed while it writes the first batch after it was emptied, and again later, it has what was acknowledged between', async () => {
  const torn = await startValkey()
  replicas.push(torn)
  const log = await open({ url: torn.url })
  torn.cli('FLUSHALL')
  await log.append(Array.from({ length: 5 }, (_, n) => publishOf({ text: `torn ${n}` })))
  await torn.kill()
  tearFile(torn.folder)
  await torn.restart()
  const texts = ['first', 'second', 'third']
  await eventually(() => log.append(texts.map(text => publishOf({ text }))), isKept)
  await torn.kill()
  await torn.restart()
  const { messages } = await eventually(
    () => log.read('room:1', { after: 0, limit: 100, bytesMax: 1e9 }),
    () => true,
  )
  expect(messages.map(({ data }) => JSON.parse(String(data)))).toEqual(texts)
})

test('out of memory it keeps nothing, tells, and takes messages again when there is some', async () => {
  const log = await open()
  await log.append([publishOf()])
  valkey.cli('CONFIG', 'SET', 'maxmemory', '1mb')
  expect(await log.append([publishOf(), publishOf({ room: 'room:2' })])).toEqual([
    { error: 'log_full' },
    { error: 'log_full' },
  ])
  expect(await log.read('room:1', { after: 0, limit: 10, bytesMax: 1e6 })).toMatchObject({ messages: [{ seq: 1 }] })
  expect(await log.expire()).toMatchObject({ more: false })
  valkey.cli('CONFIG', 'SET', 'maxmemory', '0')
  expect(await log.append([publishOf()])).toMatchObject([{ position: { seq: 2 } }])
})

test('a journal that comes to a Valkey without memory left can read, and has age make room', async () => {
  const clock = { at: Date.now() }
  const options = { valkeyNow: () => clock.at, startMs: 0 }
  await (await open(options)).append([publishOf({ text: 'y'.repeat(100_000) })])
  valkey.cli('CONFIG', 'SET', 'maxmemory', '1mb')
  const late = await open(options)
  expect(await late.append([publishOf()])).toEqual([{ error: 'log_full' }])
  expect(await late.read('room:1', { after: 0, limit: 10, bytesMax: 1e6 })).toMatchObject({ messages: [{ seq: 1 }] })
  clock.at += 2e9
  expect(await late.expire()).toMatchObject({ more: true })
  valkey.cli('CONFIG', 'SET', 'maxmemory', '0')
})

test('out of memory, age makes room', async () => {
  const clock = { at: Date.now() }
  const log = await open({ valkeyNow: () => clock.at })
  await log.append([publishOf({ text: 'y'.repeat(100_000) })])
  valkey.cli('CONFIG', 'SET', 'maxmemory', '1mb')
  clock.at += 2e9
  expect(await log.expire()).toMatchObject({ more: true })
  valkey.cli('CONFIG', 'SET', 'maxmemory', '0')
  expect(await log.head('room:1')).toMatchObject({ seq: 1, oldest: 2, bytes: 0 })
})

test('a walk over all rooms that Valkey is started again under leaves none out: it begins anew, or ends with an error', async () => {
  const log = await open()
  const rooms = Array.from({ length: 1_000 }, (_, n) => `room:${n}`)
  await log.append(rooms.flatMap(room => [publishOf({ room }), publishOf({ room })]))
  const shorter = { ...retention, messages: 1 }
  const retentionOf = () => shorter
  await log.expire(retentionOf)
  const walk = log.rooms()[Symbol.asyncIterator]()
  await walk.next()
  await valkey.kill()
  await valkey.restart()
  await eventually(() => log.append([publishOf()]), isKept)
  await expect(
    (async () => {
      while (!(await walk.next()).done);
    })(),
  ).rejects.toThrow()
  await eventually(
    () => log.expire(retentionOf),
    ({ more }) => !more,
  )
  const heads = await Promise.all(rooms.map(room => log.head(room)))
  expect(heads.filter(({ oldest, seq }) => oldest !== seq)).toEqual([])
})

test('however many messages are past their age, one call removes some of them: Valkey serves nobody meanwhile', async () => {
  const clock = { at: 1_700_000_000_000 }
  const log = await open({ valkeyNow: () => clock.at })
  const rooms = Array.from({ length: 5 }, (_, n) => `room:${n}`)
  for (let batch = 0; batch < 6; batch++) {
    for (const room of rooms) await log.append(Array.from({ length: 1_000 }, () => publishOf({ room })))
  }
  clock.at += retention.ageMs + 1
  let calls = 0
  while ((await log.expire()).more) calls++
  expect(calls).toBe(3)
  for (const room of rooms) expect(await log.head(room)).toMatchObject({ seq: 6_000, oldest: 6_001, bytes: 0 })
})

test('two journals that append to one room make one order, and each hears of the other', async () => {
  const [one, other] = [await open(), await open()]
  const heard = new Map<string, number>()
  other.news.listen((room, { seq }) => void heard.set(room, seq))
  other.watch('room:1')
  const outcomes = await Promise.all(
    Array.from({ length: 40 }, (_, n) => (n % 2 ? one : other).append([publishOf({ text: String(n) }), publishOf({})])),
  )
  const seqs = outcomes.flat().map(outcome => (outcome.error === undefined ? outcome.position.seq : 0))
  expect(seqs.sort((a, b) => a - b)).toEqual(Array.from({ length: 80 }, (_, n) => n + 1))
  const { epoch } = await one.head('room:1')
  expect(await other.news.heads(['room:1', 'room:2'])).toEqual([
    { room: 'room:1', head: { epoch, seq: 80, oldest: 1 } },
    { room: 'room:2', head: { epoch, seq: 0, oldest: 1 } },
  ])
  await one.append([publishOf()])
  await eventually(
    async () => heard.get('room:1'),
    seq => seq === 81,
  )
  other.unwatch('room:1')
})

test('an empty room that a journal watches is not forgotten, and that is seen by all journals', async () => {
  const clock = { at: 1_700_000_000_000 }
  const [one, other] = [await open({ valkeyNow: () => clock.at }), await open({ valkeyNow: () => clock.at })]
  await one.append([publishOf()])
  clock.at += retention.ageMs + 1
  await one.expire()
  const channel = 'keycast:news:room:1'
  const watchers = async () => Number(valkey.cli('PUBSUB', 'SHARDNUMSUB', channel).trim().split(/\s+/).at(-1))
  other.watch('room:1')
  await eventually(watchers, count => count === 1)
  clock.at += EMPTY_MS + 1
  await one.expire()
  expect(await one.head('room:1')).toMatchObject({ seq: 1 })
  other.unwatch('room:1')
  await eventually(watchers, count => count === 0)
  clock.at += EMPTY_MS + 1
  await one.expire()
  expect(await other.head('room:1')).toMatchObject({ seq: FLOOR_STEP })
  expect(one.stats().rooms).toBe(0)
  expect(await other.append([publishOf()])).toMatchObject([{ position: { seq: FLOOR_STEP + 1 } }])
})

test('after its connection was lost a journal listens to the rooms that are watched, and to no others', async () => {
  const log = await open()
  for (const room of ['room:1', 'room:2']) log.watch(room)
  log.unwatch('room:1')
  const listener = async () => /^id=(\d+)/.exec(valkey.cli('CLIENT', 'LIST', 'TYPE', 'pubsub'))?.[1]
  const before = await eventually(listener, id => id !== undefined)
  valkey.cli('CLIENT', 'KILL', 'ID', String(before))
  await eventually(listener, id => id !== before)
  expect(valkey.cli('PUBSUB', 'SHARDCHANNELS')).toBe('keycast:news:room:2')
})

test('a journal listens to rooms that gateways come to while its connection is made anew, and to none that they left', async () => {
  const log = await open()
  const rooms = new Set(Array.from({ length: 3_000 }, (_, n) => `room:${n}`))
  for (const room of rooms) log.watch(room)
  const heard = async () => valkey.cli('PUBSUB', 'SHARDCHANNELS').split('\n').sort().join()
  const isAll = (channels: string) =>
    channels ===
    Array.from(rooms, room => `keycast:news:${room}`)
      .sort()
      .join()
  await eventually(heard, isAll)
  const listener = /^id=(\d+)/.exec(valkey.cli('CLIENT', 'LIST', 'TYPE', 'pubsub'))?.[1]
  valkey.cli('CLIENT', 'KILL', 'ID', String(listener))
  await eventually(
    async () => log.notReady?.(),
    reason => reason !== undefined,
  )
  // As many are left as are come to: a Valkey that is slow now has no more to tell for it.
  for (let turn = 0; log.notReady?.() !== undefined; turn++) {
    const [left] = rooms
    const come = `late:${turn}`
    log.unwatch(left)
    rooms.delete(left)
    log.watch(come)
    rooms.add(come)
    await new Promise(setImmediate)
  }
  await eventually(heard, isAll)
})

test('a journal that listens to many rooms is not cut off by a Valkey that started again', async () => {
  const bounded = await startValkey({ settings: ['--client-output-buffer-limit', 'pubsub 512kb 512kb 60'] })
  replicas.push(bounded)
  const log = await open({ url: bounded.url })
  await bounded.kill()
  const rooms = 20_000
  for (let n = 0; n < rooms; n++) log.watch(`room:${'x'.repeat(200)}${n}`)
  await bounded.restart()
  await eventually(() => log.append([publishOf()]), isKept)
  await eventually(
    async () => bounded.cli('CLIENT', 'LIST', 'TYPE', 'pubsub'),
    clients => clients.includes(`ssub=${rooms}`),
  )
  expect(bounded.cli('INFO', 'stats')).toContain('client_output_buffer_limit_disconnections:0')
})

test('the journals of a Valkey say one id, also after a restart; emptied, it is another log', async () => {
  const [one, other] = [await open(), await open()]
  const id = one.id()
  expect(id).toMatch(/^.{8,}$/)
  expect(other.id()).toBe(id)
  await valkey.kill()
  await valkey.restart()
  const [outcome] = await eventually(() => one.append([publishOf()]), isKept)
  expect([one.id(), (await open()).id()]).toEqual([id, id])

  valkey.cli('FLUSHALL')
  // A publish comes before anybody looked.
  await eventually(
    () => one.append([publishOf()]),
    ([again]) => (again as any).position?.epoch !== (outcome as any).position.epoch,
  )
  for (const log of [one, other])
    await eventually(
      () => log.news.heads([]),
      () => true,
    )
  expect(one.id()).not.toBe(id)
  expect(other.id()).toBe(one.id())
})

test('a primary of before and the one that took its place have one id, and journals say different epochs; none where there is no Valkey', async () => {
  const one = await open()
  await one.append([publishOf()])
  const replica = await startValkey()
  replicas.push(replica)
  replica.cli('REPLICAOF', '127.0.0.1', String(valkey.port))
  await eventually(
    async () => replica.cli('HGET', 'keycast:log', 'id'),
    id => id === one.id(),
  )
  replica.cli('REPLICAOF', 'NO', 'ONE')
  const other = await open({ url: replica.url, allowsLoss: true })
  expect(other.id()).toBe(one.id())
  await one.news.heads([]) // the first replica of a primary begins another epoch
  expect(other.epoch?.()).not.toBe(one.epoch?.())
  expect((await open()).epoch?.()).toBe(one.epoch?.())
  await replica.kill()
  await eventually(
    async () => other.epoch?.() === undefined,
    isAway => isAway,
  )
})

test('the same message by way of two journals is one', async () => {
  const [one, other] = [await open(), await open()]
  const outcomes = await Promise.all([one.append([publishOf({ messageId })]), other.append([publishOf({ messageId })])])
  expect(outcomes.flat().filter(outcome => outcome.error === undefined && outcome.duplicate)).toHaveLength(1)
  expect(await one.head('room:1')).toMatchObject({ seq: 1 })
})

test('a Valkey that was emptied, or lost its functions, is set up again', async () => {
  const log = await open()
  const { epoch } = await log.head('room:1')
  await log.append([publishOf()])
  valkey.cli('FLUSHALL')
  valkey.cli('FUNCTION', 'FLUSH')
  expect(await log.append([publishOf()])).toEqual([{ error: 'journal_unavailable' }])
  const [outcome] = await eventually(() => log.append([publishOf()]), isKept)
  expect(outcome).toMatchObject({ position: { seq: 1, epoch: expect.not.stringMatching(epoch) } })
})

test('a Valkey that was made a replica, or lost its functions, is noticed where nobody publishes, too', async () => {
  const log = await open()
  const isThere = () =>
    eventually(
      () => log.delete('room:1', undefined, false),
      deletion => !('error' in deletion),
    )
  valkey.cli('REPLICAOF', '127.0.0.1', '1')
  await expect(log.expire()).rejects.toThrow('READONLY')
  valkey.cli('REPLICAOF', 'NO', 'ONE')
  await isThere()
  valkey.cli('FUNCTION', 'FLUSH')
  await expect(log.news.heads(['room:1'])).rejects.toThrow('Function not found')
  await isThere()
})

test('where its replica does not follow, what was kept is not known; where it has none, nothing is kept', async () => {
  // Else a replica waits 5 s for others before it is sent anything.
  valkey.cli('CONFIG', 'SET', 'repl-diskless-sync-delay', '0')
  const replica = await startValkey({ settings: ['--replicaof', '127.0.0.1', String(valkey.port)] })
  replicas.push(replica)
  valkey.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')
  const log = await open({ replicasMin: 1 })
  // A replica has nothing on disk until it has a file of the whole first synchronization.
  await eventually(
    async () => replica.cli('INFO'),
    info =>
      ['master_link_status:up', 'aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0'].every(line =>
        info.includes(line),
      ),
  )
  // On a busy machine its first answer may come too late.
  await eventually(
    () => log.append([publishOf()]).catch(() => [{ error: 'publish_unknown' }]),
    outcomes => isKept(outcomes),
  )
  replica.signal('SIGSTOP')
  await expect(log.append([publishOf()])).rejects.toThrow('did not say within 2000 ms that 1 replicas have the batch')
  await replica.remove()
  await eventually(
    () => log.append([publishOf()]),
    ([{ error }]) => error === 'journal_unavailable',
  )
  expect((await log.read('room:1', { after: 0, limit: 10, bytesMax: 1e6 })).messages.length).toBeGreaterThan(0)
  valkey.cli('CONFIG', 'SET', 'min-replicas-to-write', '0')
})

test('a journal that comes to a primary whose replicas are gone can read, and keeps messages once one is there', async () => {
  await (await open()).append([publishOf()])
  valkey.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')
  try {
    const late = await open({ startMs: 0 })
    expect(await late.append([publishOf()])).toEqual([{ error: 'journal_unavailable' }])
    expect(await late.read('room:1', { after: 0, limit: 10, bytesMax: 1e6 })).toMatchObject({ messages: [{ seq: 1 }] })
    valkey.cli('CONFIG', 'SET', 'min-replicas-to-write', '0')
    expect(await late.append([publishOf()])).toMatchObject([{ position: { seq: 2 } }])
  } finally {
    valkey.cli('CONFIG', 'SET', 'min-replicas-to-write', '0')
  }
})

test('a journal whose process stands still again and again notices a Valkey that answers nothing', async () => {
  let onLost: (error: Error) => void = () => {}
  const lost = new Promise(resolve => {
    onLost = resolve
  })
  const connection = createConnection({
    ...realWorld,
    url: valkey.url,
    prepare: async () => {},
    onMessage() {},
    onLost: error => onLost(error),
    now: () => 1.7 * performance.now(), // by it each tick of a timer is late
  })
  await connection.start()
  valkey.signal('SIGSTOP')
  expect(await lost).toMatchObject({ message: expect.stringContaining('does not answer') })
  valkey.signal('SIGCONT')
  connection.close()
})

test('during a failover both connections lead to one server, or others are made', async () => {
  const before = await startValkey()
  replicas.push(before)
  let connections = 0
  const sockets: Socket[] = []
  const server = createServer(near => {
    const far = connect(++connections === 1 ? before.port : valkey.port, '127.0.0.1')
    sockets.push(near, far)
    near.pipe(far).pipe(near)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const log = await open({ url: `valkey://127.0.0.1:${port}` })
  expect(isKept(await log.append([publishOf()]))).toBe(true)
  expect(await log.head('room:1')).toMatchObject({ seq: 1 })
  await logs.pop()?.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})

test('a Valkey that takes a connection and answers nothing on it is given up', async () => {
  const sockets: Socket[] = []
  const server = createServer(near => {
    sockets.push(near)
    if (sockets.length <= 2) return // both of the first attempt
    const far = connect(valkey.port, '127.0.0.1')
    sockets.push(far)
    near.pipe(far).pipe(near)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const log = await open({ url: `valkey://127.0.0.1:${port}` })
  expect(isKept(await log.append([publishOf()]))).toBe(true)
  await logs.pop()?.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})
