// Panels and dashboards as Grafana reads them, from as little as a dashboard's author has to say.
// Field names are those of Grafana's dashboard model (schema version 41, Grafana 12).

/** The data source's uid: provisioning/datasources/prometheus.yml fixes it. */
const DATASOURCE = Object.freeze({ type: 'prometheus', uid: 'keycast-prometheus' })

const GRID_COLUMNS = 24

/** `legend` may name labels: `{{instance}}`. */
interface Query {
  expr: string
  legend?: string
}

/** Holds from this value on; the first has none. */
interface Step {
  color: 'green' | 'orange' | 'red'
  from?: number
}

interface PanelOptions {
  title: string
  /** Tells someone on call its meaning, and the remedy. */
  description: string
  /** Of Grafana's list: short, s, bytes, binBps, percentunit, reqps, …. */
  unit: string
  queries: Query[]
  steps?: Step[]
  decimals?: number
  /** Of the axis or gauge. */
  min?: number
  max?: number
  /** Of 24 columns. */
  width?: number
  /** Of fields, in Grafana's own words. */
  overrides?: Record<string, unknown>[]
}

type Panel = Record<string, unknown> & { type: string; width?: number }

/** Panels under a heading, each line of them `height` high; a panel without a width takes its share of a line. */
interface Row {
  title: string
  height: number
  perLine?: number
  panels: Panel[]
}

/** One big figure. */
export function stat(options: PanelOptions): Panel {
  return panel('stat', options, {
    options: { colorMode: 'value', graphMode: 'area', reduceOptions: { calcs: ['lastNotNull'] } },
    // A share or a quantile of nothing is NaN: nothing changed, nobody asked.
    defaults: { mappings: [{ type: 'special', options: { match: 'nan', result: { text: '–', index: 0 } } }] },
    instant: false,
  })
}

/** Bars for figures that are compared with one another. */
export function bars(options: PanelOptions): Panel {
  return panel('bargauge', options, {
    options: { orientation: 'horizontal', displayMode: 'basic', reduceOptions: { calcs: ['lastNotNull'] } },
    defaults: {},
    instant: true,
  })
}

/** Lines over time. */
export function lines({ stacked = false, ...options }: PanelOptions & { stacked?: boolean }): Panel {
  return panel('timeseries', options, {
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
    defaults: {
      custom: {
        fillOpacity: stacked ? 30 : 5,
        showPoints: 'never',
        stacking: { mode: stacked ? 'normal' : 'none' },
        thresholdsStyle: { mode: options.steps ? 'dashed' : 'off' },
      },
    },
    instant: false,
  })
}

/**
 * A series on the right, with a unit of its own, dashed: what the figure on the left is to be read against.
 *
 * @param legend of the query
 */
export function onTheRight(legend: string, unit: string) {
  return {
    matcher: { id: 'byName', options: legend },
    properties: [
      { id: 'unit', value: unit },
      { id: 'min', value: 0 },
      { id: 'custom.axisPlacement', value: 'right' },
      { id: 'custom.lineStyle', value: { fill: 'dash', dash: [6, 4] } },
      { id: 'custom.fillOpacity', value: 0 },
    ],
  }
}

function panel(
  type: string,
  { title, description, unit, queries, steps, decimals, min, max, width, overrides = [] }: PanelOptions,
  kind: { options: object; defaults: object; instant: boolean },
): Panel {
  return {
    type,
    title,
    description,
    width,
    datasource: DATASOURCE,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend ?? title,
      ...(kind.instant ? { instant: true, range: false } : { instant: false, range: true }),
    })),
    fieldConfig: {
      defaults: {
        unit,
        decimals,
        min,
        max,
        color: { mode: type === 'timeseries' ? 'palette-classic' : 'thresholds' },
        thresholds: {
          mode: 'absolute',
          steps: (steps ?? [{ color: 'green' }]).map(({ color, from }) => ({ color, value: from ?? null })),
        },
        ...kind.defaults,
      },
      overrides,
    },
    options: kind.options,
  }
}

interface Options {
  /** stable: links and bookmarks hold it. */
  uid: string
  title: string
  description: string
  /** Each a label's values, several at a time. */
  variables: { name: string; label: string; query: string }[]
  rows: Row[]
}

/** A dashboard whose rows are laid out from the top. */
export function dashboard({ uid, title, description, variables, rows }: Options) {
  return {
    id: null,
    uid,
    title,
    description,
    tags: ['keycast'],
    schemaVersion: 41,
    version: 1,
    editable: false,
    graphTooltip: 1, // one crosshair for all panels
    refresh: '10s',
    time: { from: 'now-30m', to: 'now' },
    timezone: 'browser',
    links: [
      { type: 'dashboards', title: 'Keycast', tags: ['keycast'], asDropdown: false, keepTime: true, includeVars: true },
    ],
    templating: {
      list: variables.map(({ name, label, query }) => ({
        type: 'query',
        name,
        label,
        datasource: DATASOURCE,
        definition: query,
        query: { query, refId: name },
        refresh: 2, // with the time range: instances come and go
        sort: 1,
        multi: true,
        includeAll: true,
        allValue: '.*',
        current: { text: ['All'], value: ['$__all'] },
      })),
    },
    annotations: {
      list: [
        {
          name: 'Restarts',
          datasource: DATASOURCE,
          enable: true,
          iconColor: 'orange',
          expr: 'changes({__name__=~"keycast_.+_process_start_time_seconds"}[1m]) > 0',
          titleFormat: 'restarted: {{job}} {{instance}}',
        },
      ],
    },
    panels: layOut(rows),
  }
}

function layOut(rows: Row[]) {
  const placed = []
  let y = 0
  for (const { title, height, panels, perLine = panels.length } of rows) {
    placed.push({ type: 'row', title, collapsed: false, panels: [], gridPos: { x: 0, y, w: GRID_COLUMNS, h: 1 } })
    y += 1
    let x = 0
    for (const { width = GRID_COLUMNS / perLine, ...panel } of panels) {
      if (x + width > GRID_COLUMNS) {
        x = 0
        y += height
      }
      placed.push({ ...panel, gridPos: { x, y, w: width, h: height } })
      x += width
    }
    y += height
  }
  return placed.map((panel, index) => ({ id: index + 1, ...panel }))
}
