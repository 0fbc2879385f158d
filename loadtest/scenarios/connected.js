// What scenarios share that begin by connecting everybody.

/** A handshake that takes longer than this after the last was due has failed. */
const PATIENCE_MS = 20_000

/**
 * Waits until every client has connected, or has failed to.
 *
 * @param {import('../scenario.js').Context} context
 * @param {import('../generator/pool.js').Pool} pool
 * @param {{ clients: number, ramp: number, count?: string }} load `count`: which of the workload's counts each raises once
 */
export async function allOpen(context, pool, { clients, ramp, count = 'opened' }) {
  const { counts } = pool.totals
  const over = () => (counts[count] ?? 0) + (counts.refused ?? 0) + (counts.dropped ?? 0) >= clients
  await context.until(over, (clients / ramp) * 1_000 + PATIENCE_MS)
}

/** @param {Record<string, number>} counts */
export function connectionSum({ opened = 0, closed = 0, dropped = 0 }) {
  return {
    text: `connections opened ${opened} = closed ${closed} + dropped ${dropped}`,
    holds: opened === closed + dropped,
  }
}
