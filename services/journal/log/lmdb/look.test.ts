// A log is looked into by other processes, while a journal has it and while none has.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { realWorld } from '@keycast/service'
import { LogInUse } from '../log.ts'
import { openLmdbLog } from './lmdb.ts'
import { lookInto } from './look.ts'

const fixture = fileURLToPath(new URL('look.fixture.ts', import.meta.url))
const retention = { messages: 100, ageMs: 1e9, bytes: 1e9 }

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-look-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const open = () => openLmdbLog({ ...realWorld, folder, bytesMax: 2 ** 30 })

async function fill(log: Awaited<ReturnType<typeof open>>, batches: number) {
  const data = Buffer.from(JSON.stringify('x'.repeat(1_000)))
  const publish = { room: 'room:1', messageId: undefined, from: '', data, retention }
  for (let batch = 0; batch < batches; batch++) await log.append(Array(50).fill(publish))
}

/** A process that looks into the log. */
function look() {
  const child = spawn(process.execPath, [fixture, folder], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    child,
    says: async () => (await lines.next()).value,
    goOn: () => void child.stdin.write('\n'),
  }
}

test('what is looked at stays as it is, however much a journal writes meanwhile', async () => {
  const log = await open()
  await fill(log, 2)
  const { child, says, goOn } = look()
  expect(await says()).toBe('100')
  await fill(log, 200)
  goOn()
  expect(await says()).toBe('100')
  await once(child, 'close')
  await log.close()
})

test('a journal that ends is not held up, and who looks is told: another might write what is read', async () => {
  const log = await open()
  await fill(log, 2)
  const { child, says, goOn } = look()
  await says()
  await log.close()
  goOn()
  expect(await says()).toBe('100')
  expect(await says()).toContain('ended meanwhile')
  await once(child, 'close')
})

test('a journal that another looks into goes on once the other was killed', async () => {
  const log = await open()
  await fill(log, 2)
  const { child, says } = look()
  await says()
  child.kill('SIGKILL')
  await once(child, 'close')
  await fill(log, 10)
  expect(await log.head('room:1')).toMatchObject({ seq: 600 })
  await log.close()
})

test('of a log that no journal has none starts until it was looked into', async () => {
  await (await open()).close()
  const first = await lookInto(folder)
  const second = await lookInto(folder)
  await expect(open()).rejects.toThrow(LogInUse)
  await second.release()
  await first.release()
  await (await open()).close()
})
