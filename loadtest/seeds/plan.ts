// The plan of a run of seeds: command lines of the load test, in their order, and how long they take.

/**
 * A run to come. `seconds`: roughly, with start and end.
 * @typedef {{ seed: import('./seed.ts').Seed, table: import('./seed.ts').Table, row: import('./seed.ts').Row,
 *   system: import('./seed.ts').System, args: string[], seconds: number }} Planned
 */

/** Until a system is up, and for its end. */
const START_SECONDS = { keycast: 7, reference: 3 }

/**
 * All runs, row by row: what stands beside each other is measured within the same minutes. Systems take turns at being
 * the first, for a machine is not the same from one minute to the next. At quick size each workload is run against one
 * of Keycast's and one other, others in each table.
 *
 * @param {import('./seed.ts').Seed[]} seeds
 * @param {import('./seed.ts').Size} size
 * @returns {Planned[]}
 */
export function planOf(seeds, size) {
  const tables = seeds.flatMap(seed => seed.tables(size).map(table => ({ seed, table })))
  return tables.flatMap(({ seed, table }, tableAt) =>
    table.rows.flatMap((row, at) => {
      const systems = table.systems.filter(system => row.args(system) !== undefined)
      return (size === 'quick' ? oneOfEach(systems, tableAt) : rotate(systems, at)).map(system => {
        const args = [.../** @type {string[]} */ (row.args(system)), ...system.args]
        const seconds = row.seconds(system) + START_SECONDS[system.isKeycast ? 'keycast' : 'reference']
        return { seed, table, row, system, args, seconds }
      })
    }),
  )
}

/** @param {import('./seed.ts').System[]} systems @param {number} at */
function oneOfEach(systems, at) {
  const ours = systems.filter(({ isKeycast }) => isKeycast)
  const theirs = systems.filter(({ isKeycast }) => !isKeycast)
  return [theirs[at % theirs.length], ours[at % ours.length]]
}

/** @template T @param {T[]} items @param {number} by */
const rotate = (items, by) => [...items.slice(by % items.length), ...items.slice(0, by % items.length)]

/** As a reader can type it. @param {string[]} args */
export const commandOf = args => `npm run loadtest -- ${args.join(' ')}`

/** @param {number} seconds @returns {string} as in 40 s, 12 min, 2 h 5 min */
export function spanText(seconds) {
  const minutes = Math.round(seconds / 60)
  if (minutes < 2) return `${Math.round(seconds)} s`
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/**
 * The plan as text: each seed with its runs and the time they take.
 *
 * @param {Planned[]} plan
 */
export function planText(plan) {
  const lines = [...new Set(plan.map(({ seed }) => seed))].map(({ id, title }) => {
    const runs = plan.filter(({ seed }) => seed.id === id)
    return `  ${id}  ${title.padEnd(32)} ${String(runs.length).padStart(3)} runs, about ${spanText(sum(runs))}`
  })
  return [...lines, `  in all ${plan.length} runs, about ${spanText(sum(plan))}`].join('\n')
}

/** @param {Planned[]} plan */
const sum = plan => plan.reduce((all, { seconds }) => all + seconds, 0)
