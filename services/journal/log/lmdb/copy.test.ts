import {
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realWorld } from '@keycast/service'
import { checkLog } from './check-apart.ts'
import { backUp, restore } from './copy.ts'
import { openTables } from './layout.ts'
import { openLmdbLog } from './lmdb.ts'
import { lookInto } from './look.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-copy-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const bytesMax = 2 ** 30

const publishOf = (number: number) => ({
  room: `room:${number % 3}`,
  messageId: `message-${String(number).padStart(8, '0')}`,
  from: 'ann',
  data: Buffer.from(JSON.stringify({ number })),
  retention: { messages: 1_000, ageMs: 1e9, bytes: 1e9 },
})

/** A log with messages, and a backup of it. */
async function setup() {
  const data = join(folder, 'log')
  const log = await openLmdbLog({ ...realWorld, folder: data, bytesMax })
  await log.append(Array.from({ length: 300 }, (_, number) => publishOf(number)))
  const file = join(folder, 'backup')
  await backUp(data, file)
  return { data, log, file }
}

async function messagesIn(data: string) {
  const log = await openLmdbLog({ ...realWorld, folder: data, bytesMax })
  const { head, messages } = await log.read('room:1', { after: 0, limit: 1_000, bytesMax })
  await log.close()
  return { head, texts: messages.map(message => message.data.toString()) }
}

test('a backup of a log in use is whole, readable by its owner alone, and has nothing beside it', async () => {
  const { log, file } = await setup()
  await log.close()
  expect(await checkLog(file)).toMatchObject({ rooms: 3, messages: 300, problems: [] })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder).sort()).toEqual(['backup', 'log'])
})

test('a backup while batches are committed is one state of the log, whichever', async () => {
  const { data, log } = await setup()
  let isDone = false
  const written = (async () => {
    for (let number = 300; !isDone; number += 10) {
      await log.append(Array.from({ length: 10 }, (_, index) => publishOf(number + index)))
    }
  })()
  for (const name of ['one', 'two', 'three']) {
    const file = join(folder, name)
    await backUp(data, file)
    expect(await checkLog(file)).toMatchObject({ rooms: 3, problems: [] })
  }
  isDone = true
  await written
  await log.close()
})

test('a restored log has the messages, under another epoch', async () => {
  const { data, log, file } = await setup()
  await log.append([publishOf(1_000)])
  await log.close()
  const before = await messagesIn(data)

  const restored = join(folder, 'restored')
  await restore(file, restored)
  const after = await messagesIn(restored)
  expect(after.texts).toEqual(before.texts.slice(0, 100))
  expect(after.head.epoch).not.toBe(before.head.epoch)
  expect((await messagesIn(restored)).head.epoch).toBe(after.head.epoch)
})

test('what root does to the log of a journal that is not root leaves the journal its files', async () => {
  const { log, file } = await setup()
  await log.close()
  const home = join(folder, 'home')
  mkdirSync(home)
  // Only root can give a folder away; all else holds for every user.
  if (process.getuid?.() === 0) chownSync(home, 1_000, 1_000)
  const data = join(home, 'log')
  await restore(file, data)
  const look = await lookInto(data)
  const { uid } = statSync(home)
  expect(statSync(data).uid).toBe(uid)
  const names = readdirSync(data)
  expect(names.sort()).toEqual(['data.mdb', expect.stringMatching(/^lock.-/), expect.stringMatching(/^lock.\d/)])
  expect(names.map(name => statSync(join(data, name)).uid)).toEqual([uid, uid, uid])
  await look.release()
  expect(readdirSync(data)).toEqual(['data.mdb'])
})

test('a file that is given the inode of the log that was removed passes for another history all the same', async () => {
  const { data, log, file } = await setup()
  const { epoch } = await log.head('room:1')
  await log.close()
  const target = join(folder, 'target')
  await restore(file, target)
  const { ino } = statSync(join(target, 'data.mdb'))
  // Gives the old log the inode of the new one, as a file system that reuses the inode of a removed file would.
  const { env, meta } = openTables(data)
  await meta.put('inode', ino)
  await env.flushed
  await env.close()
  const again = join(folder, 'again')
  await backUp(data, again)
  copyFileSync(again, join(target, 'data.mdb'))
  expect(statSync(join(target, 'data.mdb')).ino).toBe(ino)
  expect((await messagesIn(target)).head.epoch).not.toBe(epoch)
})

test('a backup never takes the place of a file', async () => {
  const { data, log, file } = await setup()
  const before = readFileSync(file)
  await expect(backUp(data, file)).rejects.toThrow(`${file} is there already`)
  expect(readFileSync(file).equals(before)).toBe(true)
  const nowhere = join(data, 'nowhere')
  await expect(backUp(data, join(nowhere, 'file'))).rejects.toThrow(`${nowhere} is not there: make the folder first`)
  await log.close()
})

test('a folder that a journal has is not restored into, nor one that has something in it', async () => {
  const { data, log, file } = await setup()
  await expect(restore(file, data)).rejects.toThrow(`${data} is in use by another journal`)
  await log.close()
  const before = readFileSync(join(data, 'data.mdb'))
  await expect(restore(file, data)).rejects.toThrow(`${data} is not empty: it has data.mdb. Move the folder away first`)
  expect(readFileSync(join(data, 'data.mdb')).equals(before)).toBe(true)
})

test('what an ended journal leaves beside its log is no obstacle once the log was moved away', async () => {
  const { data, log, file } = await setup()
  await log.close()
  rmSync(join(data, 'data.mdb'))
  expect(readdirSync(data)).toContain('lock.mdb')
  await restore(file, data)
  expect((await messagesIn(data)).texts).toHaveLength(100)
})

test.each([
  ['no folder', () => {}, /nothing is not there/],
  ['no log in it', (path: string) => void writeFileSync(path, ''), /damaged/],
])('a source with %s is refused by name', async (_, make, problem) => {
  const path = join(folder, 'nothing')
  make(path)
  await expect(restore(path, join(folder, 'target'))).rejects.toThrow(problem)
  expect(readdirSync(folder)).not.toContain('target')
})

test('a log that was cut short is not backed up', async () => {
  const { data, log } = await setup()
  await log.close()
  truncateSync(join(data, 'data.mdb'), 4 * 4_096)
  await expect(backUp(data, join(folder, 'other'))).rejects.toThrow(`${join(data, 'data.mdb')} is damaged`)
  expect(readdirSync(folder).sort()).toEqual(['backup', 'log'])
})
