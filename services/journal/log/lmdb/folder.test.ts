import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realWorld } from '@keycast/service'
import { isLock, lockFolder } from './folder.ts'

const folder = mkdtempSync(join(tmpdir(), 'keycast-lock-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A process that came at this time, and counts how often it asked again. */
function worldAt(ms: number) {
  const asked = { again: 0 }
  const after = (_: number, run: () => void) => {
    asked.again++
    return realWorld.after(1, run)
  }
  return { asked, world: { ...realWorld, wallNow: () => ms, after } }
}

test('whoever comes while the folder is taken is told at once, also one whose clock is behind', async () => {
  const holder = await lockFolder(folder, worldAt(2_000).world)
  for (const ms of [1_000, 3_000]) {
    const { asked, world } = worldAt(ms)
    await expect(lockFolder(folder, world)).rejects.toThrow('is in use by another journal')
    expect(asked.again).toBe(0)
  }
  await holder.release()
  expect(readdirSync(folder).filter(isLock)).toEqual([])
  const next = await lockFolder(folder, worldAt(1_500).world)
  await next.release()
})
