// A disk that is full, by a file system of 3 MB: only a process that may mount one can make it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { openLmdbLog } from './lmdb.js'

// The lmdb package prints the error of each failed commit, from a callback of its own that may come late.
let printed = 0
console.error = () => void printed++

const folder = mkdtempSync(join(tmpdir(), 'keycast-full-'))
beforeAll(() => void execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]))
afterAll(() => {
  execFileSync('umount', [folder])
  rmdirSync(folder)
})

test('a full disk keeps nothing of a batch, leaves no rejection behind, and heals when there is room', async () => {
  /** @type {unknown[]} */
  const unhandled = []
  const note = (/** @type {unknown} */ reason) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  const ballast = join(folder, 'ballast')
  writeFileSync(ballast, Buffer.alloc(2_000_000))
  const log = await openLmdbLog({ folder: join(folder, 'log'), bytesMax: 2 ** 30 })
  const batch = Array.from({ length: 4 }, () => ({
    room: 'room:1',
    messageId: undefined,
    from: 'ann',
    data: Buffer.alloc(40_000, 'x'),
    retention: { messages: 1e6, ageMs: 1e12, bytes: 1e12 },
  }))
  let kept = 0
  let outcomes = await log.append(batch)
  for (; !outcomes[0].error; outcomes = await log.append(batch)) kept += batch.length
  expect(outcomes).toEqual(batch.map(() => ({ error: 'log_full' })))
  const { bytes } = log.stats()
  expect(await log.append(batch)).toEqual(outcomes)
  expect(log.stats().bytes).toBe(bytes)
  expect(await log.head('room:1')).toMatchObject({ seq: kept })

  rmSync(ballast)
  expect(await log.append(batch)).toMatchObject(
    batch.map((_, index) => ({ position: { seq: kept + index + 1 }, duplicate: false })),
  )
  const { messages } = await log.read('room:1', { after: 0, limit: 1_000, bytesMax: 1e9 })
  expect(messages.map(({ seq }) => seq)).toEqual(Array.from({ length: kept + batch.length }, (_, index) => index + 1))
  await log.close()
  // Two commits failed: once their errors are printed, lmdb has nothing more to say.
  while (printed < 2) await setImmediate()
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})
