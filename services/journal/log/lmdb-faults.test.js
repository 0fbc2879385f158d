// Writes that fail, made with a library that is compiled here and loaded before the process that keeps the log.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openLmdbLog } from './lmdb.js'

const fixture = fileURLToPath(new URL('lmdb-faults.fixture.js', import.meta.url))
const source = fileURLToPath(new URL('disk-faults.fixture.c', import.meta.url))
const work = mkdtempSync(join(tmpdir(), 'keycast-faults-'))
const library = join(work, 'disk-faults.so')
beforeAll(() => void execFileSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl']))
afterAll(() => rmSync(work, { recursive: true }))

const EIO = 5
const ENOSPC = 28

test.each([
  // Nobody can know what a disk has that failed once.
  ['flush fails', `fdatasync ${EIO}`, 'LogBroken'],
  ['pages cannot be written', `pages ${EIO}`, 'LogBroken'],
  // What the last write of a commit says may be on the disk all the same.
  ['last page cannot be written', `meta ${EIO}`, 'LogBroken'],
  ['last page has no room', `meta ${ENOSPC}`, 'LogBroken'],
  // A file system that finds room only when it flushes.
  ['flush has no room', `fdatasync ${ENOSPC}`, 'log_full'],
  ['pages have no room', `pages ${ENOSPC}`, 'log_full'],
])('of a batch whose %s nothing is seen, and it is told for what it is', async (_, fault, outcome) => {
  const folder = mkdtempSync(join(work, 'log-'))
  const env = { ...process.env, LD_PRELOAD: library, DISK_FAULT: join(folder, 'fault') }
  /** @type {import('node:child_process').StdioOptions} */
  const stdio = ['ignore', 'pipe', 'ignore']
  const said = JSON.parse(execFileSync(process.execPath, [fixture, folder, fault], { encoding: 'utf8', env, stdio }))
  expect(said.outcome).toBe(outcome)
  if (said.seen !== 'nothing') expect(said.seen).toEqual([1, 0])

  // The next process gives the numbers again, to others.
  const log = await openLmdbLog({ folder, bytesMax: 2 ** 30 })
  expect(await log.head('room:1')).toMatchObject({ seq: 1 })
  await log.close()
})
