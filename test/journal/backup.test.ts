// A journal's log is backed up while it is published into, and a journal that starts with the backup says to everybody that
// its history is another one.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createChecker } from '../support/checker.ts'
import { newFolder } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { startJournal } from '../support/journal.ts'
import { notOnceIn, readHistories, startLoad, startRooms } from '../support/journal-links.ts'
import { run } from '../support/run.ts'

const script = fileURLToPath(new URL('../../cli/keycast.js', import.meta.url))
const rooms = ['room:1', 'room:2', 'room:3']

test('a backup taken under load has what was acknowledged before it, and restored it is another history', async () => {
  const folder = newFolder()
  const journal = await startJournal({ folder })
  const checker = createChecker()
  const gaps: { room: string; reason: string; epoch: string }[] = []
  const backbone = await startRooms('one', journal.node, {
    ...checker,
    saw(name, room, sight) {
      if (sight.type === 'gap') gaps.push({ room, ...(sight as any) })
      else checker.saw(name, room, sight)
    },
  })
  for (const room of rooms) backbone.watch(room)
  await eventually(() => rooms.every(room => backbone.positionOf(room)), 'every room having a position')
  const load = startLoad({ name: 'one', backbone, checker, rooms, perSecond: 500 })
  await eventually(() => load.acknowledged() > 500, 'publishes being acknowledged')

  const file = join(newFolder(), 'backup')
  const acknowledged = load.acknowledged()
  const { stdout } = await run(process.execPath, [script, 'journal', 'backup', file, '--data', folder])
  const [, kept] = /whole, 3 rooms, (\d+) messages/.exec(stdout) as RegExpExecArray
  expect(Number(kept)).toBeGreaterThanOrEqual(acknowledged)

  // The journal did not notice.
  const before = load.acknowledged()
  await eventually(() => load.acknowledged() > before + 200, 'publishes being acknowledged on')
  const sent = await load.stop()
  expect(notOnceIn(await readHistories(backbone, checker, rooms), sent)).toEqual([])
  expect(checker.problems()).toEqual([])
  expect(gaps).toEqual([])
  await expect(run(process.execPath, [script, 'journal', 'restore', file, '--data', folder])).rejects.toMatchObject({
    code: 2,
  })

  journal.process().signal('SIGTERM')
  await journal.process().exited
  const epoch = backbone.positionOf('room:1')?.epoch
  const restored = join(newFolder(), 'log')
  await run(process.execPath, [script, 'journal', 'restore', file, '--data', restored])
  await journal.restart({ JOURNAL_DATA: restored })
  await eventually(() => gaps.length === rooms.length, 'every room being told of the gap')
  for (const gap of gaps) expect(gap.epoch).not.toBe(epoch)
  const { messages } = (await backbone.history('room:1', { after: 0, limit: 500 }, { deadlineMs: 10_000 })) as any
  expect(messages.length).toBeGreaterThan(100)
})
