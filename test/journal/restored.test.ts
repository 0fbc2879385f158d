// A journal whose disk was replaced by an older state of itself, as a snapshot of a volume is restored: the file has the
// same inode, in the same boot. Its numbers come again; nobody takes them for those of before.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publishTo } from '@keycast/backbone'
import { isProblem } from '@keycast/protocol'
import { createChecker } from '../support/checker.ts'
import { eventually } from '../support/deadline.ts'
import { startJournal } from '../support/journal.ts'
import { startRooms } from '../support/journal-links.ts'

const DEADLINE = { deadlineMs: 20_000 }

test('gateways that know of later messages make a restored journal begin another epoch, for all rooms', async () => {
  const journal = await startJournal()
  const checker = createChecker()
  const [watcher, publisher] = [
    await startRooms('watcher', journal.node, checker),
    await startRooms('publisher', journal.node, checker),
  ]
  /** Until it is kept: a journal that is to take another epoch is not used meanwhile. */
  async function publish(room: string, text: string) {
    const messageId = `message-${text}`.replaceAll(' ', '-').padEnd(16, '-')
    for (;;) {
      await eventually(() => publisher.isAvailable(room), 'the journal answering')
      const result = await publishTo(publisher, { room, messageId, from: '', data: Buffer.from('1') }, DEADLINE)
      if (!isProblem(result)) return result
    }
  }
  watcher.watch('room:1')
  await eventually(() => watcher.positionOf('room:1'), 'the room having a position')
  for (const room of ['room:1', 'room:2']) for (let n = 0; n < 5; n++) await publish(room, `before ${n}`)
  const { epoch } = await publish('room:1', 'last')

  const file = join(journal.folder, 'data.mdb')
  async function end() {
    journal.process().signal('SIGKILL')
    await journal.process().exited
  }
  await end()
  const snapshot = readFileSync(file)
  await journal.restart()
  // Nobody watches this room. The gateway that published knows that its message was kept.
  expect(await publish('room:2', 'lost')).toMatchObject({ epoch, seq: 6 })
  await end()
  writeFileSync(file, snapshot, { flag: 'r+' })
  await journal.restart()

  await eventually(() => watcher.positionOf('room:1')?.epoch !== epoch, 'the room having another epoch')
  const again = await publish('room:2', 'another')
  expect(again).toMatchObject({ seq: 6, epoch: watcher.positionOf('room:1')?.epoch })
  expect(journal.process().log()).toContainEqual(
    expect.objectContaining({ level: 'error', at: 11, before: 12, msg: expect.stringContaining('in an older state') }),
  )
  // Once is enough, and the next restart is one of many.
  const { epoch: renewed } = again
  await end()
  await journal.restart()
  expect(await publish('room:2', 'next')).toMatchObject({ epoch: renewed, seq: 7 })
  expect(checker.problems()).toEqual([])
})
