// The dashboards as files: no mistake that Grafana would trip over, nothing missing that somebody on call needs.
import { readdirSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { backend } from '../../monitoring/grafana/source/backend.ts'
import { capacity } from '../../monitoring/grafana/source/capacity.ts'
import { delivery } from '../../monitoring/grafana/source/delivery.ts'
import { rooms } from '../../monitoring/grafana/source/rooms.ts'

const monitoring = new URL('../../monitoring/', import.meta.url)
const sources = {
  'backend.json': backend,
  'capacity.json': capacity,
  'delivery.json': delivery,
  'rooms.json': rooms,
}

const dashboards: [file: string, dashboard: any][] = readdirSync(new URL('grafana/dashboards/', monitoring)).map(
  file => [file, JSON.parse(read(`grafana/dashboards/${file}`))],
)
const datasource = parse(read('grafana/provisioning/datasources/prometheus.yml')).datasources[0]

test('each file is what its source makes: run node monitoring/grafana/source/generate.js', () => {
  expect(Object.fromEntries(dashboards)).toEqual(JSON.parse(JSON.stringify(sources)))
})

test('links find every dashboard, by an uid of its own', () => {
  expect(new Set(dashboards.map(([, { uid }]) => uid)).size).toBe(dashboards.length)
  for (const [, { id, uid, tags, links }] of dashboards) {
    expect(id).toBeNull() // Grafana gives its own
    expect(uid).toMatch(/^[a-z-]{1,40}$/)
    expect(tags).toContain(links[0].tags[0])
  }
})

describe.each(dashboards)('%s', (_, dashboard: any) => {
  const panels: any[] = dashboard.panels
  const figures = panels.filter(({ type }) => type !== 'row')

  test('panels have ids of their own and lie side by side on 24 columns', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const taken = new Set<string>()
    for (const { title, gridPos } of panels) {
      for (const number of Object.values(gridPos)) expect(Number.isInteger(number)).toBe(true)
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          if (taken.has(`${x},${y}`)) throw new Error(`${title} lies over another panel`)
          taken.add(`${x},${y}`)
        }
      }
    }
  })

  test('each figure says what it means, in a unit', () => {
    for (const { title, description, fieldConfig } of figures) {
      expect(title).toMatch(/./)
      expect(description).toMatch(/.{20}/)
      expect(fieldConfig.defaults.unit).toMatch(/./)
    }
  })

  test('thresholds rise from one that has no beginning', () => {
    for (const { fieldConfig } of figures) {
      const [base, ...steps] = fieldConfig.defaults.thresholds.steps.map(({ value }: any) => value)
      expect(base).toBeNull()
      expect(steps).toEqual([...steps].sort((a, b) => a - b))
    }
  })

  test('each query goes to the data source that is provisioned, with a letter of its own', () => {
    for (const { targets } of figures) {
      expect(new Set(targets.map(({ refId }: any) => refId)).size).toBe(targets.length)
      for (const target of targets) expect(target.datasource).toEqual({ type: datasource.type, uid: datasource.uid })
    }
  })

  test('each variable is used, and each one used is declared', () => {
    const declared = dashboard.templating.list.map(({ name }: any) => name)
    const expressions = figures.flatMap(({ targets }) => targets.map(({ expr }: any) => expr)).join('\n')
    const used = new Set([...expressions.matchAll(/\$(?!__)(\w+)/g)].map(([, name]) => name))
    expect([...used].sort()).toEqual([...declared].sort())
  })

  test('the series that a field is set apart for exists', () => {
    for (const { targets, fieldConfig } of figures) {
      const legends = targets.map(({ legendFormat }: any) => legendFormat)
      for (const { matcher } of fieldConfig.overrides) expect(legends).toContain(matcher.options)
    }
  })
})

test('Grafana knows how often Prometheus scrapes, for $__rate_interval to span enough samples', () => {
  expect(datasource.jsonData.timeInterval).toBe(parse(read('prometheus/prometheus.yml')).global.scrape_interval)
})

test('every alert has its part of docs/runbook.md, and links to it', () => {
  const runbook = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8')
  const [, ...parts] = runbook.split(/^### /m)
  const described = new Map(parts.map(part => [part.split('\n', 1)[0], part]))
  const { groups } = parse(read('prometheus/rules/alerts.yml'))
  const alerts: any[] = groups.flatMap(({ rules }: any) => rules)
  expect([...described.keys()].sort()).toEqual(alerts.map(({ alert }) => alert).sort())
  for (const { alert, for: pending = '0s', labels, annotations } of alerts) {
    expect(annotations.runbook_url).toBe(`{{ $externalLabels.runbooks }}docs/runbook.md#${alert.toLowerCase()}`)
    expect(['page', 'ticket', 'none']).toContain(labels.severity)
    const text = described.get(alert)
    const when = pending === '0s' ? '(at once|always)' : `after ${pending.replace('s', ' s').replace('m', ' min')}`
    expect(text).toMatch(new RegExp(`^\\w+\\n\\n\`${labels.severity}\`, ${when}\\.`))
    const parts = text?.match(/^\*\*[^*]+\*\*/gm)?.join(' ')
    expect(parts).toMatch(/^\*\*Meaning\.\*\*( \*\*Likely causes\.\*\*)?( \*\*Look at\.\*\*)? \*\*Do\.\*\*$/)
  }
})

test('every panel that docs/runbook.md names is one of a dashboard', () => {
  const runbook = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8')
  // Queries quote, too.
  const named = [...runbook.replaceAll(/`[^`]*`/g, '').matchAll(/"([^"]+)"/g)].map(([, title]) =>
    title.replaceAll(/\s+/g, ' '),
  )
  const titles = dashboards.flatMap(([, { panels }]) => panels.map(({ title }: any) => title))
  expect(named.filter(title => !titles.includes(title))).toEqual([])
})

/** @param path under monitoring/ */
function read(path: string) {
  return readFileSync(new URL(path, monitoring), 'utf8')
}
