// Draws the charts of a report.
import { ink, percentileAxis, short, trim, valueAxis } from './axis.js'

/**
 * @typedef {{ label: string, series: any[], latency?: { label: string, curve: { above: number, ms: number }[] },
 *   rates: { count: string, label: string }[], tables: any[] }} Run
 * @typedef {{ name: string, data: (number | null)[][], color?: string, dash?: boolean, area?: boolean, right?: boolean, width?: number }} Line
 */

const echarts = /** @type {any} */ (window).echarts
/** @type {Run[]} */
export const runs = JSON.parse(/** @type {HTMLElement} */ (document.getElementById('runs')).textContent ?? '[]')
const container = /** @type {HTMLElement} */ (document.getElementById('charts'))
export const two = runs.length > 1

// By name, not inherited: labels are measured before they are part of the page.
const { fontFamily } = getComputedStyle(document.body)
export const clientsColor = '#94a3b8'
/** Told apart by people who do not see red and green as different, too. @type {Record<string, string[]>} */
export const roleColors = {
  gateway: ['#2563eb', '#60a5fa', '#1e3a8a', '#93c5fd'],
  fetcher: ['#d97706', '#f59e0b'],
  'data-provider': ['#9333ea'],
  proxy: ['#0d9488'],
  generator: ['#64748b'],
}
export const runColors = ['#2563eb', '#d97706']
export const plainColors = ['#2563eb', '#d97706', '#0d9488', '#9333ea']
/** @param {string} text */
export const group = text => {
  const heading = document.createElement('h2')
  heading.className = 'group'
  heading.textContent = text
  container.append(heading)
}

/** @param {string} title @param {string} subtitle @param {any} option */
const draw = (title, subtitle, option) => {
  const card = document.createElement('div')
  card.className = 'chart'
  const heading = document.createElement('h3')
  heading.textContent = title
  const explanation = document.createElement('p')
  explanation.textContent = subtitle
  const canvas = document.createElement('div')
  canvas.className = 'canvas'
  card.append(heading, explanation, canvas)
  container.append(card)
  const chart = echarts.init(canvas, undefined, { renderer: 'svg' })
  chart.setOption({ animation: false, textStyle: { fontFamily, color: ink }, ...option })
  window.addEventListener('resize', () => chart.resize())
}

/**
 * Lines over time.
 *
 * @param {string} title
 * @param {string} subtitle
 * @param {Line[]} lines
 * @param {{ log?: boolean, rightName?: string, phases?: boolean }} [how]
 */
export const overTime = (title, subtitle, lines, { log = false, rightName, phases = false } = {}) => {
  const drawn = lines.filter(({ data }) => data.some(([, value]) => value !== null && value !== undefined))
  if (drawn.every(({ right }) => right)) return
  const marks = phases && !two ? phaseMarks(runs[0]) : undefined
  draw(title, subtitle, {
    grid: { left: 8, right: rightName ? 8 : 16, top: 48, bottom: 4, containLabel: true },
    legend: { top: 0, left: 0, itemWidth: 18, itemHeight: 3, textStyle: { color: ink }, type: 'scroll' },
    tooltip: { trigger: 'axis', valueFormatter: (/** @type {any} */ value) => (value == null ? '—' : short(value)) },
    xAxis: {
      type: 'value',
      min: 0,
      max: 'dataMax',
      axisLabel: {
        formatter: (/** @type {number} */ value) => `${trim(value)} s`,
        color: ink,
        hideOverlap: true,
        showMaxLabel: false,
      },
      splitLine: { show: false },
      axisLine: { lineStyle: { color: '#cbd5e1' } },
    },
    yAxis: [
      log ? valueAxis({ type: 'log' }) : valueAxis({ min: 0 }),
      valueAxis({
        min: 0,
        show: rightName !== undefined,
        name: rightName,
        splitLine: { show: false },
        minInterval: 1,
      }),
    ],
    series: drawn.map(({ name, data, color, dash, area, right, width = 2 }, at) => ({
      name,
      type: 'line',
      data: log ? data.map(([x, y]) => [x, y === null ? null : Math.max(0.01, y)]) : data,
      yAxisIndex: right ? 1 : 0,
      showSymbol: data.some(isAlone),
      symbolSize: data.length < 30 ? 5 : 3,
      lineStyle: { width, color, type: dash ? 'dashed' : 'solid' },
      itemStyle: { color },
      areaStyle: area ? { color, opacity: 0.15 } : undefined,
      z: right ? 1 : 2,
      markLine: at === 0 ? marks : undefined,
    })),
  })
}

/** A point between gaps is no line. @param {(number | null)[]} point @param {number} at @param {(number | null)[][]} data */
const isAlone = ([, value], at, data) => value !== null && (data[at - 1]?.[1] ?? data[at + 1]?.[1] ?? null) === null

/** The boundaries between the parts of a run. @param {Run} run */
const phaseMarks = ({ series }) => {
  const changes = series.filter(
    (second, at) => at > 0 && second.phase !== series[at - 1].phase && second.phase !== 'end',
  )
  return {
    silent: true,
    symbol: 'none',
    label: { formatter: '{b}', position: 'insideEndTop', color: ink, fontSize: 11 },
    lineStyle: { color: '#94a3b8', type: 'dotted' },
    data: changes.map(({ at, phase }) => ({ xAxis: at, name: phase })),
  }
}

/** @param {Run} run @param {(second: any) => number | null | undefined} of @returns {(number | null)[][]} */
export const points = (run, of) => run.series.map(second => [second.at, of(second) ?? null])

/** @param {Run} run @param {number} at @returns {string} */
export const suffix = (run, at) => (two ? ` · ${run.label}${runs[0].label === runs[1].label ? ` ${at + 1}` : ''}` : '')

/** A table's column as bars. @param {any} table */
export const bars = table => {
  for (const { column, title, log } of table.bars ?? []) {
    const rows = [...table.rows].reverse()
    draw(title, table.columns[column], {
      grid: { left: 8, right: 64, top: 8, bottom: 4, containLabel: true },
      xAxis: log ? valueAxis({ type: 'log', min: 1 }) : valueAxis({ min: 0 }),
      yAxis: {
        type: 'category',
        data: rows.map(row => row[0]),
        axisTick: { show: false },
        axisLine: { lineStyle: { color: '#cbd5e1' } },
        axisLabel: { color: ink },
      },
      series: [
        {
          type: 'bar',
          barMaxWidth: 26,
          data: rows.map((row, at) => ({
            value: log ? Math.max(1, row[column]) : row[column],
            itemStyle: {
              color: String(rows[at][0]).startsWith('polling') ? '#94a3b8' : '#2563eb',
              borderRadius: [0, 4, 4, 0],
            },
          })),
          label: {
            show: true,
            position: 'right',
            color: ink,
            formatter: (/** @type {any} */ { value }) => short(value),
          },
        },
      ],
    })
  }
}

/** Latency by percentile, each halving of the rest above at the same distance. */
export const percentiles = () => {
  const curves = runs.filter(run => run.latency)
  if (curves.length === 0) return
  draw('Latency by percentile', curves[0].latency?.label ?? '', {
    grid: { left: 8, right: 24, top: two ? 40 : 16, bottom: 4, containLabel: true },
    legend: { show: two, top: 0, left: 0, itemWidth: 18, itemHeight: 3, textStyle: { color: ink } },
    tooltip: {
      trigger: 'axis',
      formatter: (/** @type {any[]} */ items) =>
        items
          .map(
            ({ data, seriesName }) =>
              `${two ? `${seriesName}: ` : ''}${trim(100 * (1 - 1 / data[0]))} % within ${trim(data[1])} ms`,
          )
          .join('<br>'),
    },
    xAxis: percentileAxis(Math.max(...curves.flatMap(run => run.latency?.curve.map(({ above }) => 1 / above) ?? []))),
    yAxis: valueAxis({
      type: 'log',
      axisLabel: { formatter: (/** @type {number} */ value) => `${short(value)} ms`, color: ink },
    }),
    series: curves.map((run, at) => ({
      name: `${run.label}${curves.length > 1 && curves[0].label === curves[1].label ? ` ${at + 1}` : ''}`,
      type: 'line',
      showSymbol: false,
      lineStyle: { width: 2, color: runColors[at] },
      itemStyle: { color: runColors[at] },
      areaStyle: two ? undefined : { color: runColors[at], opacity: 0.08 },
      data: run.latency?.curve.map(({ above, ms }) => [1 / above, Math.max(0.001, ms)]),
    })),
  })
}
