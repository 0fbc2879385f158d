// Charts that seeds share: what their runs measured, as lines.
import type { Chart } from '../report/seeds/draw.ts'
import type { SeriesSecond } from '../scenarios/scenario.ts'
import type { Measured, Row, System } from './seed.ts'

/** Told apart by people who do not see red and green as different, too. */
const OURS = ['#1d4ed8', '#60a5fa', '#0891b2', '#1e3a8a']
const theirs: Record<string, string> = {
  'socket.io': '#d97706',
  socketcluster: '#9333ea',
  naive: '#64748b',
  cluster: '#0f766e',
  http: '#64748b',
}
const PUBLISHED = ['#d97706', '#a8a29e', '#78716c', '#44403c']
const GC_WINDOW_SECONDS = 60
/** A rate per minute needs some seconds to be one. */
const GC_SECONDS_MIN = 15

function colorOf(systems: System[], system: System) {
  if (!system.isKeycast) return theirs[system.name.replace(/-\d+$/, '')]
  return OURS[systems.filter(({ isKeycast }) => isKeycast).indexOf(system) % OURS.length]
}

/**
 * A measure over the rows of a table, beside what the document says.
 *
 * @param options the first measure is shown
 */
export function latencyByRow({
  name,
  title,
  subtitle,
  measured,
  labels,
  published,
}: {
  name: string
  title: string
  subtitle: string
  measured: Measured
  labels: string[]
  published: { name: string; values: number[] }[]
}): Chart {
  return {
    name,
    title,
    subtitle,
    x: { kind: 'category', labels },
    log: true,
    lines: [
      ...published.map(({ name, values }, at) => ({
        name,
        color: PUBLISHED[at % PUBLISHED.length],
        isDashed: true,
        data: values.map((value, row) => point(row, value)),
      })),
      ...linesOf(measured, measured.table.measures[0].name),
    ],
  }
}

/** A measure over the number of users, a line for each system. */
export function linesByUsers(
  measured: Measured,
  measure: string,
  { title, subtitle, log = false }: { title: string; subtitle: string; log?: boolean },
): Chart {
  const { table } = measured
  return {
    name: `${table.name}-${measure.toLowerCase()}`,
    title: `${title}, ${table.title.toLowerCase()}`,
    subtitle,
    x: { kind: 'category', labels: table.rows.map(({ label }) => label.replace(' users', '')), name: 'users' },
    log,
    lines: linesOf(measured, measure),
  }
}

/** @param name of a measure */
function linesOf({ table, runOf }: Measured, name: string): Chart['lines'] {
  const measure = table.measures.find(each => each.name === name)
  return table.systems.map(system => ({
    name: system.label,
    color: colorOf(table.systems, system),
    isStrong: system.isKeycast,
    data: table.rows.map((row, at) => {
      const result = runOf(row, system)?.result
      return point(at, result && measure?.of(result))
    }),
  }))
}

interface Options {
  name: string
  title: string
  subtitle: string
  of: (second: SeriesSecond) => number | undefined
  /** The values are counts, and shown as those of the last minute. */
  perMinute?: boolean
  log?: boolean
  /** The clients' axis; else it is logarithmic. */
  linear?: boolean
  /** A dashed line for what was due: `requested` of a run. */
  due?: boolean
  marks?: { x: number; label?: string }[]
}

/** What each second had, over the clients that were there. */
export function overClients(
  { table, runOf }: Measured,
  { name, title, subtitle, of, perMinute, log, linear, due, marks }: Options,
): Chart {
  const runs = table.rows.flatMap((row, at) =>
    table.systems.map(system => ({ row, system, isDashed: at > 0, result: runOf(row, system)?.result })),
  )
  // More lines than these hide each other.
  const shown = runs.filter(({ system }) => table.rows.length === 1 || system.isKeycast || system.name === 'naive-1')
  const seconds = ({ result }: (typeof runs)[number]) =>
    result?.series.filter(({ open, phase }) => open > 0 && phase !== 'end') ?? []
  return {
    name,
    title,
    subtitle,
    x: { kind: linear ? 'value' : 'log', name: 'clients' },
    log,
    marks,
    lines: [
      ...shown.map(run => ({
        name: table.rows.length === 1 ? run.system.label : `${run.system.label}, ${run.row.label}`,
        color: colorOf(table.systems, run.system),
        isDashed: run.isDashed,
        isStrong: run.system.isKeycast,
        data: valuesOf(seconds(run), of, perMinute),
      })),
      ...(due && runs.length > 0
        ? [
            {
              name: 'due',
              color: PUBLISHED[1],
              isDashed: true,
              data: valuesOf(seconds(runs[0]), ({ counts, seconds }) => (counts.requested ?? 0) / seconds),
            },
          ]
        : []),
    ],
  }
}

function valuesOf(
  seconds: SeriesSecond[],
  of: (second: SeriesSecond) => number | undefined,
  perMinute = false,
): [number, number | null][] {
  if (!perMinute) return seconds.map(second => point(second.open, of(second)))
  return seconds.map((second, at) => {
    const window = seconds.slice(0, at + 1).filter(each => each.at > second.at - GC_WINDOW_SECONDS)
    const passed = window.reduce((sum, each) => sum + each.seconds, 0)
    if (passed < GC_SECONDS_MIN) return point(second.open, null)
    return point(second.open, (window.reduce((sum, each) => sum + (of(each) ?? 0), 0) * GC_WINDOW_SECONDS) / passed)
  })
}

/**
 * Latency by percentile of a row, a line for each system.
 *
 * @param row undefined where nothing was run
 */
export function percentileCurves(
  { table, runOf }: Measured,
  row: Row | undefined,
  { name, title, subtitle }: { name: string; title: string; subtitle: string },
): Chart {
  return {
    name,
    title,
    subtitle,
    x: { kind: 'percentile' },
    log: true,
    lines: table.systems.map(system => ({
      name: system.label,
      color: colorOf(table.systems, system),
      isStrong: system.isKeycast,
      data: ((row && runOf(row, system))?.result?.latency?.curve ?? []).map(({ above, ms }) => point(1 / above, ms)),
    })),
  }
}

/** @returns a gap where there is no figure */
const point = (x: number, y: number | null | undefined): [number, number | null] => [
  x,
  typeof y === 'number' && Number.isFinite(y) ? y : null,
]
