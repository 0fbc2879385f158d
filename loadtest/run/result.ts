// The result of a run: result.json with everything measured, and report.html for people.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { curve, encode, summarize } from '../generator/histogram.ts'
import { buildReport } from '../report/report.ts'
import { references } from '../system/start.ts'
import { findBottleneck } from './bottleneck.ts'

/** Version of result.json: raised when its readers have to change. */
const FORMAT = 1

/** @typedef {ReturnType<typeof buildResult>} Result */

/**
 * @param {object} parts
 * @param {import('../scenarios/scenario.ts').Scenario} parts.scenario
 * @param {any} parts.options
 * @param {import('../system/start.ts').System} parts.target
 * @param {import('./environment.ts').Environment} parts.environment
 * @param {Date} parts.startedAt
 * @param {import('../scenarios/scenario.ts').EndedBy} parts.endedBy
 * @param {string} [parts.died]
 * @param {import('../scenarios/scenario.ts').SeriesSecond[]} parts.series
 * @param {import('../scenarios/scenario.ts').Outcome} parts.outcome
 */
export function buildResult({ scenario, options, target, environment, startedAt, endedBy, died, series, outcome }) {
  const limit = findBottleneck(outcome.measured ?? series, environment.machine.cores)
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
    counts: outcome.counts,
    sums: outcome.sums,
    addsUp: outcome.sums.every(({ holds }) => holds),
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

/** @param {import('../system/start.ts').System['kind']} kind */
export function labelOf(kind) {
  if (kind === 'keycast') return 'Keycast'
  return kind === 'given' ? 'a running system' : references[kind].label
}

/** @param {import('../scenarios/scenario.ts').EndedBy} endedBy @param {string} [died] */
function endings(endedBy, died) {
  if (endedBy === 'interrupted') return ['Interrupted: this is what had been measured until then.']
  if (endedBy === 'time') return ['Ended because its time (--time-max) was over.']
  if (endedBy === 'died') return [`Ended because a process of the system did: ${died}`]
  return []
}

/** @param {Record<string, unknown>} options */
function settingsOf({ label, output, pid, metrics, ...settings }) {
  return settings
}

/**
 * @param {Result} result
 * @param {{ output: string, startedAt: Date }} where
 * @returns {string} the folder written
 */
export function writeResult(result, { output, startedAt }) {
  const folder = makeFolder(output, result.scenario, startedAt)
  writeFileSync(join(folder, 'result.json'), `${JSON.stringify(result, null, 1)}\n`)
  writeFileSync(join(folder, 'report.html'), buildReport(result))
  return folder
}

/**
 * Adds a number when the folder exists: two runs may begin within a second.
 *
 * @param {string} output
 * @param {string} name of what was run
 * @param {Date} startedAt
 */
export function makeFolder(output, name, startedAt) {
  const time = startedAt.toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '')
  const wanted = join(output, `${time}-${name}`)
  for (let number = 1; ; number++) {
    const folder = number === 1 ? wanted : `${wanted}-${number}`
    try {
      mkdirSync(folder, { recursive: false })
      return folder
    } catch (error) {
      const { code } = /** @type {NodeJS.ErrnoException} */ (error)
      if (code === 'ENOENT') mkdirSync(join(wanted, '..'), { recursive: true })
      else if (code !== 'EEXIST') throw error
      if (code === 'ENOENT') number -= 1
    }
  }
}
