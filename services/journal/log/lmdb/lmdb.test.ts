import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realWorld } from '@keycast/service'
import { EMPTY_MS, FLOOR_STEP } from '../log.ts'
import { testLog } from '../suite/suite.fixture.ts'
import { type Counts, openTables, type Room } from './layout.ts'
import { openLmdbLog } from './lmdb.ts'

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function newFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-log-'))
  folders.push(folder)
  return folder
}

testLog({ open: options => openLmdbLog({ ...realWorld, folder: newFolder(), ...options }) })

const bytesMax = 2 ** 30
const roomy = { messages: 1_000, ageMs: 1e9, bytes: 1e9 }
const publish = {
  room: 'room:1',
  messageId: undefined,
  from: 'ann',
  data: Buffer.from('1'),
  retention: { messages: 10, ageMs: 1e9, bytes: 1e9 },
}

test('what was acknowledged is there after a restart, under the same epoch', async () => {
  const folder = newFolder()
  const first = await openLmdbLog({ ...realWorld, folder, bytesMax })
  const [{ position }] = (await first.append([publish])) as any[]
  const stats = first.stats()
  await first.close()
  const second = await openLmdbLog({ ...realWorld, folder, bytesMax })
  expect(await second.head('room:1')).toMatchObject(position)
  expect(second.stats()).toEqual(stats)
  expect(await second.append([publish])).toMatchObject([{ position: { epoch: position.epoch, seq: 2 } }])
  const { bytes, freeBytes } = second.disk?.() ?? { bytes: 0, freeBytes: 0 }
  expect(freeBytes).toBeGreaterThan(0)
  expect(freeBytes).toBeLessThanOrEqual(bytes)
  await second.close()
})

test('what is kept counts for the same payers after a restart; what an earlier release removed, for nobody', async () => {
  const folder = newFolder()
  const options = { ...realWorld, folder, bytesMax: 200_000 }
  const of = (payer: string, room = 'room:1') => ({
    ...publish,
    room,
    retention: roomy,
    payer,
    data: Buffer.alloc(500, '1'),
  })
  const first = await openLmdbLog(options)
  while ((await first.append([of('a1.u1')]))[0].error === undefined);
  await first.append([of('a2.u2', 'room:2')])
  const { charged } = first.stats()
  expect(charged.users).toBeGreaterThan(20_000)
  await first.close()

  const second = await openLmdbLog(options)
  expect(second.stats().charged).toEqual(charged)
  expect(await second.append([of('a1.u1')])).toEqual([{ error: 'capacity' }])
  expect(await second.append([of('a2.u2', 'room:2')])).toMatchObject([{ duplicate: false }])
  await second.close()

  const { env, rooms } = openTables(folder)
  await rooms.put('room:1', { ...(rooms.get('room:1') as Room), oldest: 20 })
  await rooms.remove('room:2')
  await env.close()
  const third = await openLmdbLog(options)
  expect(third.stats().charged.users).toBeLessThan(charged.users - 18 * 500)
  await third.close()
})

test('the floor and the times to look at rooms outlive a restart', async () => {
  const folder = newFolder()
  const clock = { at: 1_700_000_000_000 }
  const options = { ...realWorld, folder, bytesMax, wallNow: () => clock.at }
  const first = await openLmdbLog(options)
  await first.append([publish, { ...publish, room: 'room:2' }])
  clock.at += 1e9 + 1
  await first.expire()
  clock.at += EMPTY_MS
  await first.append([{ ...publish, room: 'room:2' }])
  await first.close()
  clock.at++
  const second = await openLmdbLog(options)
  await second.expire()
  expect(second.stats().rooms).toBe(1)
  await second.close()
  const { env, due, rooms } = openTables(folder)
  expect([...due.getRange({})].map(({ value }) => value)).toEqual([...rooms.getKeys({})])
  await env.close()
  const third = await openLmdbLog(options)
  expect(await third.append([publish])).toMatchObject([{ position: { seq: FLOOR_STEP + 1 } }])
  await third.close()
})

test('rooms of a release that did not note when to look at them are found', async () => {
  const folder = newFolder()
  const clock = { at: 1_700_000_000_000 }
  const options = { ...realWorld, folder, bytesMax, wallNow: () => clock.at }
  const first = await openLmdbLog(options)
  await first.append([publish, { ...publish, room: 'room:2' }])
  await first.close()
  const { env, due, rooms, meta } = openTables(folder)
  for (const { key, value } of [...rooms.getRange({})]) await rooms.put(key, { ...value, dueAt: undefined })
  await due.clearAsync()
  const { rooms: _, floor, ...counts } = meta.get('counts') as Counts
  await meta.put('counts', counts as Counts)
  await env.close()
  clock.at += 1e9 + 1
  const second = await openLmdbLog(options)
  expect(second.stats().rooms).toBe(2)
  expect((await second.expire()).trimmed).toHaveLength(2)
  clock.at += EMPTY_MS + 1
  await second.expire()
  expect(second.stats()).toMatchObject({ rooms: 0, bytes: 0 })
  await second.close()
})

test('an epoch outlives a restart without a message, and a file restored from a backup has another', async () => {
  const folder = newFolder()
  const first = await openLmdbLog({ ...realWorld, folder, bytesMax })
  const { epoch } = await first.head('room:1')
  await first.close()
  const second = await openLmdbLog({ ...realWorld, folder, bytesMax })
  expect((await second.head('room:1')).epoch).toBe(epoch)
  await second.append([publish])
  await second.close()

  const restored = newFolder()
  cpSync(folder, restored, { recursive: true })
  const third = await openLmdbLog({ ...realWorld, folder: restored, bytesMax })
  const head = await third.head('room:1')
  expect(head).toMatchObject({ seq: 1, epoch: expect.not.stringMatching(epoch) })
  await third.close()
  const fourth = await openLmdbLog({ ...realWorld, folder: restored, bytesMax })
  expect(await fourth.head('room:1')).toEqual(head)
  await fourth.close()
})

/** What a crash leaves: nobody said that this was the end. */
async function crash(folder: string) {
  const { env, meta } = openTables(folder)
  await meta.put('isClosed', false)
  await env.close()
}

test('after a crash of the machine numbers may come again, so it is another epoch; not if it ended in order', async () => {
  const folder = newFolder()
  const epochAfter = async (boot: string) => {
    const log = await openLmdbLog({ ...realWorld, folder, bytesMax, boot })
    const { epoch } = await log.head('room:1')
    await log.append([publish])
    await log.close()
    return epoch
  }
  const first = await epochAfter('boot 1')
  expect(await epochAfter('boot 2')).toBe(first)
  await crash(folder)
  expect(await epochAfter('boot 2')).toBe(first)
  await crash(folder)
  const second = await epochAfter('boot 3')
  expect(second).not.toBe(first)
  expect(await epochAfter('boot 4')).toBe(second)
})

test('a log says how far it is, over restarts too, and begins another epoch when told', async () => {
  const folder = newFolder()
  let log = await openLmdbLog({ ...realWorld, folder, bytesMax })
  await log.append([publish, publish, { ...publish, room: 'room:2' }])
  const { epoch } = await log.head('room:1')
  expect(log.at?.()).toBe(3)
  const appended = log.append([publish])
  expect(log.at?.()).toBe(3)
  await appended
  expect(await log.renew?.()).toBe(true)
  const head = await log.head('room:1')
  expect(head).toMatchObject({ seq: 3, epoch: expect.not.stringMatching(epoch) })
  expect([log.id(), log.at?.()]).toEqual([head.epoch, 4])
  await log.close()
  log = await openLmdbLog({ ...realWorld, folder, bytesMax })
  expect(await log.head('room:1')).toEqual(head)
  expect(log.at?.()).toBe(4)
  await log.close()
})

test('after a restart ids are known: those of the last minutes, and older ones with their messages', async () => {
  const folder = newFolder()
  const clock = { at: 1_700_000_000_000 }
  const open = () => openLmdbLog({ ...realWorld, folder, bytesMax, now: () => clock.at, wallNow: () => clock.at })
  const publishOf = (n: number) => ({ ...publish, messageId: `message-${n}`, retention: roomy })
  const batches = [0, 1, 2].map(batch => Array.from({ length: 100 }, (_, n) => publishOf(batch * 100 + n)))
  let log = await open()
  for (const batch of batches) {
    await log.append(batch)
    clock.at += 200_000
  }
  await log.expire()
  const stats = log.stats()
  await log.close()

  log = await open()
  expect(log.stats()).toEqual(stats)
  for (const [batch, publishes] of batches.entries()) {
    const outcomes = await log.append(publishes)
    expect(outcomes).toMatchObject(
      publishes.map((_, n) => ({ duplicate: true, position: { seq: batch * 100 + n + 1 } })),
    )
    const others = publishes.map(each => ({ ...each, data: Buffer.from('2') }))
    expect(new Set((await log.append(others)).map(({ error }) => error))).toEqual(new Set(['id_conflict']))
  }
  expect((await log.head('room:1')).seq).toBe(300)
  expect(log.stats()).toEqual(stats)
  await log.close()
})

// faults.test.ts has that nothing is seen before it is on disk.
test('a batch is seen as a whole', async () => {
  const log = await openLmdbLog({ ...realWorld, folder: newFolder(), bytesMax })
  await log.append([publish])
  let isKept = false
  const kept = log.append([publish, publish]).then(() => {
    isKept = true
  })
  const seen = new Set()
  while (!isKept) {
    const { head, messages } = await log.read('room:1', { after: 0, limit: 10, bytesMax })
    seen.add(`${head.seq} ${messages.length}`)
    await new Promise(setImmediate)
  }
  await kept
  seen.delete('3 3') // on disk, and not acknowledged yet
  expect([...seen]).toEqual(['1 1'])
  expect(await log.head('room:1')).toMatchObject({ seq: 3 })
  await log.close()
})

test.each([
  ['cut short', (file: string) => truncateSync(file, 3 * 4096)],
  ['overwritten', (file: string) => writeFileSync(file, 'x'.repeat(20_000))],
])('a file that was %s is refused by name, and left as it is', async (_, damage) => {
  const folder = newFolder()
  const log = await openLmdbLog({ ...realWorld, folder, bytesMax })
  for (let n = 0; n < 50; n++) await log.append([{ ...publish, data: Buffer.alloc(2_000, 'x') }])
  await log.close()
  const file = join(folder, 'data.mdb')
  damage(file)
  const damaged = readFileSync(file)
  await expect(openLmdbLog({ ...realWorld, folder, bytesMax })).rejects.toThrow(`${file} is damaged`)
  expect(readFileSync(file).equals(damaged)).toBe(true)
})

describe('a clock that is set', () => {
  const DAY_MS = 86_400_000
  const short = { ...publish, retention: { ...publish.retention, ageMs: DAY_MS } }

  async function setup() {
    const folder = newFolder()
    const clock = { wall: 1_700_000_000_000, elapsed: 0 }
    const open = () =>
      openLmdbLog({
        ...realWorld,
        folder,
        bytesMax,
        wallNow: () => clock.wall,
        now: () => clock.elapsed,
        shortenMs: 3_600_000,
      })
    const pass = (ms: number) => {
      clock.wall += ms
      clock.elapsed += ms
    }
    return { clock, open, pass, log: await open() }
  }

  test('a minute under a clock that is a year ahead removes nothing, whether or not the journal starts in it', async () => {
    const { clock, open, pass, log } = await setup()
    await log.append([short])
    clock.wall += 365 * DAY_MS
    expect((await log.expire()).trimmed).toEqual([])
    await log.append([short])
    await log.close()
    const again = await open()
    pass(60_000)
    expect((await again.expire()).trimmed).toEqual([])
    expect(again.stats().clockAheadMs).toBe(365 * DAY_MS)
    clock.wall -= 365 * DAY_MS
    expect((await again.expire()).trimmed).toEqual([])
    expect(await again.head('room:1')).toMatchObject({ seq: 2, oldest: 1 })
    await again.close()
  })

  test('a jump that was right counts after the wait, and takes nothing that was published meanwhile', async () => {
    const { clock, pass, log } = await setup()
    await log.append([short])
    clock.wall += 365 * DAY_MS
    await log.append([short, { ...short, room: 'room:2' }])
    pass(3_600_000)
    await log.expire() // begins the wait
    pass(3_600_000)
    await log.expire()
    expect(await log.head('room:1')).toMatchObject({ seq: 2, oldest: 2 })
    expect(await log.head('room:2')).toMatchObject({ seq: 1, oldest: 1 })
    pass(DAY_MS)
    await log.expire()
    expect(await log.head('room:1')).toMatchObject({ seq: 2, oldest: 3 })
    expect(await log.head('room:2')).toMatchObject({ seq: 1, oldest: 2 })
    await log.close()
  })

  test.each([
    ['while the journal runs', false],
    ['between two of its starts', true],
  ])(
    'where it was ahead for long and is set back %s, a room that nobody publishes into is trimmed at its age',
    async (_, isAnew) => {
      const { clock, open, pass, log } = await setup()
      await log.append([short])
      await log.expire()
      clock.wall -= 365 * DAY_MS
      if (isAnew) await log.close()
      const now = isAnew ? await open() : log
      await now.expire()
      pass(DAY_MS)
      await now.expire()
      expect(await now.head('room:1')).toMatchObject({ seq: 1, oldest: 1 })
      pass(1)
      await now.expire()
      expect(await now.head('room:1')).toMatchObject({ seq: 1, oldest: 2 })
      await now.close()
    },
  )

  test('what was published under a clock that was ahead goes some time after it was set back, and not in a year', async () => {
    const { clock, pass, log } = await setup()
    clock.wall += 365 * DAY_MS
    await log.append([short, { ...short, room: 'room:2' }])
    pass(1_000)
    await log.append([short])
    clock.wall -= 365 * DAY_MS
    await log.append([short])
    pass(DAY_MS + 1) // its place among the rooms to be looked at
    await log.expire()
    pass(DAY_MS + 1_001)
    await log.expire()
    await log.expire()
    expect(await log.head('room:1')).toMatchObject({ seq: 3, oldest: 4 })
    expect(await log.head('room:2')).toMatchObject({ seq: 1, oldest: 2 })
    await log.close()
  })
})
