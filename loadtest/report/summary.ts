// A result as text, for the terminal.
import type { Result } from '../run/result.ts'
import type { Table } from '../scenarios/scenario.ts'
import { formatNumber } from './format.ts'

export function summaryOf(result: Result, folder: string) {
  const lines = [
    '',
    `${result.scenario} — ${result.label}`,
    result.headline,
    '',
    ...Object.values(result.figures).map(
      ({ label, value, unit, note }) =>
        `  ${label.padEnd(40)} ${formatNumber(value).padStart(12)} ${unit.padEnd(10)}${note ? `  ${note}` : ''}`,
    ),
    '',
    ...result.tables.flatMap(tableLines),
    ...result.sums.map(({ text, holds }) => `  ${holds ? 'adds up:' : 'DOES NOT ADD UP:'} ${text}`),
    ...Object.entries(result.reasons).map(([reason, count]) => `  ${count} × ${reason}`),
    `  ${result.limit.text}`,
    ...result.notes.map(note => `  ${note}`),
    '',
    `  ${folder}/report.html`,
    '',
  ]
  return lines.join('\n')
}

export function tableLines({ title, columns, rows, note }: Table) {
  const cells = [columns, ...rows.map(row => row.map(cell => (typeof cell === 'number' ? formatNumber(cell) : cell)))]
  const widths = columns.map((_, column) => Math.max(...cells.map(row => row[column].length)))
  return [
    `  ${title}`,
    ...cells.map(
      row => `  ${row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join('   ')}`,
    ),
    ...(note ? [`  ${note}`] : []),
    '',
  ]
}
