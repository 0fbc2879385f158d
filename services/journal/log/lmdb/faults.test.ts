// Writes that fail, made with a library that is compiled here and loaded before the process that keeps the log.
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { realWorld } from '@keycast/service'
import { eventually } from '../../../../test/support/deadline.ts'
import { openLmdbLog } from './lmdb.ts'

const fixture = fileURLToPath(new URL('faults.fixture.ts', import.meta.url))
const source = fileURLToPath(new URL('disk-faults.fixture.c', import.meta.url))
const keycast = fileURLToPath(new URL('../../../../cli/keycast.js', import.meta.url))
const retention = { messages: 1e6, ageMs: 1e12, bytes: 1e12 }
const work = mkdtempSync(join(tmpdir(), 'keycast-faults-'))
const library = join(work, 'disk-faults.so')
beforeAll(() => void execFileSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl']))
afterAll(() => rmSync(work, { recursive: true }))

test.each([
  ['flush fails', 'fdatasync EIO'],
  ['pages cannot be written', 'pages EIO'],
  // The last write of a commit may be on the disk all the same.
  ['last page cannot be written', 'meta EIO'],
  // A file system that finds only when it flushes that it has no room.
  ['flush has no room', 'fdatasync ENOSPC'],
])('of a batch whose %s nothing is told or seen, and nothing more is written', async (_, fault) => {
  const folder = mkdtempSync(join(work, 'log-'))
  const env = { ...process.env, LD_PRELOAD: library, DISK_FAULT: join(folder, 'fault') }
  const text = fault.replace(/E\w+/, name => String(constants.errno[name as 'EIO' | 'ENOSPC']))
  // It may end by SIGABRT: see commits.ts.
  const { stdout } = spawnSync(process.execPath, [fixture, folder, text], { encoding: 'utf8', env })
  expect(stdout).toBe('next: LogBroken\n')

  // The next process gives the numbers again, to others.
  const log = await openLmdbLog({ ...realWorld, folder, bytesMax: 2 ** 30 })
  expect(await log.head('room:1')).toMatchObject({ seq: 1 })
  expect(await log.head('room:2')).toMatchObject({ seq: 0 })
  await log.close()
})

test.each([1, 2, 3])(
  'who stands still for %i batches while it opens the log to look into it changes nothing',
  async count => {
    const folder = mkdtempSync(join(work, 'log-'))
    const log = await openLmdbLog({ ...realWorld, folder, bytesMax: 2 ** 30 })
    const kept: number[] = []
    const append = async () => {
      const data = Buffer.from(String(kept.length))
      const [outcome] = await log.append([{ room: 'room:1', messageId: undefined, from: '', data, retention }])
      expect(outcome).toMatchObject({ position: { seq: kept.length + 1 } })
      kept.push(kept.length)
    }
    await append()
    const stall = join(folder, 'stall')
    writeFileSync(stall, 'look')
    const env = { ...process.env, LD_PRELOAD: library, DISK_STALL: stall }
    const checked = promisify(execFile)(process.execPath, [keycast, 'journal', 'check', '--data', folder], { env })
    await eventually(() => existsSync(`${stall}.reached`), 'the start of the log being read')
    for (let batch = 0; batch < count; batch++) await append()
    rmSync(stall)
    expect((await checked).stdout).toContain('whole')

    for (let batch = 0; batch < 3; batch++) await append()
    const { messages } = await log.read('room:1', { after: 0, limit: 100, bytesMax: 1e6 })
    expect(messages.map(({ data }) => Number(data))).toEqual(kept)
    await log.close()
  },
)

test('a journal that stands still as it takes its folder is told that another one has it', async () => {
  const folder = mkdtempSync(join(work, 'log-'))
  const stall = join(work, 'stall')
  writeFileSync(stall, 'listen')
  const env = { ...process.env, LD_PRELOAD: library, DISK_STALL: stall, DISK_FAULT: join(work, 'fault') }
  const started = promisify(execFile)(process.execPath, [fixture, folder, ''], { env })
  await eventually(() => existsSync(`${stall}.reached`), 'the socket that has its name')
  const log = await openLmdbLog({ ...realWorld, folder, bytesMax: 2 ** 30 })
  rmSync(stall)
  await expect(started).rejects.toThrow('is in use by another journal')
  await log.close()
})
