// Draws a chart as SVG, without a browser: a page with it needs no script, and it is a picture of its own.
// The library in one file: its 600 modules take ten times as long to load.
import * as echarts from 'echarts/dist/echarts.esm.min.mjs'
import { ink, percentileAxis, short, valueAxis } from '../page/axis.js'

const WIDTH = 480
/** Of the lines with their axis, below title and legend. */
const PLOT_HEIGHT = 225
/**
 * By name: an SVG that is an image of its own inherits none. As wide as ECharts, which measures without a browser, takes
 * it to be. Without quotes: it stands in an attribute.
 */
const FONT = 'Arial, Helvetica, sans-serif'
/** Of a legend: the gap between names, beside and below, a line with it, a colour with its gaps, a character of the font. */
const LEGEND = { gap: 18, line: 30, symbol: 42, character: 6.2 }

/** A point without a value is a gap. */
interface Line {
  name: string
  color: string
  data: [number, number | null][]
  isDashed?: boolean
  isStrong?: boolean
}

export interface Chart {
  /** In file names. */
  name: string
  title: string
  subtitle: string
  /** `percentile`: values are one over the rest above. */
  x:
    | { kind: 'category'; labels: string[]; name?: string }
    | { kind: 'value' | 'log'; name?: string }
    | { kind: 'percentile' }
  /** The values' axis. */
  log?: boolean
  marks?: { x: number; label?: string }[]
  lines: Line[]
}

const MARK_HEIGHT = 14

/** Whether there is anything to be seen. */
export const hasData = ({ lines }: Chart) => lines.some(({ data }) => data.some(([, value]) => value !== null))

/**
 * @param id other than that of any chart on the same page
 * @returns SVG, with its title
 */
export function drawChart({ title, subtitle, x, log = false, marks = [], lines }: Chart, id: string): string {
  const drawn = lines.filter(({ data }) => data.some(([, value]) => value !== null))
  const top = 56 + linesOfLegend(drawn.map(({ name }) => name)) * LEGEND.line + (marks.length > 0 ? MARK_HEIGHT : 0)
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: top + PLOT_HEIGHT })
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: FONT, color: ink },
    title: {
      text: title,
      subtext: subtitle,
      left: 8,
      top: 6,
      itemGap: 3,
      textStyle: { fontFamily: FONT, fontSize: 14, fontWeight: 'bold', color: '#0f172a' },
      subtextStyle: { fontFamily: FONT, fontSize: 11.5, color: ink },
    },
    legend: {
      top: 48,
      left: 8,
      itemWidth: 18,
      itemHeight: 3,
      // A reader's font may be wider than the one that was measured.
      itemGap: LEGEND.gap,
      textStyle: { color: ink, fontSize: 11.5 },
      data: drawn.map(({ name }) => name),
    },
    grid: {
      left: 12,
      right: 24,
      top,
      bottom: 'name' in x && x.name ? 26 : 8,
      containLabel: true,
    },
    xAxis: xAxisOf(x, drawn),
    yAxis: log ? valueAxis({ type: 'log', logBase: 10 }) : valueAxis({ min: 0 }),
    series: drawn.map(({ name, color, data, isDashed, isStrong }, at) => ({
      name,
      type: 'line',
      // A logarithm of 0 there is not, and less than a tenth of a millisecond is none that matters.
      data: data.map(([left, value]) => [left, log && value !== null ? Math.max(0.1, value) : value]),
      sampling: x.kind === 'category' ? undefined : 'lttb',
      connectNulls: false,
      showSymbol: x.kind === 'category',
      symbol: 'circle',
      symbolSize: 6,
      lineStyle: { width: isStrong ? 2.5 : 1.5, color, type: isDashed ? 'dashed' : 'solid' },
      itemStyle: { color },
      z: isStrong ? 3 : 2,
      markLine: at === 0 && marks.length > 0 ? marksOf(marks) : undefined,
    })),
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  // Scaled by the page that it is on; without this its size is fixed.
  return withNames(svg.replace(/^<svg width="\d+" height="\d+"/, '<svg'), id)
}

/** Names in an SVG are those of the page. ECharts counts them on, so that the same chart is another each time. */
function withNames(svg: string, id: string) {
  const names = new Map<string, string>()
  return svg.replace(/\bzr\d+-[\w-]+/g, name => {
    if (!names.has(name)) names.set(name, `${id}-${names.size}`)
    return String(names.get(name))
  })
}

function xAxisOf(x: Chart['x'], lines: Line[]) {
  const all = lines.flatMap(({ data }) => data.map(([left]) => left))
  if (x.kind === 'percentile') return percentileAxis(Math.max(...all))
  const name = { name: x.name, nameLocation: 'middle', nameGap: 26, nameTextStyle: { color: ink } }
  if (x.kind === 'category') {
    return {
      ...name,
      type: 'category',
      data: x.labels,
      axisTick: { show: false },
      axisLine: { lineStyle: { color: '#cbd5e1' } },
      axisLabel: { color: ink, interval: 0 },
    }
  }
  return valueAxis({
    ...name,
    type: x.kind,
    min: x.kind === 'log' ? 1 : 0,
    max: Math.max(...all),
    axisLabel: { color: ink, formatter: short, hideOverlap: true },
    splitLine: { show: false },
    axisLine: { lineStyle: { color: '#cbd5e1' } },
  })
}

function marksOf(marks: NonNullable<Chart['marks']>) {
  return {
    silent: true,
    symbol: 'none',
    lineStyle: { color: '#94a3b8', type: 'dotted', width: 1.5 },
    label: { position: 'end', distance: 3, color: ink, fontSize: 11 },
    data: marks.map(({ x, label = '' }) => ({ xAxis: x, label: { formatter: label } })),
  }
}

/** How many lines names take beside each other. */
function linesOfLegend(names: string[]) {
  let lines = 1
  let used = 0
  for (const name of names) {
    const width = LEGEND.symbol + name.length * LEGEND.character
    if (used > 0 && used + width > WIDTH - 16) {
      lines += 1
      used = 0
    }
    used += width
  }
  return lines
}
