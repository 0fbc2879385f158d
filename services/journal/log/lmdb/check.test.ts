import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realWorld } from '@keycast/service'
import { checkTables } from './check.ts'
import { checkLog } from './check-apart.ts'
import { type Counts, openTables, type Tables } from './layout.ts'
import { openLmdbLog } from './lmdb.ts'

let folder: string
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-check-'))
  const log = await openLmdbLog({ ...realWorld, folder, bytesMax: 2 ** 30 })
  const retention = { messages: 60, ageMs: 1e9, bytes: 1e9 }
  for (let batch = 0; batch < 4; batch++) {
    await log.append(
      Array.from({ length: 50 }, (_, index) => ({
        room: `room:${index % 2}`,
        messageId: `message-${batch}-${String(index).padStart(8, '0')}`,
        from: 'ann',
        data: Buffer.from(JSON.stringify('x'.repeat(500))),
        retention,
      })),
    )
  }
  await log.close()
})
afterEach(() => rmSync(folder, { recursive: true }))

const idOf = (rooms: Tables['rooms'], name: string) => Number(rooms.get(name)?.id)

async function reportAfter(change: (tables: Tables) => Promise<unknown>) {
  const tables = openTables(folder)
  await change(tables)
  await tables.env.flushed
  const report = checkTables(tables)
  await tables.env.close()
  return report
}

test('a log whose rooms were trimmed is whole', async () => {
  const report = await reportAfter(async () => {})
  expect(report).toEqual({ rooms: 2, messages: 120, bytes: expect.any(Number), problems: [], more: 0 })
  expect(await checkLog(folder)).toEqual(report)
})

test('a message that is missing is named with its room', async () => {
  const { problems } = await reportAfter(async ({ messages, rooms }) => messages.remove([idOf(rooms, 'room:0'), 70]))
  expect(problems).toContain('room:0: message 70 is expected, and 71 is there')
})

test('a last message that is missing is seen', async () => {
  const { problems } = await reportAfter(async ({ messages, rooms }) => messages.remove([idOf(rooms, 'room:0'), 100]))
  expect(problems).toContain('room:0: it ends with message 99, and its last one is 100')
})

test('a message whose text is none is named', async () => {
  const { problems } = await reportAfter(async ({ messages, rooms }) =>
    messages.put([idOf(rooms, 'room:1'), 80], Buffer.from('{"at":1,"from":""}\n{"half":')),
  )
  expect(problems[0]).toMatch(/^room:1: message 80 cannot be read: .*JSON/)
})

test('messages of no room, and wrong counts, are seen', async () => {
  const { problems } = await reportAfter(async ({ messages, recentIds, meta }) => {
    await messages.put([99, 1], Buffer.from('{"at":1,"from":""}\n1'))
    await recentIds.remove([...recentIds.getKeys({ limit: 1 })][0])
    await meta.put('counts', { ...(meta.get('counts') as Counts), bytes: 7 })
  })
  expect(problems).toEqual([
    '121 messages are stored, of which 120 are of a room',
    '156 messageIds are remembered, and the log counts 200',
    expect.stringMatching(/^the log counts 7 bytes, and its rooms have \d+$/),
  ])
})

test('a room that nobody would look at again, and a wrong number of rooms, are seen', async () => {
  const { problems } = await reportAfter(async ({ due, meta }) => {
    await due.remove([...due.getKeys({ limit: 1 })][0])
    await meta.put('counts', { ...(meta.get('counts') as Counts), rooms: 7 })
  })
  expect(problems).toEqual([
    expect.stringMatching(/^room:[01]: nobody will look whether it is old$/),
    '1 rooms are to be looked at, and 2 say when',
    'the log counts 7 rooms, and has 2',
  ])
})

test('of many problems the first are told, the others counted', async () => {
  const { problems, more } = await reportAfter(async ({ env, messages, rooms }) => {
    const id = idOf(rooms, 'room:0')
    await env.batch(() => {
      for (let seq = 41; seq <= 100; seq++) messages.put([id, seq], Buffer.from('none'))
    })
  })
  expect(problems).toHaveLength(20)
  expect(more).toBeGreaterThan(30)
})

test('a file that was cut short is reported by name', async () => {
  const file = join(folder, 'data.mdb')
  truncateSync(file, 3 * 4_096)
  const { problems } = await checkLog(folder)
  expect(problems).toEqual([expect.stringContaining(`${file} is damaged: it has ${3 * 4_096} bytes`)])
})

test('pages that were overwritten are reported, though they may end the process that reads them', async () => {
  const file = join(folder, 'data.mdb')
  const { size } = statSync(file)
  const descriptor = openSync(file, 'r+')
  // Behind the two pages that a log begins with.
  for (let offset = 2 * 4_096; offset < size; offset += 4_096)
    writeSync(descriptor, Buffer.alloc(4_096, 0xa5), 0, 4_096, offset)
  closeSync(descriptor)
  const damaged = readFileSync(file)
  const { problems } = await checkLog(folder)
  expect(problems.length).toBeGreaterThan(0)
  expect(readFileSync(file).equals(damaged)).toBe(true)
})

test('a folder without a log is an error of another kind', async () => {
  await expect(checkLog(tmpdir())).rejects.toThrow('has no log')
})
