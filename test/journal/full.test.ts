// A disk that is full, under load: publishers hear it, nothing is lost, and it heals by itself when there is room.
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createChecker } from '../support/checker.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { startJournal } from '../support/journal.ts'
import { notOnceIn, readHistories, startLoad, startRooms } from '../support/journal-links.ts'

test('on a full disk publishers hear log_full, histories are read on, and it heals when there is room', async () => {
  const folder = newFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', folder])
  atEnd(() => execFileSync('umount', ['--lazy', folder]))
  const ballast = join(folder, 'ballast')
  writeFileSync(ballast, Buffer.alloc(22 * 2 ** 20))
  const journal = await startJournal({ folder: join(folder, 'log') })
  const checker = createChecker()
  const backbone = await startRooms('one', journal.node, checker)
  backbone.watch('room:1')
  await eventually(() => backbone.positionOf('room:1'), 'the room having a position')
  const load = startLoad({ name: 'one', backbone, checker, rooms: ['room:1'], perSecond: 1_000 })
  await eventually(() => load.errors.log_full > 0, 'the disk being full')
  expect(load.acknowledged()).toBeGreaterThan(0)
  expect(await backbone.history('room:1', { after: 0, limit: 1 }, { deadlineMs: 10_000 })).toMatchObject({ oldest: 1 })
  expect((await journal.internal('/health/ready')).status).toBe(200)

  const before = load.acknowledged()
  rmSync(ballast)
  await eventually(() => load.acknowledged() > before + 500, 'publishes being kept again')
  const sent = await load.stop()
  const ids = await readHistories(backbone, checker, ['room:1'])
  expect(notOnceIn(ids, sent)).toEqual([])
  await eventually(() => backbone.positionOf('room:1')?.seq === ids.length, 'the room being seen to its end')
  expect(checker.problems().slice(0, 10)).toEqual([])
})
