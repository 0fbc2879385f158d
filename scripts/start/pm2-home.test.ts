import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { endMarked } from './end-leftovers.ts'
import { claim, claimant, fitsSockets, homeFor, inspect, isAlive, MARK, marked, release } from './pm2-home.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'keycast-home-'))
})
afterEach(async () => {
  await endMarked(home, { patienceMs: 1_000 })
  rmSync(home, { recursive: true })
})

/** A process that carries the folder's mark and lives until it is told not to. */
async function startMarked(script: string) {
  const child = spawn(process.execPath, ['-e', `${script};console.log(1);setInterval(()=>{},1000)`], {
    env: { [MARK]: home },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await once(child.stdout as Readable, 'data')
  return { pid: child.pid as number, exited: once(child, 'exit') }
}

test('the folder lies in the repository, unless given', () => {
  expect(homeFor({ given: '', repository: '/code/keycast', temporary: '/tmp' })).toBe('/code/keycast/.pm2')
  expect(homeFor({ given: '/mine', repository: '/code/keycast', temporary: '/tmp' })).toBe('/mine')
})

test('where the repository lies too deep for a socket’s path, each has another, always the same', () => {
  const deep = { given: '', repository: `/${'deep/'.repeat(30)}`, temporary: '/tmp' }
  const found = homeFor(deep)
  expect(found).toMatch(/^\/tmp\/keycast-[0-9a-f]{12}$/)
  expect(homeFor(deep)).toBe(found)
  expect(homeFor({ ...deep, repository: `${deep.repository}b` })).not.toBe(found)
  expect(fitsSockets(found)).toBe(true)
  expect(fitsSockets(deep.repository)).toBe(false)
})

test('an empty folder has no system in it', () => {
  expect(inspect(home)).toEqual({ daemon: undefined, starter: undefined, abandoned: false, left: [] })
})

test('while a system runs, its starter and its daemon are known', () => {
  claim(home)
  writeFileSync(join(home, 'pm2.pid'), String(process.ppid))
  expect(inspect(home)).toEqual({ daemon: process.ppid, starter: process.pid, abandoned: false, left: [] })
  expect(claimant(home)).toBe(process.pid)
  release(home)
  expect(inspect(home).starter).toBeUndefined()
  expect(claimant(home)).toBeUndefined()
})

test('a file without a pid counts as absent', () => {
  for (const text of ['', 'x', '0', '-1', '1']) {
    writeFileSync(join(home, 'pm2.pid'), text)
    expect(inspect(home).daemon).toBeUndefined()
  }
})

test('processes a killed start left behind are found by their mark, and ended', async () => {
  const { pid, exited } = await startMarked('')
  writeFileSync(join(home, 'starter.pid'), '4194305') // above any pid there can be
  expect(inspect(home)).toEqual({ daemon: undefined, starter: undefined, abandoned: true, left: [pid] })
  await endMarked(home, { patienceMs: 5_000 })
  expect((await exited)[1]).toBe('SIGTERM')
  expect(isAlive(pid)).toBe(false)
})

test('a process that ignores SIGTERM is killed', async () => {
  const { exited } = await startMarked('process.on("SIGTERM",()=>{})')
  await endMarked(home, { patienceMs: 100 })
  expect((await exited)[1]).toBe('SIGKILL')
})

test('processes of another folder are left alone', async () => {
  const { pid } = await startMarked('')
  await endMarked(`${home}-other`, { patienceMs: 100 })
  await endMarked(home.slice(0, -1), { patienceMs: 100 })
  expect(marked(home)).toEqual([pid])
})
