// Connects the clients of a scenario, lets them work, and checks that every connection is accounted for.
import type { Pool } from '../generator/pool.ts'
import type { Context } from './scenario.ts'

/** When no further client has connected for this long, the rest never will. */
const GIVE_UP_MS = 10_000

/**
 * Waits until every client has connected, or has failed to.
 *
 * @param load `count`: which of the workload's counts each raises once
 */
export async function allOpen(
  context: Context,
  pool: Pool,
  { clients, count = 'opened' }: { clients: number; count?: string },
) {
  const { counts } = pool.totals
  const sofar = () => (counts[count] ?? 0) + (counts.refused ?? 0) + (counts.dropped ?? 0)
  for (;;) {
    const before = sofar()
    // Counts come once a second.
    if (await context.until(() => sofar() >= clients, GIVE_UP_MS)) return
    if (context.ended() !== undefined || sofar() === before) return
  }
}

/**
 * Connects all clients, then lets them begin at once, and ends them after some time.
 *
 * @param pool its workload waits for `begin`
 * @returns the seconds that count: the first has the beginning in it
 */
export async function connectAndMeasure(
  context: Context,
  pool: Pool,
  { clients, seconds }: { clients: number; seconds: number },
): Promise<Context['series']> {
  context.phase('connect')
  pool.ramp({ everyUs: 1_000, count: clients })
  await allOpen(context, pool, { clients })
  context.phase('measure')
  pool.tell({ begin: true })
  await context.wait(seconds * 1_000)
  context.phase('end')
  await pool.finish()

  return measuredOf(context)
}

/**
 * Connects clients one after the other, each of which begins at once, and ends them some time after the last.
 *
 * @param load `ramp`: clients a second; `onAll` is called when all of them are there
 * @returns the seconds with all of them
 */
export async function rampAndMeasure(
  context: Context,
  pool: Pool,
  { clients, ramp, seconds, onAll }: { clients: number; ramp: number; seconds: number; onAll: () => void },
): Promise<Context['series']> {
  context.phase('ramp')
  pool.tell({ begin: true })
  pool.ramp({ everyUs: 1e6 / ramp, count: clients })
  await allOpen(context, pool, { clients })
  onAll()
  context.phase('measure')
  await context.wait(seconds * 1_000)
  context.phase('end')
  await pool.finish()
  return measuredOf(context)
}

/** Without the first second, which has the end of the phase before in it. */
function measuredOf({ series }: Context) {
  const all = series.filter(({ phase }) => phase === 'measure')
  return all.length > 2 ? all.slice(1) : all
}

export function connectionSum({ opened = 0, closed = 0, dropped = 0 }: Record<string, number>) {
  return {
    text: `connections opened ${opened} = closed ${closed} + dropped ${dropped}`,
    holds: opened === closed + dropped,
  }
}
