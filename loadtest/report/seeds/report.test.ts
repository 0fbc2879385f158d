import { createHistogram, curve, record, summarize } from '../../generator/histogram.ts'
import type { Result } from '../../run/result.ts'
import { seeds } from '../../seeds/index.ts'
import { measuredOf } from '../../seeds/measured.ts'
import { commandOf, planOf } from '../../seeds/plan.ts'
import { resultOf, secondOf } from '../../test-support.ts'
import { buildSeedsReport, picturesOf } from './report.ts'

const latency = createHistogram()
for (const us of [1_000, 2_000, 40_000]) record(latency, us)

/** A run of everything, each with the same figures. */
function reportOf(given?: Partial<Result>) {
  const figures = Object.fromEntries(
    ['mean', 'perSecond', 'systemCpu', 'systemMegabytes', 'clientsHeld', 'p99', 'outageMax'].map(name => [
      name,
      { label: name, value: 4_711, unit: '' },
    ]),
  )
  const series = [1, 2, 3].map(at => secondOf({ at, phase: 'measure', open: at * 100 }))
  const runs = planOf(seeds, 'medium').map(({ seed, table, row, system, args }) => ({
    ...{ seed: seed.id, table: table.name, row: row.label, system: system.name, command: commandOf(args) },
    result: resultOf({
      figures,
      series,
      latency: { label: 'Latency', summary: summarize(latency), curve: curve(latency), histogram: '' },
      ...given,
    }),
  }))
  const result = {
    ...{ format: 1, startedAt: '2026-01-01T10:00:00.000Z', endedAt: '2026-01-01T12:05:00.000Z', size: 'medium' },
    ...{ command: 'npm run loadtest -- seeds', seeds: seeds.map(({ id }) => id), planned: runs.length, runs },
    ...{ machine: resultOf().machine, versions: { node: '24.0.0', 'socket.io': '4.8.4' } },
  }
  const measured = seeds.map(seed => ({ seed, measured: measuredOf(seed, 'medium', runs) }))
  const pictures = picturesOf(measured)
  return { html: buildSeedsReport(result as any, measured, pictures), pictures }
}

test('the page has a table and charts for each seed, and needs neither a script nor a network', () => {
  const { html, pictures } = reportOf()

  for (const { id, title } of seeds) {
    expect(html).toContain(`<article id="seed-${id}">`)
    expect(html).toContain(title)
    expect(pictures.some(({ seed }) => seed === id)).toBe(true)
  }
  for (const text of ['2 h 5 min', '2 cores', '4,711', '304 (2 CPUs)', 'socket.io', 'npm run loadtest -- crash']) {
    expect(html).toContain(text)
  }
  expect(html).not.toMatch(/<script|@import|url\((?!["']?(data:|#))|\s(src|href)="(?!data:|#)/)
})

test('each chart is a picture of its own, with its title, that scales', () => {
  const { pictures } = reportOf()

  expect(new Set(pictures.map(({ file }) => file)).size).toBe(pictures.length)
  for (const { title, svg, file } of pictures) {
    // What an attribute holds must not end it.
    for (const [, style] of svg.matchAll(/ style="([^"]*)"(?! |>|\/)/g)) expect(style).toBeUndefined()
    expect(file).toMatch(/^seed-00\d-[\w-]+\.svg$/)
    expect(svg).toContain(title)
    expect(svg).toMatch(/^<svg (?!width)[^>]*viewBox="0 0 \d+ \d+"/)
  }
})

test('no two charts of the page share a name, and the same run makes the same page', () => {
  const { html } = reportOf()
  const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)

  expect(ids.length).toBeGreaterThan(seeds.length)
  expect(new Set(ids).size).toBe(ids.length)
  expect(reportOf().html).toBe(html)
})

test('what is wrong with a run stands at its figure, and what the mark means above', () => {
  const { html } = reportOf({ addsUp: false, sums: [{ text: 'due 2 = delivered 1', holds: false }] })

  expect(html).toContain('4,711<sup>x</sup>')
  expect(html).toContain('the counts do not add up')
  expect(html).toContain('Does not add up: due 2 = delivered 1.')
  expect(html).not.toContain('ended before it was done')
})

test('text of a run cannot become markup', () => {
  const hostile = '</li><script>alert(1)</script>'
  const { html } = reportOf({ headline: hostile, limit: { limiter: 'neither', text: hostile, othersRatio: 0 } })

  expect(html).not.toContain('<script')
})
