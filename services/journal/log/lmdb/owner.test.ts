// Several processes that want one log: the lock of its folder may break, and still one of them writes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { linkSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { realWorld } from '@keycast/service'
import { isLock } from './folder.ts'
import { openLmdbLog } from './lmdb.ts'

const fixture = fileURLToPath(new URL('owner.fixture.ts', import.meta.url))

const work = mkdtempSync(join(tmpdir(), 'keycast-owner-'))
const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(work, { recursive: true })
})

/** A process that publishes into logs when told to. */
function startJournal() {
  const child = fork(fixture, { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  children.push(child)
  return {
    /** @returns `isPublishing`: false if it was refused before */
    publishInto(folder: string): {
      isPublishing: Promise<boolean>
      result: Promise<{ refused: string; acknowledged: [number, string][] }>
    } {
      child.send({ folder })
      const first = once(child, 'message').then(([said]) => said)
      return {
        isPublishing: first.then(said => said.isPublishing === true),
        result: first.then(said => (said.isPublishing ? once(child, 'message').then(([last]) => last) : said)),
      }
    },
    stop: () => child.send({ stop: true }),
  }
}

/** As a journal leaves it that was killed. */
async function leaveLock(folder: string) {
  const server = createServer().listen(join(folder, 'other'))
  await once(server, 'listening')
  linkSync(join(folder, 'other'), join(folder, 'lock.socket'))
  server.close()
  await once(server, 'close')
}

/** Whether the log has what was acknowledged, each under the number that was told. */
async function expectKept(folder: string, acknowledged: [number, string][]) {
  const log = await openLmdbLog({ ...realWorld, folder, bytesMax: 2 ** 30 })
  const { messages } = await log.read('room:1', { after: 0, limit: 1e6, bytesMax: 1e9 })
  await log.close()
  const kept = new Map(messages.map(({ seq, data }) => [seq, JSON.parse(data.toString())]))
  expect(acknowledged.filter(([seq, text]) => kept.get(seq) !== text)).toEqual([])
}

test('of processes that start at the same moment one writes, and what each acknowledged is kept', async () => {
  const journals = Array.from({ length: 3 }, startJournal)
  for (let round = 0; round < 15; round++) {
    const folder = mkdtempSync(join(work, 'log-'))
    await leaveLock(folder)
    const runs = journals.map(journal => journal.publishInto(folder))
    const isPublishing = await Promise.all(runs.map(run => run.isPublishing))
    expect(isPublishing.filter(Boolean)).toEqual([true])
    for (const journal of journals) journal.stop()
    const results = await Promise.all(runs.map(run => run.result))
    const names = results.map(({ refused }) => refused).sort()
    expect(names.filter(name => !['', 'LogInUse'].includes(name))).toEqual([])
    await expectKept(
      folder,
      results.flatMap(({ acknowledged }) => acknowledged),
    )
  }
})

test('a journal whose lock was removed ends at its next write, once another one has the log', async () => {
  const folder = mkdtempSync(join(work, 'log-'))
  const [one, other] = [startJournal(), startJournal()]
  const first = one.publishInto(folder)
  expect(await first.isPublishing).toBe(true)
  for (const name of readdirSync(folder).filter(isLock)) rmSync(join(folder, name))
  const second = other.publishInto(folder)
  expect(await second.isPublishing).toBe(true)
  const before = await first.result
  expect(before.refused).toBe('LogBroken')
  other.stop()
  const after = await second.result
  expect(after.refused).toBe('')
  await expectKept(folder, [...before.acknowledged, ...after.acknowledged])
})
