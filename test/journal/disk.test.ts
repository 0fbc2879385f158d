// A disk that fails under a journal: it ends before anybody is told anything, and the next one goes on with what is known.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createChecker } from '../support/checker.ts'
import { newFolder } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { startJournal } from '../support/journal.ts'
import { notOnceIn, readHistories, startLoad, startRooms } from '../support/journal-links.ts'

const source = fileURLToPath(new URL('../../services/journal/log/lmdb/disk-faults.fixture.c', import.meta.url))

test('after a write that failed a journal ends, and says why; no publish is lost or seen twice', async () => {
  const work = newFolder()
  const library = join(work, 'disk-faults.so')
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'])
  const fault = join(work, 'fault')
  const journal = await startJournal({ env: { LD_PRELOAD: library, DISK_FAULT: fault } })
  const checker = createChecker()
  const backbone = await startRooms('one', journal.node, checker)
  const rooms = ['room:1', 'room:2']
  for (const room of rooms) backbone.watch(room)
  await eventually(() => rooms.every(room => backbone.positionOf(room)), 'the rooms having a position')
  const load = startLoad({ name: 'one', backbone, checker, rooms, perSecond: 1_000 })

  for (const call of ['fdatasync', 'meta']) {
    const before = load.acknowledged()
    await eventually(() => load.acknowledged() > before + 500, 'publishes being kept')
    const process = journal.process()
    writeFileSync(fault, `${call} 5`)
    expect(await process.exited).toEqual({ code: 1, signal: null })
    const fatal = process.log().filter(({ level }) => level === 'fatal')
    expect(fatal.map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/could not be written .*nothing of the last batch/),
    ])
    await journal.restart()
  }

  const sent = await load.stop()
  expect(load.errors.log_full).toBeUndefined()
  const ids = await readHistories(backbone, checker, rooms)
  expect(notOnceIn(ids, sent)).toEqual([])
  await eventually(
    () => rooms.reduce((sum, room) => sum + (backbone.positionOf(room)?.seq ?? 0), 0) === ids.length,
    'the rooms being seen to their ends',
  )
  expect(checker.problems().slice(0, 10)).toEqual([])
})
