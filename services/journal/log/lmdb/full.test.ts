// A full disk, made with a file system of 3 MB: only a process that may mount one can run these tests.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const fixture = fileURLToPath(new URL('full.fixture.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'keycast-full-'))
beforeAll(() => void execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]))
afterAll(() => {
  execFileSync('umount', [folder])
  rmdirSync(folder)
})

test('a full disk keeps nothing of a batch, leaves no rejection behind, can be opened and read, and heals when there is room', () => {
  const seen = JSON.parse(
    execFileSync(process.execPath, [fixture, folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  expect(seen.kept).toBeGreaterThan(0)
  const full = Array(4).fill({ error: 'log_full' })
  expect([seen.full, seen.fullAgain]).toEqual([full, full])
  expect(seen.bytesAfter).toBe(seen.bytesBefore)
  expect(seen.chargedBefore.users).toBeGreaterThan(seen.kept * 40_000)
  expect(seen.chargedAfter).toEqual(seen.chargedBefore)
  expect(seen.seq).toBe(seen.kept)
  expect(seen.reopened).toEqual({ read: seen.kept, full, expired: [] })

  const next = [1, 2, 3, 4].map(more => ({ position: { seq: seen.kept + more }, duplicate: false }))
  expect(seen.healed).toMatchObject(next)
  expect(seen.seqs).toEqual(Array.from({ length: seen.kept + 4 }, (_, index) => index + 1))
  // Messages past their age go in parts that there is room for.
  expect([seen.smallOnes, seen.oldest]).toEqual([600, 601])
  expect(seen.unhandled).toEqual([])
})
