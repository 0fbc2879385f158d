// The result of a run: result.json with everything measured, and report.html for people.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { curve, encode, summarize } from '../generator/histogram.ts'
import { buildReport } from '../report/report.ts'
import type { EndedBy, Options, Outcome, Scenario, SeriesSecond, Sum } from '../scenarios/scenario.ts'
import { references, type System } from '../system/start.ts'
import { findBottleneck } from './bottleneck.ts'
import type { Environment } from './environment.ts'

/** Version of result.json: raised when its readers have to change. */
const FORMAT = 1

export type Result = ReturnType<typeof buildResult>

interface Parts {
  scenario: Scenario
  options: Options
  target: System
  environment: Environment
  startedAt: Date
  endedBy: EndedBy
  died?: string
  series: SeriesSecond[]
  outcome: Outcome
}

export function buildResult({
  scenario,
  options,
  target,
  environment,
  startedAt,
  endedBy,
  died,
  series,
  outcome,
}: Parts) {
  const limit = findBottleneck(outcome.measured ?? series, environment.machine.cores)
  const counts = Object.fromEntries(scenario.counts.map(name => [name, outcome.counts[name] ?? 0]))
  const sums = [...outcome.sums, ...connectionSum(counts)]
  return {
    format: FORMAT,
    scenario: scenario.name,
    about: scenario.about,
    label: options.label ?? labelOf(target.kind),
    headline: outcome.headline,
    startedAt: startedAt.toISOString(),
    endedBy,
    system: { kind: target.kind, urls: target.urls, watched: target.watched.map(({ name, role }) => ({ name, role })) },
    settings: settingsOf(options),
    ...environment,
    figures: outcome.figures,
    counts,
    sums,
    addsUp: sums.every(({ holds }) => holds),
    reasons: outcome.reasons ?? {},
    limit,
    notes: [...endings(endedBy, died), ...(outcome.notes ?? [])],
    tables: outcome.tables ?? [],
    latency:
      outcome.latency === undefined || outcome.latency.totalCount === 0
        ? undefined
        : {
            label: outcome.latencyLabel ?? 'Latency',
            summary: summarize(outcome.latency),
            curve: curve(outcome.latency),
            /** HdrHistogram V2, compressed, base64; microseconds. */
            histogram: encode(outcome.latency),
          },
    rates: scenario.rates,
    series,
  }
}

export function labelOf(kind: System['kind']) {
  if (kind === 'keycast') return 'Keycast'
  return kind === 'given' ? 'a running system' : references[kind].label
}

/** Nothing where a scenario does not name those of its connections. */
function connectionSum({ opened, closed, dropped }: Record<string, number>): Sum[] {
  if (opened === undefined) return []
  const text = `connections opened ${opened} = closed ${closed} + dropped ${dropped}`
  return [{ text, holds: opened === closed + dropped }]
}

function endings(endedBy: EndedBy, died?: string) {
  if (endedBy === 'interrupted') return ['Interrupted: this is what had been measured until then.']
  if (endedBy === 'time') return ['Ended because its time (--time-max) was over.']
  if (endedBy === 'died') return [`Ended because a process of the system did: ${died}`]
  return []
}

function settingsOf({ label, output, pid, metrics, ...settings }: Record<string, unknown>) {
  return settings
}

/** @returns the folder written */
export function writeResult(result: Result, { output, startedAt }: { output: string; startedAt: Date }): string {
  const folder = makeFolder(output, result.scenario, startedAt)
  writeFileSync(join(folder, 'result.json'), `${JSON.stringify(result, null, 1)}\n`)
  writeFileSync(join(folder, 'report.html'), buildReport(result))
  return folder
}

/**
 * Adds a number when the folder exists: two runs may begin within a second.
 *
 * @param name of what was run
 */
export function makeFolder(output: string, name: string, startedAt: Date) {
  const time = startedAt.toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '')
  const wanted = join(output, `${time}-${name}`)
  for (let number = 1; ; number++) {
    const folder = number === 1 ? wanted : `${wanted}-${number}`
    try {
      mkdirSync(folder, { recursive: false })
      return folder
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') mkdirSync(join(wanted, '..'), { recursive: true })
      else if (code !== 'EEXIST') throw error
      if (code === 'ENOENT') number -= 1
    }
  }
}
