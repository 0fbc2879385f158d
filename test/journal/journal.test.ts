// The journal as a process, driven over its sockets as gateways do: what was acknowledged is kept, once and in order,
// whatever happens to the process.
import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type History, publishTo } from '@keycast/backbone'
import { isProblem } from '@keycast/protocol'
import { createChecker } from '../support/checker.ts'
import { newFolder } from '../support/cleanup.ts'
import { eventually, pause } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startJournal } from '../support/journal.ts'
import { startRooms } from '../support/journal-links.ts'
import { expectWhole, startRun } from '../support/journal-run.ts'
import { writeConfig } from '../support/keycast-yaml.ts'

test('killed again and again under 2,000 publishes a second, it has every acknowledged message once', async () => {
  const run = await startRun(2_000)
  const { journal, loads } = run
  for (let round = 0; round < 10; round++) {
    const before = loads[0].acknowledged()
    await eventually(() => loads[0].acknowledged() > before + 500, 'publishes being acknowledged')
    journal.process().signal('SIGKILL')
    await journal.process().exited
    await journal.restart()
  }
  const { sent } = await expectWhole(run)
  const errors = JSON.stringify(loads.map(load => load.errors))
  show(`10 kills under 2,000 publishes a second: ${sent} sent and kept once, errors on the way ${errors}`)
})

test('stopped in order under load, it has every message, and hardly anybody notices', async () => {
  const run = await startRun(1_000)
  const { journal, loads } = run
  await eventually(() => loads[0].acknowledged() > 500, 'publishes being acknowledged')
  journal.process().signal('SIGTERM')
  expect(await journal.process().exited).toEqual({ code: 0, signal: null })
  await journal.restart()
  await expectWhole(run)
})

// From here on beside each other: each has a journal of its own, and waits for the most part.

test.concurrent('stopped for 10 s, publishers are told within their deadline, and everything heals', async () => {
  const deadlineMs = 2_000
  const run = await startRun(500, { deadlineMs })
  const { journal, loads } = run
  await eventually(() => loads[0].acknowledged() > 200, 'publishes being acknowledged')
  journal.process().signal('SIGSTOP')
  await pause(10_000)
  expect(loads[0].errors.publish_unknown).toBeGreaterThan(0)
  journal.process().signal('SIGCONT')
  const before = loads[0].acknowledged()
  await eventually(() => loads[0].acknowledged() > before, 'publishes being acknowledged again')
  await expectWhole(run)
  for (const load of loads) expect(load.longestMs()).toBeLessThan(deadlineMs + 2_000)
})

test.concurrent.each([2_500, 8_000])(
  'publishes that were given up while it was stopped (%i ms) are not kept when it goes on',
  async ms => {
    const journal = await startJournal()
    const gateway = await startRooms('gateway', journal.node, createChecker())
    const publish = (text: string, deadlineMs = 10_000) =>
      publishTo(
        gateway,
        { room: 'room:1', messageId: undefined, from: 'ann', data: Buffer.from(`"${text}"`) },
        { deadlineMs },
      )
    expect(await publish('before')).toMatchObject({ seq: 1 })

    journal.process().signal('SIGSTOP')
    const stoppedAt = performance.now()
    const given = await Promise.all(Array.from({ length: 100 }, () => publish('given up', 500)))
    expect(new Set(given.map(end => isProblem(end) && end.code))).toEqual(new Set(['publish_unknown']))
    await pause(ms - (performance.now() - stoppedAt))
    journal.process().signal('SIGCONT')

    await eventually(async () => !isProblem(await publish('after')), 'a publish being kept')
    const { messages } = (await gateway.history('room:1', { after: 0, limit: 500 }, { deadlineMs: 10_000 })) as History
    expect(messages.map(({ data }) => JSON.parse(String(data)))).toEqual(['before', 'after'])
    const late = /^keycast_journal_late_publishes_total (\d+)$/m
    show(`stopped for ${ms} ms: ${late.exec(String((await journal.internal('/metrics')).body))?.[1]} of 100 came late`)
  },
)

test.concurrent('a shorter history than the log was used with waits, so that an old file trims nothing; told to, it holds', async () => {
  const roomsOf = (messages: number) => ({
    KEYCAST_CONFIG: writeConfig({ room: { source: 'journal', history: { messages } } }),
  })
  const journal = await startJournal({ env: roomsOf(1_000) })
  const gateway = await startRooms('gateway', journal.node, createChecker())
  const publish = { room: 'room:1', messageId: undefined, from: 'ann', data: Buffer.from('1') }
  for (let n = 0; n < 20; n++) await publishTo(gateway, publish, { deadlineMs: 10_000 })

  async function restart(env: Record<string, string>) {
    journal.process().signal('SIGTERM')
    await journal.process().exited
    await journal.restart(env)
    const shorter = /^keycast_journal_shorter_histories (\d)$/m
    return shorter.exec(String((await journal.internal('/metrics')).body))?.[1]
  }
  const oldest = async () => JSON.parse(String((await journal.internal('/v1/rooms/room:1')).body)).oldest

  expect(await restart(roomsOf(5))).toBe('1')
  await eventually(() => gateway.isAvailable('room:1'), 'the journal answering')
  expect(await publishTo(gateway, publish, { deadlineMs: 10_000 })).toMatchObject({ seq: 21 })
  expect(await oldest()).toBe(1)
  expect(journal.process().log()).toContainEqual(
    expect.objectContaining({ msg: expect.stringContaining('keycast.yaml keeps less'), namespace: 'room' }),
  )
  expect(await restart(roomsOf(1_000))).toBe('0')
  expect(await restart({ ...roomsOf(5), JOURNAL_SHORTEN_MS: '0' })).toBe('0')
  await eventually(async () => (await oldest()) === 17, 'the room being trimmed')
})

test.concurrent('a second journal on the folder is refused, and the first goes on', async () => {
  const journal = await startJournal()
  await expect(startJournal({ folder: journal.folder })).rejects.toThrow(
    `${journal.folder} is in use by another journal`,
  )
  expect((await journal.internal('/health/ready')).status).toBe(200)
})

test.concurrent('a damaged file is refused by name with exit code 2, and left as it is', async () => {
  const folder = newFolder()
  const first = await startJournal({ folder })
  const backbone = await startRooms('one', first.node, createChecker())
  const publish = { room: 'room:1', messageId: undefined, from: '', data: Buffer.from('1') }
  expect(await publishTo(backbone, publish, { deadlineMs: 10_000 })).toMatchObject({ seq: 1 })
  first.process().signal('SIGTERM')
  await first.process().exited

  const file = join(folder, 'data.mdb')
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.alloc(8_192, 'x'), 0, 8_192, 0)
  closeSync(descriptor)
  const damaged = readFileSync(file)
  await expect(startJournal({ folder })).rejects.toThrow(/ended with 2 before it listened:[\s\S]*data\.mdb is damaged/)
  expect(readFileSync(file).equals(damaged)).toBe(true)
  expect(statSync(file).size).toBe(damaged.length)
})

test.concurrent('with a log in memory a restart is another history, and everybody is told', async () => {
  const journal = await startJournal({ env: { JOURNAL_LOG: 'memory' } })
  const gaps: any[] = []
  const checker = createChecker()
  const backbone = await startRooms('one', journal.node, {
    ...checker,
    saw: (_, __, sight) => void (sight.type === 'gap' && gaps.push(sight)),
  })
  backbone.watch('room:1')
  const publish = { room: 'room:1', messageId: undefined, from: '', data: Buffer.from('1') }
  const first = (await publishTo(backbone, publish, { deadlineMs: 10_000 })) as any
  await eventually(() => backbone.positionOf('room:1')?.seq === 1, 'the message')
  await journal.process().kill()
  await journal.restart()
  await eventually(() => gaps.length > 0, 'the gap')
  expect(gaps[0]).toMatchObject({ seq: 0, epoch: expect.not.stringMatching(first.epoch) })
})
