import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { realWorld } from '@keycast/service'
import { openLmdbLog } from '../services/journal/log/lmdb/lmdb.ts'
import { commands } from './journal/commands.ts'

let folder: string
let data: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-journal-'))
  data = join(folder, 'log')
  const log = await openLmdbLog({ ...realWorld, folder: data, bytesMax: 2 ** 30, wallNow: () => 0 })
  const retention = { messages: 100, ageMs: 1e9, bytes: 1e9 }
  for (const [room, text] of [
    ['room:1', '"one"'],
    ['room:1', '{\n  "two": 2\n}'],
    ['room:2', '"\u009bother"'],
    ['room:1', '"three"'],
  ]) {
    await log.append([
      { room, messageId: undefined, from: room === 'room:2' ? '' : 'ann', data: Buffer.from(text), retention },
    ])
  }
  await log.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A command as the script runs it, in this process. */
async function run(
  name: keyof typeof commands,
  argument?: string | undefined,
  { forPerson = false, ...options }: { data?: string; after?: number; last?: number; forPerson?: boolean } = {},
) {
  let out = ''
  let err = ''
  const output = {
    print(line: string) {
      out += `${line}\n`
    },
    complain(line: string) {
      err += `${line}\n`
    },
    forPerson,
  }
  const code = await commands[name](argument as any, { data, output, ...options })
  return { code, out, err }
}

const linesOf = (out: string) =>
  out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))

test('into a pipe, rooms are listed as lines of JSON', async () => {
  const { code, out } = await run('show')
  expect(code).toBe(0)
  const epoch = expect.stringMatching(/^[\w-]{12}$/)
  const bytes = expect.any(Number)
  expect(linesOf(out)).toEqual([
    { room: 'room:1', epoch, seq: 3, oldest: 1, bytes },
    { room: 'room:2', epoch, seq: 1, oldest: 1, bytes },
  ])
})

test('messages of a room are lines of JSON, their data as it was published', async () => {
  const { out } = await run('show', 'room:1')
  expect(linesOf(out)).toEqual([
    { seq: 1, at: 0, from: 'ann', data: 'one' },
    { seq: 2, at: 0, from: 'ann', data: { two: 2 } },
    { seq: 3, at: 0, from: 'ann', data: 'three' },
  ])
  const seqs = async (range: { after?: number; last?: number }) =>
    linesOf((await run('show', 'room:1', range)).out).map(({ seq }) => seq)
  expect(await seqs({ last: 2 })).toEqual([2, 3])
  expect(await seqs({ after: 2 })).toEqual([3])
  expect(await seqs({ after: 1, last: 5 })).toEqual([2, 3])
})

test('for a person, rooms and messages are tables without control characters', async () => {
  const rooms = (await run('show', undefined, { forPerson: true })).out.split('\n')
  expect(rooms[0]).toMatch(/^epoch [\w-]{12}$/)
  expect(rooms.slice(1, 3)).toEqual([
    expect.stringMatching(/^ +newest +oldest +bytes {2}room$/),
    expect.stringMatching(/^ +3 +1 +\d+ {2}room:1$/),
  ])
  expect((await run('show', 'room:2', { forPerson: true })).out).toBe(
    `${'1'.padStart(10)}  1970-01-01T00:00:00.000Z  (anonymous)  "\\u009bother"\n`,
  )
})

test('a backup can be made, looked at, checked and restored', async () => {
  const file = join(folder, 'backup')
  expect(await run('backup', file)).toEqual({
    code: 0,
    out: expect.stringMatching(`${file}: whole, 2 rooms, 4 messages, 0.0 MB\n`),
    err: '',
  })
  expect((await run('check', file)).code).toBe(0)
  expect(linesOf((await run('show', undefined, { data: file })).out)).toHaveLength(2)

  const restored = join(folder, 'restored')
  const { code, out } = await run('restore', file, { data: restored })
  expect([code, out]).toEqual([0, expect.stringContaining(`${restored}: restored. The journal begins another epoch`)])
  expect(linesOf((await run('show', 'room:1', { data: restored })).out)).toHaveLength(3)
  await expect(run('restore', file, { data: restored })).rejects.toThrow(`${restored} is not empty`)
})

test('what is damaged is said by file with exit code 1, and not restored', async () => {
  const file = join(folder, 'damaged')
  await run('backup', file)
  truncateSync(file, 3 * 4_096)
  const { code, err } = await run('check', file)
  expect(code).toBe(1)
  expect(err).toMatch(new RegExp(`^${file}: ${file} is damaged: it has 12288 bytes.*\n${file}: damaged\\.`))
  const target = join(folder, 'target')
  expect((await run('restore', file, { data: target })).code).toBe(1)
  expect(existsSync(target)).toBe(false)
})

test('a room that is not there is said with exit code 1, a folder that is not there is an error', async () => {
  expect(await run('show', 'room:9')).toEqual({ code: 1, out: '', err: `${data} has no room room:9\n` })
  await expect(run('show', undefined, { data: '/nowhere' })).rejects.toThrow('/nowhere is not there')
  await expect(run('check', undefined, { data: tmpdir() })).rejects.toThrow('has no log: there is no data.mdb in it')
})

describe('as a program', () => {
  const script = fileURLToPath(new URL('keycast.js', import.meta.url))
  const start = (args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise(resolve =>
      execFile(process.execPath, [script, 'journal', ...args], { env: { JOURNAL_DATA: data } }, (error, out, err) =>
        resolve({ code: error ? Number(error.code) : 0, out, err }),
      ),
    )

  test('it looks where JOURNAL_DATA says, and writes lines of JSON into a pipe', async () => {
    const { code, out, err } = await start(['show', 'room:1', '--after', '1', '--last', '1'])
    expect([code, err]).toEqual([0, ''])
    expect(linesOf(out)).toEqual([{ seq: 3, at: 0, from: 'ann', data: 'three' }])
  })

  test.each([
    [[], 'keycast journal: give one of backup, check, restore, show (--help says more)'],
    [['backup'], 'keycast journal: backup needs a file, as in: backup journal.backup'],
    [['check', '--last', '2'], 'keycast journal: --after and --last are of show'],
    [['show', 'room:1', '--last', 'some'], 'keycast journal: --last some: must be a whole number'],
    [['show', '--data', '/nowhere'], 'keycast journal: /nowhere is not there'],
  ])('%j ends with 2', async (args, message) => {
    expect(await start(args)).toEqual({ code: 2, out: '', err: `${message}\n` })
  })

  test('--help says what each command does', async () => {
    const { code, out } = await start(['--help'])
    expect([code, out]).toEqual([0, expect.stringMatching(/backup(.|\n)*restore(.|\n)*check(.|\n)*show/)])
  })
})
