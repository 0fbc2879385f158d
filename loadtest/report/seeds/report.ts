// The report of seeds: one page without scripts, with a table and charts for each.
import { readFileSync } from 'node:fs'
import { type Cell, linesOf, marks, ratioText, verdictOf } from '../../seeds/measured.ts'
import { spanText } from '../../seeds/plan.ts'
import type { SeedsResult } from '../../seeds/run-seeds.ts'
import type { Measured, Seed } from '../../seeds/seed.ts'
import { escapeHtml } from '../format.ts'
import { drawChart, hasData } from './draw.ts'

interface MeasuredSeed {
  seed: Seed
  measured: Measured[]
}

interface Picture {
  seed: string
  file: string
  title: string
  svg: string
}

const styles = () =>
  ['../page/report.css', 'seeds.css'].map(file => readFileSync(new URL(file, import.meta.url), 'utf8')).join('\n')

/** The charts of all seeds, those that have something to show. */
export const picturesOf = (all: MeasuredSeed[]): Picture[] =>
  all.flatMap(({ seed, measured }) =>
    seed
      .charts(measured)
      .filter(hasData)
      .map(chart => {
        const name = `seed-${seed.id}-${chart.name}`
        return { seed: seed.id, file: `${name}.svg`, title: chart.title, svg: drawChart(chart, name) }
      }),
  )

/** @returns HTML */
export function buildSeedsReport(result: SeedsResult, measured: MeasuredSeed[], pictures: Picture[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Keycast: seeds</title>
<link rel="icon" href="data:,">
<style>${styles()}</style>
</head>
<body>
<main>
${head(result, measured)}
${measured.map(each => section(each, pictures)).join('\n')}
${environment(result)}
</main>
</body>
</html>
`
}

function head({ startedAt, endedAt, size, command, machine, runs, planned }: SeedsResult, measured: MeasuredSeed[]) {
  const seconds = (Date.parse(endedAt) - Date.parse(startedAt)) / 1_000
  const facts = [
    `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${spanText(seconds)}`,
    runs.length === planned ? `${runs.length} runs` : `${runs.length} of ${planned} runs`,
    `${size} size`,
    `${machine.cores} cores, which load generator and systems share; ${Math.round(machine.memoryBytes / 1e9)} GB`,
  ]
  const used = Object.entries(marks).filter(([mark]) =>
    measured.some(each =>
      each.measured.some(table =>
        linesOf(table).some(({ cells }) => cells.some(cell => cell.marks.some(m => m === mark))),
      ),
    ),
  )
  return `<header>
<p class="kicker">Keycast load test <b>seeds</b></p>
<h1>The workloads of five documents, run here and now</h1>
<ul class="facts">${facts.map(fact => `<li>${escapeHtml(fact)}</li>`).join('')}</ul>
<p class="command"><code>${escapeHtml(command)}</code></p>
</header>
<section class="reading">
<p>Each table has what a document published on its own machine, then each system as it was measured here, in turns, within
the same minutes. The ratio says how many times better the best of Keycast's is than the best of the others: above 1 is
better, whichever way the figure counts. ${machine.cores} cores are shared by the system and the load generator, so read
ratios rather than values.</p>
${used.length === 0 ? '' : `<ul class="marks">${used.map(([mark, text]) => `<li><sup>${mark}</sup> ${escapeHtml(text)}</li>`).join('')}</ul>`}
<nav>${measured.map(({ seed }) => `<a href="#seed-${seed.id}"><b>${seed.id}</b> ${escapeHtml(seed.title)}</a>`).join('')}</nav>
</section>`
}

function section({ seed, measured }: MeasuredSeed, pictures: Picture[]) {
  const mine = pictures.filter(picture => picture.seed === seed.id)
  return `<article id="seed-${seed.id}">
<h2 class="group"><b>${seed.id}</b> ${escapeHtml(seed.title)}</h2>
<p class="source">${escapeHtml(seed.source)}</p>
<p class="about">${escapeHtml(seed.about)}</p>
${measured
  .filter(({ table }) => table.rows.length > 0)
  .map(tableOf)
  .join('\n')}
<div class="pictures">${mine.map(({ title, svg }) => `<figure class="chart" role="img" aria-label="${escapeHtml(title)}">${svg}</figure>`).join('')}</div>
${runsOf(measured)}
</article>`
}

function tableOf(measured: Measured) {
  const { table } = measured
  const columns = table.systems.map(
    ({ label, isKeycast }) => `<th class="${isKeycast ? 'ours' : ''}">${escapeHtml(label)}</th>`,
  )
  let before = ''
  const rows = linesOf(measured).map(({ label, measure, published, cells, ratio }) => {
    const begins = measure !== before && table.measures.length > 1 && table.rows.length > 1
    before = measure
    const name = table.rows.length === 1 ? measure : label
    return `${begins ? `<tr class="measure"><th colspan="${columns.length + 3}">${escapeHtml(measure)}</th></tr>` : ''}
<tr><td>${escapeHtml(name)}</td><td class="published">${escapeHtml(published)}</td>${cells.map(cellOf).join('')}${ratioOf(ratio)}</tr>`
  })
  const title =
    table.rows.length === 1
      ? `${table.title}, ${table.rows[0].label}`
      : table.measures.length === 1
        ? `${table.title}: ${table.measures[0].label}`
        : table.title
  return `<section class="wide"><h3>${escapeHtml(title)}</h3>
<table><thead><tr><th></th><th>published</th>${columns.join('')}<th>ratio</th></tr></thead>
<tbody>${rows.join('')}</tbody></table>
${(table.notes ?? []).map(note => `<p class="note">${escapeHtml(note)}</p>`).join('')}</section>`
}

function cellOf({ text, marks: found, isKeycast, isBest, run }: Cell) {
  if (run === undefined) return '<td class="none"></td>'
  const classes = ['number', ...(isKeycast ? ['ours'] : []), ...(isBest ? ['best'] : [])]
  const why = run.failure ?? run.result?.limit.text ?? ''
  const sup = found.length === 0 ? '' : `<sup>${found.join('')}</sup>`
  return `<td class="${classes.join(' ')}" title="${escapeHtml(why)}">${escapeHtml(text)}${sup}</td>`
}

const ratioOf = (ratio: number | undefined) => `<td class="ratio ${verdictOf(ratio)}">${ratioText(ratio)}</td>`

/** Every run with its command, and what it says of itself. */
function runsOf(measured: Measured[]) {
  const runs = measured.flatMap(({ table, runOf }) =>
    table.rows.flatMap(row => table.systems.flatMap(system => runOf(row, system) ?? [])),
  )
  const items = runs.map(({ command, failure, result }) => {
    const failed = result?.sums.filter(({ holds }) => !holds) ?? []
    const facts = failure
      ? [failure]
      : [result?.headline ?? '', result?.limit.text ?? '', ...failed.map(({ text }) => `Does not add up: ${text}.`)]
    return `<li><code>${escapeHtml(command)}</code> ${facts.map(escapeHtml).join(' ')}</li>`
  })
  return `<details><summary>${runs.length} runs, each with its command</summary><ol class="runs">${items.join('')}</ol></details>`
}

function environment({ machine, versions }: SeedsResult) {
  const pairs = Object.entries({
    processor: machine.cpu,
    cores: String(machine.cores),
    memory: `${Math.round(machine.memoryBytes / 1e9)} GB`,
    kernel: machine.kernel,
    ...versions,
  })
  return `<section class="machine"><h3>Machine and versions</h3>
<dl>${pairs.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`).join('')}</dl></section>`
}
