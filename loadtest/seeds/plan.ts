// The plan of a run of seeds: command lines of the load test, in their order, and how long they take.
import type { Row, Seed, Size, System, Table } from './seed.ts'

/** A run to come. `seconds`: roughly, with start and end. */
export interface Planned {
  seed: Seed
  table: Table
  row: Row
  system: System
  args: string[]
  seconds: number
}

/** Until a system is up, and for its end. */
const START_SECONDS = { keycast: 7, reference: 3 }

/**
 * All runs, row by row: what stands beside each other is measured within the same minutes. Systems take turns at being
 * the first, for a machine is not the same from one minute to the next. At quick size each workload is run against one
 * of Keycast's and one other, others in each table.
 */
export function planOf(seeds: Seed[], size: Size): Planned[] {
  const tables = seeds.flatMap(seed => seed.tables(size).map(table => ({ seed, table })))
  return tables.flatMap(({ seed, table }, tableAt) =>
    table.rows.flatMap((row, at) => {
      const systems = table.systems.filter(system => row.args(system) !== undefined)
      return (size === 'quick' ? oneOfEach(systems, tableAt) : rotate(systems, at)).map(system => {
        const args = [...(row.args(system) as string[]), ...system.args]
        const seconds = row.seconds(system) + START_SECONDS[system.isKeycast ? 'keycast' : 'reference']
        return { seed, table, row, system, args, seconds }
      })
    }),
  )
}

function oneOfEach(systems: System[], at: number) {
  const ours = systems.filter(({ isKeycast }) => isKeycast)
  const theirs = systems.filter(({ isKeycast }) => !isKeycast)
  return [theirs[at % theirs.length], ours[at % ours.length]]
}

const rotate = <T>(items: T[], by: number) => [...items.slice(by % items.length), ...items.slice(0, by % items.length)]

/** As a reader can type it. */
export const commandOf = (args: string[]) => `npm run loadtest -- ${args.join(' ')}`

/** @returns as in 40 s, 12 min, 2 h 5 min */
export function spanText(seconds: number): string {
  const minutes = Math.round(seconds / 60)
  if (minutes < 2) return `${Math.round(seconds)} s`
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** The plan as text: each seed with its runs and the time they take. */
export function planText(plan: Planned[]) {
  const lines = [...new Set(plan.map(({ seed }) => seed))].map(({ id, title }) => {
    const runs = plan.filter(({ seed }) => seed.id === id)
    return `  ${id}  ${title.padEnd(32)} ${String(runs.length).padStart(3)} runs, about ${spanText(sum(runs))}`
  })
  return [...lines, `  in all ${plan.length} runs, about ${spanText(sum(plan))}`].join('\n')
}

const sum = (plan: Planned[]) => plan.reduce((all, { seconds }) => all + seconds, 0)
