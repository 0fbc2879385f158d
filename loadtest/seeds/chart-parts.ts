// Charts that seeds share: what their runs measured, as lines.

/**
 * @typedef {import('./seed.ts').Chart} Chart
 * @typedef {import('./seed.ts').Measured} Measured
 * @typedef {import('./seed.ts').System} System
 * @typedef {import('../scenarios/scenario.ts').SeriesSecond} SeriesSecond
 */

/** Told apart by people who do not see red and green as different, too. */
const OURS = ['#1d4ed8', '#60a5fa', '#0891b2', '#1e3a8a']
/** @type {Record<string, string>} */
const theirs = {
  'socket.io': '#d97706',
  socketcluster: '#9333ea',
  naive: '#64748b',
  cluster: '#0f766e',
  http: '#64748b',
}
const PUBLISHED = ['#d97706', '#a8a29e', '#78716c', '#44403c']
const GC_WINDOW_SECONDS = 60

/** @param {System[]} systems @param {System} system */
function colorOf(systems, system) {
  if (!system.isKeycast) return theirs[system.name.replace(/-\d+$/, '')]
  return OURS[systems.filter(({ isKeycast }) => isKeycast).indexOf(system) % OURS.length]
}

/**
 * A measure over the rows of a table, beside what the document says.
 *
 * @param {{ name: string, title: string, subtitle: string, measured: Measured, labels: string[],
 *   published: { name: string, values: number[] }[] }} options the first measure is shown
 * @returns {Chart}
 */
export function latencyByRow({ name, title, subtitle, measured, labels, published }) {
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

/**
 * A measure over the number of users, a line for each system.
 *
 * @param {Measured} measured
 * @param {string} measure
 * @param {{ title: string, subtitle: string, log?: boolean }} options
 * @returns {Chart}
 */
export function linesByUsers(measured, measure, { title, subtitle, log = false }) {
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

/** @param {Measured} measured @param {string} name of a measure @returns {Chart['lines']} */
function linesOf({ table, runOf }, name) {
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

/**
 * What each second had, over the clients that were there.
 *
 * @param {Measured} measured
 * @param {object} options
 * @param {string} options.name
 * @param {string} options.title
 * @param {string} options.subtitle
 * @param {(second: SeriesSecond) => number | undefined} options.of
 * @param {boolean} [options.perMinute] the values are counts, and shown as those of the last minute
 * @param {boolean} [options.log]
 * @param {boolean} [options.linear] the clients' axis; else it is logarithmic
 * @param {boolean} [options.due] a dashed line for what was due: `requested` of a run
 * @param {{ x: number, label: string }[]} [options.marks]
 * @returns {Chart}
 */
export function overClients({ table, runOf }, { name, title, subtitle, of, perMinute, log, linear, due, marks }) {
  const runs = table.rows.flatMap((row, at) =>
    table.systems.map(system => ({ row, system, isDashed: at > 0, result: runOf(row, system)?.result })),
  )
  // More lines than these hide each other.
  const shown = runs.filter(({ system }) => table.rows.length === 1 || system.isKeycast || system.name === 'naive-1')
  const seconds = (/** @type {typeof runs[number]} */ { result }) =>
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

/**
 * @param {SeriesSecond[]} seconds
 * @param {(second: SeriesSecond) => number | undefined} of
 * @param {boolean} [perMinute]
 * @returns {[number, number | null][]}
 */
function valuesOf(seconds, of, perMinute = false) {
  if (!perMinute) return seconds.map(second => point(second.open, of(second)))
  return seconds.map((second, at) => {
    const window = seconds.slice(0, at + 1).filter(each => each.at > second.at - GC_WINDOW_SECONDS)
    const passed = window.reduce((sum, each) => sum + each.seconds, 0)
    return point(second.open, (window.reduce((sum, each) => sum + (of(each) ?? 0), 0) * GC_WINDOW_SECONDS) / passed)
  })
}

/**
 * Latency by percentile of a row, a line for each system.
 *
 * @param {Measured} measured
 * @param {import('./seed.ts').Row | undefined} row undefined where nothing was run
 * @param {{ name: string, title: string, subtitle: string }} options
 * @returns {Chart}
 */
export function percentileCurves({ table, runOf }, row, { name, title, subtitle }) {
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

/** @param {number} x @param {number | null | undefined} y @returns {[number, number | null]} a gap where there is no figure */
const point = (x, y) => [x, typeof y === 'number' && Number.isFinite(y) ? y : null]
