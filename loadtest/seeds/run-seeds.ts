// Runs seeds: one run after the other, with progress, and one report of all.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Progress } from '../command-line/progress.ts'
import { GeneratorError } from '../generator/pool.ts'
import { buildSeedsReport, picturesOf } from '../report/seeds/report.ts'
import { describeEnvironment, type Environment, versionOf } from '../run/environment.ts'
import { makeFolder } from '../run/result.ts'
import { measure } from '../run/run.ts'
import type { Options, Scenario } from '../scenarios/scenario.ts'
import { SystemError } from '../system/processes.ts'
import { seeds as all } from './index.ts'
import { markdownOf, marksOf, measuredOf } from './measured.ts'
import { commandOf, type Planned, planOf, planText, spanText } from './plan.ts'
import type { Run, Size } from './seed.ts'

/** Version of a seeds' result.json. */
const FORMAT = 1

export interface SeedsResult {
  format: number
  startedAt: string
  endedAt: string
  size: Size
  command: string
  seeds: string[]
  /** Runs; fewer were made where it was interrupted. */
  planned: number
  machine: Environment['machine']
  versions: Record<string, string>
  runs: Run[]
}

export interface SeedsOptions {
  size: Size
  /** Ids of seeds; all unless given. */
  only?: string[]
  /** Say what would be run, and end. */
  plan?: boolean
  /** Folder of an earlier run that did not come to its end: what is left is run, and the report of all written again. */
  continue?: string
  output: string
}

interface Means {
  interrupted: AbortSignal
  say: (text: string) => void
  createProgress: (rate: string) => Progress
  /** Reads a command line of the load test. */
  parse: (args: string[]) => Promise<{ scenario: Scenario; options: Options }>
}

/** @returns whether every run of Keycast's was made and adds up */
export async function runSeeds(
  { size, only = all.map(({ id }) => id), plan: isPlanOnly, continue: earlier, output }: SeedsOptions,
  means: Means,
): Promise<boolean> {
  const { say, interrupted } = means
  const startedAt = new Date()
  const result = earlier === undefined ? begun(size, only, startedAt) : readSeeds(earlier)
  const chosen = all.filter(({ id }) => result.seeds.includes(id))
  const made = new Set(result.runs.map(({ command }) => command))
  const plan = planOf(chosen, result.size).filter(({ args }) => !made.has(commandOf(args)))
  say(`Seeds at ${result.size} size:\n${planText(plan)}`)
  if (isPlanOnly) {
    for (const { args } of plan) say(commandOf(args))
    return true
  }

  if (earlier !== undefined && plan.length > 0) mustBeHere(result, earlier)
  const folder = earlier ?? makeFolder(output, 'seeds', startedAt)
  const clock = createClock(plan)
  for (const [at, planned] of plan.entries()) {
    if (interrupted.aborted) break
    const { seed, table, row, system } = planned
    say(`[${at + 1}/${plan.length}] ${seed.id}, ${table.title}, ${row.label}, ${system.label}: ${clock.text(at)}`)
    const run = await runOne(planned, means)
    result.runs.push(run)
    result.endedAt = new Date().toISOString()
    say(`  ${run.failure ?? `${run.result?.headline}${markText(run)}`}`)
    // After each run: of a long run that ends badly what was measured is there.
    writeSeeds(folder, result)
  }
  writeSeeds(folder, result)
  say(`${folder}/report.html`)
  return isSound(result)
}

function begun(size: Size, only: string[], startedAt: Date): SeedsResult {
  const chosen = all.filter(({ id }) => only.includes(id))
  return {
    format: FORMAT,
    startedAt: startedAt.toISOString(),
    endedAt: startedAt.toISOString(),
    size,
    command: commandOf(['seeds', '--size', size, ...(chosen.length < all.length ? ['--only', only.join()] : [])]),
    seeds: chosen.map(({ id }) => id),
    planned: planOf(chosen, size).length,
    ...environment(),
    runs: [],
  }
}

async function runOne(
  { seed, table, row, system, args }: Planned,
  { interrupted, createProgress, parse }: Parameters<typeof runSeeds>[1],
): Promise<Run> {
  const run = { seed: seed.id, table: table.name, row: row.label, system: system.name, command: commandOf(args) }
  const { scenario, options } = await parse(args)
  const progress = createProgress(scenario.rates[0].count)
  try {
    return { ...run, result: await measure(scenario, options, { interrupted, progress }) }
  } catch (error) {
    // One system that does not start, or a generator that fails, must not cost the runs of the others.
    if (error instanceof SystemError || error instanceof GeneratorError) return { ...run, failure: error.message }
    throw error
  }
}

const markText = (run: Run) => {
  const marks = marksOf(run)
  return marks.length === 0 ? '' : ` (${marks.join('')})`
}

/** Says how long it took and will take: the plan's times, corrected by what they proved to be. */
function createClock(plan: Planned[]) {
  const startedMs = performance.now()
  const secondsOf = (some: Planned[]) => some.reduce((sum, { seconds }) => sum + seconds, 0)
  return {
    /** @param at the run that begins now */
    text(at: number) {
      const passed = (performance.now() - startedMs) / 1_000
      const planned = secondsOf(plan.slice(0, at))
      const factor = planned === 0 ? 1 : passed / planned
      return `${spanText(passed)} passed, about ${spanText(secondsOf(plan.slice(at)) * factor)} to go`
    },
  }
}

function isSound({ runs, planned }: SeedsResult) {
  const ours = runs.filter(({ system }) => system.startsWith('keycast'))
  return runs.length === planned && ours.every(({ result }) => result?.addsUp)
}

function environment() {
  const { machine, versions } = describeEnvironment({ tls: true })
  const others = ['socket.io', 'socketcluster-server']
  return { machine, versions: { ...versions, ...Object.fromEntries(others.map(name => [name, versionOf(name)])) } }
}

/** @throws {SystemError} for a result of elsewhere: its figures do not stand beside those of this machine and version */
function mustBeHere(result: SeedsResult, folder: string) {
  const here = environment()
  for (const part of ['machine', 'versions'] as const) {
    if (isDeepStrictEqual(result[part], here[part])) continue
    const [was, is] = [result, here].map(of => JSON.stringify(of[part]))
    throw new SystemError(`${folder} has ${part} ${was}, and here they are ${is}: start a run of its own`)
  }
}

/** @returns with the runs that were measured: one that failed is made again */
function readSeeds(folder: string): SeedsResult {
  try {
    const result = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8'))
    if (!Array.isArray(result.runs)) throw new Error('it is of another scenario')
    return { ...result, runs: result.runs.filter((run: Run) => run.result !== undefined) }
  } catch (error) {
    throw new SystemError(`${folder} holds no result of seeds: ${(error as Error).message}`)
  }
}

function writeSeeds(folder: string, result: SeedsResult) {
  const measured = all
    .filter(({ id }) => result.runs.some(({ seed }) => seed === id))
    .map(seed => ({ seed, measured: measuredOf(seed, result.size, result.runs) }))
  writeFileSync(join(folder, 'result.json'), `${JSON.stringify(result)}\n`)
  const pictures = picturesOf(measured)
  writeFileSync(join(folder, 'report.html'), buildSeedsReport(result, measured, pictures))
  const tables = measured.flatMap(({ seed, measured }) =>
    measured
      .filter(({ table }) => table.rows.length > 0)
      .map(each => `## ${seed.id}, ${seed.title}: ${each.table.title}\n\n${markdownOf(each)}\n`),
  )
  writeFileSync(join(folder, 'tables.md'), tables.join('\n'))
  mkdirSync(join(folder, 'pictures'), { recursive: true })
  for (const { file, svg } of pictures) writeFileSync(join(folder, 'pictures', file), svg)
}
