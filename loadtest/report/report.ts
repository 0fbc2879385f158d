// A result as report.html: one file that holds the data, the styles and the charts' library, and needs no network.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Result } from '../run/result.ts'
import type { Table } from '../scenarios/scenario.ts'
import { escapeHtml, formatNumber } from './format.ts'

const page = (file: string) => readFileSync(new URL(`page/${file}`, import.meta.url), 'utf8')

/** The charts' library, the build with lines and bars only. */
const library = () => readFileSync(createRequire(import.meta.url).resolve('echarts/dist/echarts.common.min.js'), 'utf8')

/** The page's modules as one, because a page opened from a disk may not load others. */
const program = () =>
  ['axis.js', 'draw.js', 'charts.js']
    .map(file => page(file).replace(/^import [^']*? from '\.\/\w+\.js'$/gm, ''))
    .join('')
    .replace(/^export /gm, '')

/** @returns HTML */
export function buildReport(result: Result): string {
  return document({
    title: `${result.scenario} — ${result.label}`,
    runs: [result],
    body: [
      head(result.scenario, result.headline, [
        result.label,
        date(result.startedAt),
        `${result.machine.cores} cores, ${Math.round(result.machine.memoryBytes / 1e9)} GB`,
        ...(result.endedBy === 'done' ? [] : [result.endedBy]),
      ]),
      tiles(result),
      verdicts(result),
      ...result.tables.map(table),
      '<div id="charts"></div>',
      details(result),
    ],
  })
}

/** Two runs in the same charts. */
export function buildComparison(a: Result, b: Result, figures: Table) {
  return document({
    title: `${a.scenario}: ${a.label} and ${b.label}`,
    runs: [a, b],
    body: [
      head(a.scenario, `${a.label} against ${b.label}`, [date(a.startedAt), date(b.startedAt)]),
      `<section class="two">${[a, b].map(run => `<p class="run"><b>${escapeHtml(run.label)}</b> ${escapeHtml(run.headline)}</p>`).join('')}</section>`,
      table(figures),
      '<div id="charts"></div>',
    ],
  })
}

function document({ title, runs, body }: { title: string; runs: Result[]; body: string[] }) {
  // Only what charts need; a script's end inside a string would end the script.
  const data = runs.map(({ label, series, latency, rates, tables }) => ({ label, series, latency, rates, tables }))
  const json = JSON.stringify(data).replaceAll('<', '\\u003c')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${page('report.css')}</style>
</head>
<body>
<main>
${body.join('\n')}
</main>
<script id="runs" type="application/json">${json}</script>
<script>${library()}</script>
<script type="module">${program()}</script>
</body>
</html>
`
}

function head(scenario: string, headline: string, facts: string[]) {
  return `<header>
<p class="kicker">Keycast load test <b>${escapeHtml(scenario)}</b></p>
<h1>${escapeHtml(headline)}</h1>
<ul class="facts">${facts.map(fact => `<li>${escapeHtml(fact)}</li>`).join('')}</ul>
</header>`
}

function tiles({ figures }: Result) {
  const shown = Object.values(figures).map(
    ({ label, value, unit, note }) => `<div class="tile">
<p class="label">${escapeHtml(label)}</p>
<p class="value">${formatNumber(value)} <span>${escapeHtml(unit)}</span></p>
${note ? `<p class="note">${escapeHtml(note)}</p>` : ''}
</div>`,
  )
  return `<section class="tiles">${shown.join('')}</section>`
}

function verdicts({ limit, sums, addsUp }: Result) {
  const failed = sums.filter(({ holds }) => !holds)
  return `<section class="verdicts">
<p class="${limit.limiter === 'generator' ? 'bad' : 'plain'}">${escapeHtml(limit.text)}</p>
<p class="${addsUp ? 'good' : 'bad'}">${
    addsUp
      ? 'Everything sent, received and lost adds up.'
      : `Does not add up: ${failed.map(({ text }) => escapeHtml(text)).join('; ')}`
  }</p>
</section>`
}

function table({ title, columns, rows, note }: Table) {
  const cellOf = (cell: string | number) =>
    typeof cell === 'number' ? `<td class="number">${formatNumber(cell)}</td>` : `<td>${escapeHtml(cell)}</td>`
  return `<section><h2>${escapeHtml(title)}</h2>
<table><thead><tr>${columns.map(column => `<th>${escapeHtml(column)}</th>`).join('')}</tr></thead>
<tbody>${rows.map(row => `<tr>${row.map(cellOf).join('')}</tr>`).join('')}</tbody></table>
${note ? `<p class="note">${escapeHtml(note)}</p>` : ''}</section>`
}

function details({ sums, reasons, notes, counts, settings, machine, versions, system, startedAt }: Result) {
  return `<section class="details">
<div><h2>Counts</h2>
<ul>${sums.map(({ text, holds }) => `<li>${holds ? '✓' : '✗'} ${escapeHtml(text)}</li>`).join('')}
${Object.entries(reasons)
  .map(([reason, count]) => `<li>${count} × ${escapeHtml(reason)}</li>`)
  .join('')}</ul>
${pairs(counts)}
</div>
<div><h2>Notes</h2>
<ul>${notes.map(note => `<li>${escapeHtml(note)}</li>`).join('')}</ul>
<h2>Machine and versions</h2>
${pairs({ started: startedAt, ...machine, ...versions, clients_connect_to: system.urls.join(', ') })}
</div>
<div><h2>Settings</h2>
${pairs(settings)}
</div>
</section>`
}

function pairs(values: Record<string, unknown>) {
  const rows = Object.entries(values)
    .filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0))
    .map(
      ([name, value]) =>
        `<dt>${escapeHtml(name.replaceAll('_', ' '))}</dt><dd>${escapeHtml(typeof value === 'number' ? value.toLocaleString('en') : String(value))}</dd>`,
    )
  return `<dl>${rows.join('')}</dl>`
}

const date = (iso: string) => `${iso.slice(0, 16).replace('T', ' ')} UTC`
