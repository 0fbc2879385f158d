// Waits for all clients of a scenario to connect, and checks that every connection is accounted for.

/** When no further client has connected for this long, the rest never will. */
const GIVE_UP_MS = 10_000

/**
 * Waits until every client has connected, or has failed to.
 *
 * @param {import('./scenario.js').Context} context
 * @param {import('../generator/pool.js').Pool} pool
 * @param {{ clients: number, count?: string }} load `count`: which of the workload's counts each raises once
 */
export async function allOpen(context, pool, { clients, count = 'opened' }) {
  const { counts } = pool.totals
  const sofar = () => (counts[count] ?? 0) + (counts.refused ?? 0) + (counts.dropped ?? 0)
  for (;;) {
    const before = sofar()
    // Counts come once a second.
    if (await context.until(() => sofar() >= clients, GIVE_UP_MS)) return
    if (context.ended() !== undefined || sofar() === before) return
  }
}

/** @param {Record<string, number>} counts */
export function connectionSum({ opened = 0, closed = 0, dropped = 0 }) {
  return {
    text: `connections opened ${opened} = closed ${closed} + dropped ${dropped}`,
    holds: opened === closed + dropped,
  }
}
