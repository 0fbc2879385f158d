// Compares two results: every figure of both, and their ratio.
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Result } from '../run/result.ts'
import type { Table } from '../scenarios/scenario.ts'
import { buildComparison } from './report.ts'
import { tableLines } from './summary.ts'

/** The two cannot be compared; the message says why. */
export class CompareError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CompareError'
  }
}

/**
 * @param pathA a run's folder, or its result.json
 * @param options `html`: a file for both runs in the same charts
 * @returns for a terminal
 * @throws {CompareError}
 */
export function compareFolders(pathA: string, pathB: string, { html }: { html?: string } = {}): string {
  const a = readResult(pathA)
  const b = readResult(pathB)
  const table = compareResults(a, b)
  if (html !== undefined) writeFileSync(html, buildComparison(a, b, table))
  return ['', ...tableLines(table), ...(html === undefined ? [] : [`  ${html}`, ''])].join('\n')
}

export function compareResults(a: Result, b: Result): Table {
  if (a.scenario !== b.scenario) {
    throw new CompareError(
      `one is a run of ${a.scenario}, the other of ${b.scenario}: their figures have nothing in common`,
    )
  }
  const { isSame, note } = circumstances(a, b)
  const names = [...new Set([...Object.keys(a.figures), ...Object.keys(b.figures)])]
  const rows = names.map(name => {
    const figure = a.figures[name] ?? b.figures[name]
    const [valueA, valueB] = [a.figures[name]?.value, b.figures[name]?.value]
    return [
      `${figure.label} (${figure.unit})`,
      valueA ?? '—',
      valueB ?? '—',
      relation(valueA, valueB),
      ...(isSame ? [verdict(figure.better, valueA, valueB)] : []),
    ]
  })
  return {
    title: `${a.scenario}: ${nameOf(a)} against ${nameOf(b)}${isSame ? '' : ', not under the same circumstances'}`,
    // No verdict for runs with different settings: neither would be fair.
    columns: ['figure', nameOf(a), nameOf(b), 'A : B', ...(isSame ? ['better'] : [])],
    rows,
    note,
  }
}

const nameOf = (result: Result) => `${result.label} (${result.startedAt.slice(11, 19)})`

function relation(a: number | undefined, b: number | undefined) {
  if (a === undefined || b === undefined || b === 0 || a === null || b === null) return '—'
  return `${(a / b).toFixed(2)} ×`
}

/** Runs that differ by less count as the same: the same machine differs more from one run to the next. */
const SAME_RATIO = 0.05

function verdict(better: 'higher' | 'lower' | undefined, a: number | undefined, b: number | undefined) {
  if (better === undefined || a === undefined || b === undefined || a === null || b === null) return ''
  if (Math.abs(a - b) <= SAME_RATIO * Math.max(Math.abs(a), Math.abs(b))) return 'same'
  return a > b === (better === 'higher') ? 'A' : 'B'
}

/** The settings, beside the system, in which two runs differ. */
function circumstances(a: Result, b: Result) {
  const setting = (result: Result): Record<string, unknown> => ({
    ...result.settings,
    node: result.versions.node,
    cores: result.machine.cores,
  })
  const [ofA, ofB] = [setting(a), setting(b)]
  const names = [...new Set([...Object.keys(ofA), ...Object.keys(ofB)])].filter(name => !systemSettings.has(name))
  const different = names.filter(name => JSON.stringify(ofA[name]) !== JSON.stringify(ofB[name]))
  if (different.length === 0) return { isSame: true, note: 'Same settings, same machine.' }
  const said = different.map(name => `${name} ${ofA[name] ?? '—'} and ${ofB[name] ?? '—'}`)
  return { isSame: false, note: `Not the same in both: ${said.join(', ')}.` }
}

/** Settings that say which system was loaded: a comparison is between these. */
const systemSettings = new Set(['start', 'url', 'reference', 'gateways', 'provider', 'remote'])

function readResult(path: string): Result {
  try {
    const file = statSync(path).isDirectory() ? join(path, 'result.json') : path
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new CompareError(`${path} holds no result: ${(error as Error).message}`)
  }
}
