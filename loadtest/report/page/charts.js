// The charts of a report, of one run or of two in the same charts.
import {
  bars,
  clientsColor,
  group,
  overTime,
  percentiles,
  plainColors,
  points,
  roleColors,
  runColors,
  runs,
  suffix,
  two,
} from './draw.js'

/** @typedef {import('./draw.js').Run} Run */
/** @typedef {import('./draw.js').Line} Line */

/** A rate per minute needs some seconds to be one. */
const GC_WINDOW_SECONDS = 60
const GC_SECONDS_MIN = 5

/** Connected clients, which everything is held against. @returns {Line[]} */
const clients = () =>
  runs.map((run, at) => ({
    name: `clients${suffix(run, at)}`,
    data: points(run, second => second.open),
    color: two ? runColors[at] : clientsColor,
    area: !two,
    dash: two,
    right: true,
    width: 1,
  }))

/**
 * A line for each service; with two runs, for each role the sum of its services.
 *
 * @param {(sample: any, second: any) => number | undefined} of
 * @returns {Line[]}
 */
const perService = of =>
  runs.flatMap((run, at) => {
    const names = [...new Map(run.series.flatMap(second => second.services).map(one => [one.name, one.role]))]
    if (two) {
      const gateways = names.filter(([, role]) => role === 'gateway')
      const data = points(run, second =>
        sum(
          second.services
            .filter((/** @type {any} */ one) => gateways.some(([name]) => name === one.name))
            .map((/** @type {any} */ one) => of(one, second)),
        ),
      )
      return [{ name: `gateway${suffix(run, at)}`, data, color: runColors[at] }]
    }
    /** @type {Record<string, number>} */
    const used = {}
    return names.map(([name, role]) => {
      used[role] = (used[role] ?? -1) + 1
      const colors = roleColors[role] ?? plainColors
      const find = (/** @type {any} */ second) => second.services.find((/** @type {any} */ one) => one.name === name)
      return {
        name,
        data: points(run, second => (find(second) === undefined ? null : of(find(second), second))),
        color: colors[used[role] % colors.length],
      }
    })
  })

/** @param {(number | undefined)[]} values @returns {number | undefined} */
const sum = values =>
  values.every(value => value === undefined)
    ? undefined
    : values.reduce((/** @type {number} */ all, value) => all + (value ?? 0), 0)

/** Full collections within the last minute, or as many a minute as there were since the run began. @param {Line[]} lines */
const perMinute = lines =>
  lines.map(line => ({
    ...line,
    data: line.data.map(([at], index) => {
      const time = Number(at)
      const since = Math.max(0, time - GC_WINDOW_SECONDS)
      const window = line.data.slice(0, index + 1).filter(([x]) => Number(x) > since)
      const known = window.filter(([, value]) => value !== null)
      const seconds = Math.min(GC_WINDOW_SECONDS, time)
      if (known.length === 0 || seconds < GC_SECONDS_MIN) return [time, null]
      return [time, (known.reduce((all, [, value]) => all + Number(value), 0) * 60) / seconds]
    }),
  }))

/** @param {(run: Run, at: number) => Line[]} of */
const perRun = of => runs.flatMap(of)

if (!two && runs[0].tables.some(table => table.bars)) {
  group('Side by side')
  runs[0].tables.forEach(bars)
}

group('Throughput and latency')
overTime(
  'Throughput',
  'a second; MB/s received on the right',
  perRun((run, at) => [
    ...run.rates.slice(0, two ? 1 : undefined).map(({ count, label }, number) => ({
      name: `${label}${suffix(run, at)}`,
      data: points(run, second => second.counts[count] ?? 0),
      color: two ? runColors[at] : plainColors[number],
      dash: number > 0,
    })),
    {
      name: `MB/s${suffix(run, at)}`,
      data: points(run, second => (second.counts.bytesIn ?? 0) / 1e6),
      color: two ? runColors[at] : '#0d9488',
      right: true,
      dash: two,
      width: 1,
    },
  ]),
  { rightName: 'MB/s', phases: true },
)
overTime(
  'Latency',
  'milliseconds, of each second',
  perRun((run, at) => {
    /** @param {string} name @param {string} field @param {string} color @param {boolean} [dash] */
    const line = (name, field, color, dash) => ({
      name: `${name}${suffix(run, at)}`,
      data: points(run, second => second.latency?.[field]),
      color: two ? runColors[at] : color,
      dash,
    })
    return two
      ? [line('median', 'p50Ms', '', true), line('99 %', 'p99Ms', '')]
      : [line('median', 'p50Ms', '#2563eb'), line('99 %', 'p99Ms', '#d97706'), line('slowest', 'maxMs', '#94a3b8')]
  }),
  { log: true },
)
percentiles()
overTime(
  'The generator itself',
  'its CPU in ms a second, and how late it sent requests (99 %, ms, on the right)',
  perRun((run, at) => [
    {
      name: `CPU${suffix(run, at)}`,
      data: points(run, second => second.generator.cpuMs / second.seconds),
      color: two ? runColors[at] : '#64748b',
    },
    {
      name: `late${suffix(run, at)}`,
      data: points(run, second => second.generator.lateMsP99),
      color: two ? runColors[at] : '#dc2626',
      right: true,
      dash: two,
      width: 1,
    },
  ]),
  { rightName: 'ms late' },
)

group('What it took, while clients came and went')
overTime(
  'Free memory',
  'MB of the machine; clients on the right',
  [
    ...perRun((run, at) => [
      {
        name: `free${suffix(run, at)}`,
        data: points(run, second => second.freeBytes && second.freeBytes / 1e6),
        color: two ? runColors[at] : '#0d9488',
      },
    ]),
    ...clients(),
  ],
  { rightName: 'clients' },
)
overTime(
  'CPU time',
  'milliseconds a second: 1,000 is one core; clients on the right',
  [...perService(({ cpuMs }, { seconds }) => cpuMs && cpuMs / seconds), ...clients()],
  { rightName: 'clients' },
)
overTime(
  'V8 heap used',
  'MB; clients on the right',
  [...perService(({ heapBytes }) => heapBytes && heapBytes / 1e6), ...clients()],
  { rightName: 'clients' },
)
overTime(
  'Full garbage collections',
  'a minute; clients on the right',
  [...perMinute(perService(({ majorGcs }) => majorGcs)), ...clients()],
  { rightName: 'clients' },
)
overTime(
  'Memory of each process',
  'MB resident; clients on the right',
  [...perService(({ residentBytes }) => residentBytes && residentBytes / 1e6), ...clients()],
  { rightName: 'clients' },
)
overTime(
  'CPU of the machine',
  '% of all cores, whoever used them; clients on the right',
  [
    ...perRun((run, at) => [
      {
        name: `busy${suffix(run, at)}`,
        data: points(run, second => second.cpuBusyRatio && second.cpuBusyRatio * 100),
        color: two ? runColors[at] : '#dc2626',
      },
    ]),
    ...clients(),
  ],
  { rightName: 'clients' },
)
