// Writes that fail, made with a library that is compiled here and loaded before the process that keeps the log.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { realWorld } from '@keycast/service'
import { openLmdbLog } from './lmdb.ts'

const fixture = fileURLToPath(new URL('faults.fixture.ts', import.meta.url))
const source = fileURLToPath(new URL('disk-faults.fixture.c', import.meta.url))
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
