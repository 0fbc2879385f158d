// Connects the clients of a scenario, and lets them work.
import type { Pool } from '../generator/pool.ts'
import { secondsOf } from './figures.ts'
import type { Context } from './scenario.ts'

/** When no further client has connected for this long, the rest never will. */
const GIVE_UP_MS = 10_000

/**
 * Opens clients one after the other, and waits until each has connected, or has failed to.
 *
 * @param load `clients`: how many there are then; `count`: which of the workload's counts each raises once
 */
export async function openAll(
  context: Context,
  pool: Pool,
  { clients, everyUs = 1_000, count = 'opened' }: { clients: number; everyUs?: number; count?: string },
) {
  pool.ramp({ everyUs, count: clients })
  const { counts } = pool.totals
  const sofar = () => counts[count] + counts.refused + counts.dropped
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
  await openAll(context, pool, { clients })
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
  await openAll(context, pool, { clients, everyUs: 1e6 / ramp })
  onAll()
  context.phase('measure')
  await context.wait(seconds * 1_000)
  context.phase('end')
  await pool.finish()
  return measuredOf(context)
}

/** Without the first second, which has the end of the phase before in it. */
function measuredOf(context: Context) {
  const all = secondsOf(context, 'measure')
  return all.length > 2 ? all.slice(1) : all
}
