// The published workloads, from the command line: at a small size, against Keycast and others, with one report of all.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SeedsResult } from '../../loadtest/seeds/run-seeds.ts'
import { newFolder } from '../support/cleanup.ts'
import { startLoadTest } from '../support/loadtest.ts'

const seeds = (...args: string[]) => startLoadTest('seeds', ...args).ended

const resultIn = (folder: string): SeedsResult => JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8'))

test('every run of the plan is made, delivers all, and stands in one report; what an interrupted run left is run, and no more', async () => {
  const output = newFolder()
  const { code, err } = await seeds('--size', 'quick', '--only', '000,003', '--output', output)
  expect([code, err.match(/to go$/gm)?.length]).toEqual([0, 6])

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
  expect((await seeds('--continue', folder)).err).not.toContain('to go')
  expect(readFileSync(join(folder, 'report.html'), 'utf8')).toBe(report)

  const interrupted = { ...result, runs: runs.slice(0, -1) }
  writeFileSync(join(folder, 'result.json'), JSON.stringify(interrupted))
  const continued = await seeds('--continue', folder)
  expect([continued.code, continued.err.match(/to go$/gm)?.length]).toEqual([0, 1])
  expect(resultIn(folder).runs.map(({ command }) => command)).toEqual(runs.map(({ command }) => command))

  writeFileSync(join(folder, 'result.json'), JSON.stringify({ ...interrupted, machine: { cpu: 'another' } }))
  const refused = await seeds('--continue', folder)
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('has machine {"cpu":"another"}')])
})
