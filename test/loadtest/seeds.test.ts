// The published workloads, from the command line: at a small size, against Keycast and others, with one report of all.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SeedsResult } from '../../loadtest/seeds/run-seeds.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { within } from '../support/deadline.ts'
import { ofNode } from '../support/node-process.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** One worker is enough for so little, and starts sooner without a warm-up. */
const SMALL = { FETCHER_WORKERS: '1', FETCHER_WARM_UP_PULLS: '0' }

async function seeds(...args: string[]) {
  const child = spawn(process.execPath, ['loadtest/main.js', 'seeds', ...args], {
    cwd: root,
    env: { ...ofNode, ...SMALL },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  atEnd(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', chunk => (said += chunk))
  const [code] = await within(once(child, 'close'), () => `the end of seeds ${args.join(' ')}:\n${said}\nthis`, 150_000)
  return { code, said }
}

const resultIn = (folder: string): SeedsResult => JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8'))

test('every run of the plan is made, delivers all, and stands in one report; what an interrupted run left is run, and no more', async () => {
  const output = newFolder()
  const { code, said } = await seeds('--size', 'quick', '--only', '000,003', '--output', output)
  expect([code, said.match(/to go$/gm)?.length]).toEqual([0, 6])

  const [name] = readdirSync(output)
  const folder = join(output, name)
  const result = resultIn(folder)
  const { runs, planned } = result
  expect(runs.map(({ result, failure }) => [result?.addsUp, result?.endedBy, failure])).toEqual(
    Array.from({ length: planned }, () => [true, 'done', undefined]),
  )
  expect(new Set(runs.map(({ system }) => system))).toEqual(
    new Set(['http-1', 'keycast-1', 'socketcluster-1', 'keycast-2', 'cluster-2']),
  )
  const report = readFileSync(join(folder, 'report.html'), 'utf8')
  for (const { command } of runs) expect(report).toContain(command)
  expect(readFileSync(join(folder, 'tables.md'), 'utf8')).toContain('## 003, A ticker')
  expect(readdirSync(join(folder, 'pictures'))).toContain('seed-003-4-keys.svg')

  rmSync(join(folder, 'report.html'))
  expect((await seeds('--continue', folder)).said).not.toContain('to go')
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toBe(report)

  const interrupted = { ...result, runs: runs.slice(0, -1) }
  writeFileSync(join(folder, 'result.json'), JSON.stringify(interrupted))
  const continued = await seeds('--continue', folder)
  expect([continued.code, continued.said.match(/to go$/gm)?.length]).toEqual([0, 1])
  expect(resultIn(folder).runs.map(({ command }) => command)).toEqual(runs.map(({ command }) => command))

  writeFileSync(join(folder, 'result.json'), JSON.stringify({ ...interrupted, machine: { cpu: 'another' } }))
  const refused = await seeds('--continue', folder)
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining('has machine {"cpu":"another"}')])
})
