// What a table's runs measured: the cell of each, the ratio of the best, and what is wrong with a run.
import { formatNumber } from '../report/format.ts'
import { OTHERS_BUSY } from '../run/bottleneck.ts'
import type { Measure, Measured, Run, Seed, Size } from './seed.ts'

/** `isBest`: of its row. `run`: undefined where the system is not run against. */
export interface Cell {
  text: string
  value?: number
  marks: Mark[]
  isKeycast: boolean
  isBest: boolean
  run?: Run
}

/** `ratio`: how many times better the best of Keycast's is than the best reference's. */
interface Line {
  label: string
  measure: string
  published: string
  cells: Cell[]
  ratio?: number
}

type Mark = keyof typeof marks

/** What may be wrong with a run. */
export const marks = Object.freeze({
  g: 'the load generator was at its limit or late: the system may do better',
  o: 'other programs used more than a fifth of the machine meanwhile',
  l: 'behind: when it ended, some of what was due had not come',
  x: 'the counts do not add up',
  t: 'ended before it was done',
})

export function marksOf(run: Run | undefined): Mark[] {
  const result = run?.result
  if (result === undefined) return []
  const { limit, counts, addsUp, endedBy } = result
  const found: [Mark, boolean][] = [
    ['g', limit.limiter === 'generator' || limit.limiter === 'both'],
    ['o', limit.othersRatio > OTHERS_BUSY],
    ['l', counts.lost > 0],
    ['x', !addsUp],
    ['t', endedBy !== 'done'],
  ]
  return found.flatMap(([mark, isSo]) => (isSo ? mark : []))
}

/** Figures that differ by less are equal: the machine itself differs more from one run to the next. */
const EQUAL_RATIO = 0.05

/** The tables of a seed with the runs that there are. Rows and systems without any are left out. */
export function measuredOf(seed: Seed, size: Size, runs: Run[]): Measured[] {
  return seed.tables(size).map(table => {
    const mine = runs.filter(run => run.seed === seed.id && run.table === table.name)
    return {
      table: {
        ...table,
        rows: table.rows.filter(({ label }) => mine.some(({ row }) => row === label)),
        systems: table.systems.filter(({ name }) => mine.some(({ system }) => system === name)),
      },
      runOf: (row, system) => mine.find(run => run.row === row.label && run.system === system.name),
    }
  })
}

/** @returns one for each row and measure */
export function linesOf({ table, runOf }: Measured): Line[] {
  return table.measures.flatMap(measure =>
    table.rows.map(row => {
      const cells = table.systems.map(system => {
        const run = runOf(row, system)
        const value = run?.result && measure.of(run.result)
        const text = run?.failure !== undefined ? 'failed' : formatNumber(value)
        return {
          text,
          value,
          marks: marksOf(run),
          isKeycast: system.isKeycast,
          isBest: false,
          isAside: system.isAside,
          run,
        }
      })
      const ratio = markBest(cells, measure)
      return { label: row.label, measure: measure.label, published: row.published?.[measure.name] ?? '', cells, ratio }
    }),
  )
}

/** Marks the best of Keycast's and of the references'. A run whose counts do not add up is none of them. */
function markBest(cells: (Cell & { isAside?: boolean })[], { better }: Measure) {
  if (better === undefined) return undefined
  const best = (isKeycast: boolean) => {
    const fit = cells.filter(
      cell => cell.isKeycast === isKeycast && !cell.isAside && cell.value !== undefined && !cell.marks.includes('x'),
    )
    const sign = better === 'higher' ? -1 : 1
    return fit.sort((a, b) => sign * (Number(a.value) - Number(b.value)))[0]
  }
  const [ours, theirs] = [best(true), best(false)]
  if (ours === undefined || theirs === undefined) return undefined
  const ratio =
    better === 'higher' ? Number(ours.value) / Number(theirs.value) : Number(theirs.value) / Number(ours.value)
  ours.isBest = ratio > 1 - EQUAL_RATIO
  theirs.isBest = ratio < 1 + EQUAL_RATIO
  return Number.isFinite(ratio) ? ratio : undefined
}

export function verdictOf(ratio: number | undefined = 1): 'better' | 'worse' | 'equal' {
  if (Math.abs(ratio - 1) <= EQUAL_RATIO) return 'equal'
  return ratio > 1 ? 'better' : 'worse'
}

export const ratioText = (ratio: number | undefined) =>
  ratio === undefined ? '' : `${ratio >= 100 ? ratio.toFixed(0) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2)} ×`

/** A table in Markdown, for pages that show its figures. */
export function markdownOf(measured: Measured) {
  const { table } = measured
  const columns = ['', 'published', ...table.systems.map(({ label }) => label), 'ratio']
  const lines = linesOf(measured).map(({ label, measure, published, cells, ratio }) => [
    `${label}: ${measure}`,
    published,
    ...cells.map(({ text, marks, isBest, run }) => {
      if (run === undefined) return ''
      return `${isBest ? `**${text}**` : text}${marks.length > 0 ? ` (${marks.join('')})` : ''}`
    }),
    ratioText(ratio),
  ])
  return [columns, columns.map(() => '---'), ...lines].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}
