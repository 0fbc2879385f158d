// Clients that watch a key which does not change: what does it cost just to have them there?
import { readDuration, readInteger } from '../command-line/options.ts'
import { openAll } from './connect-all.ts'
import type { Scenario } from './scenario.ts'

/** Looks at the memory on the way up: enough for a line through them. */
const STEPS = 5

export const connections: Scenario = {
  name: 'connections',
  about: 'Holds idle clients, each subscribed to a key that does not change: memory per session of gateway and proxy.',
  rates: [{ count: 'opened', label: 'connections opened' }],
  counts: ['opened', 'refused', 'dropped', 'closed', 'requested', 'subscribed', 'refusals', 'values', 'unexpected'],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(STEPS, 100_000), 5_000)
      .option('--ramp <n>', 'clients to connect per second', readInteger(1, 10_000), 1_000)
      .option('--settle <duration>', 'pause before each measurement', readDuration, 3_000)
      .option('--key <key>', 'the key to subscribe; with --url choose one that does not change', 'text:1')
  },

  content: () => ({ idle: true, collectable: true }),
  problem: ({ start, pid }) =>
    start === undefined && pid.length === 0
      ? 'connections needs --pid of what holds them, as in --pid gateway=4711'
      : undefined,

  async run(context, { clients, ramp, settle, key }) {
    const pool = await context.startPool({ workload: 'subscribe', settings: { keys: [key] }, clientsMax: clients })
    const looks: { sessions: number; bytes: Record<string, number> }[] = []
    for (let step = 1; step <= STEPS && context.ended() === undefined; step++) {
      const count = Math.round((clients * step) / STEPS)
      context.phase('connect')
      await openAll(context, pool, { clients: count, count: 'subscribed', everyUs: 1e6 / ramp })
      context.phase('rest')
      if (!(await context.wait(settle))) break
      await context.watcher.collectGarbage()
      looks.push({ sessions: pool.open(), bytes: context.watcher.residentByRole() })
    }
    context.phase('end')
    await pool.finish()

    const { counts, reasons } = pool.totals
    const roles = ['gateway', 'proxy'].filter(role => looks.some(({ bytes }) => bytes[role] !== undefined))
    const kilobytes = Object.fromEntries(
      roles.map(role => [role, slope(looks.map(({ sessions, bytes }) => [sessions, bytes[role] / 1_000]))]),
    )
    const { requested, subscribed, refusals, lost } = counts
    return {
      headline: `${(looks.at(-1)?.sessions ?? 0).toLocaleString('en')} idle subscribed clients: ${roles.map(role => `${kilobytes[role]?.toFixed(1) ?? '—'} KB a session in the ${role}`).join(', ')}.`,
      figures: Object.fromEntries(
        roles.map(role => [
          `${role}KilobytesPerSession`,
          {
            label: `Memory per session, ${role}`,
            value: kilobytes[role],
            unit: 'KB',
            better: 'lower' as const,
          },
        ]),
      ),
      counts,
      sums: [
        {
          text: `subscriptions asked for ${requested} = accepted ${subscribed} + refused ${refusals} + lost ${lost}`,
          holds: requested === subscribed + refusals + lost,
        },
      ],
      reasons,
      tables: [
        {
          title: 'Resident memory',
          columns: ['sessions', ...roles.map(role => `${role}, MB`)],
          rows: looks.map(({ sessions, bytes }) => [sessions, ...roles.map(role => bytes[role] / 1e6)]),
        },
      ],
      notes: [
        'Memory per session is the slope of a line through these: what a process takes without clients is not in it.',
        context.target.kind === 'given'
          ? "A running system's garbage cannot be collected from here: it is part of its memory, and makes the line uncertain."
          : 'Garbage was collected before each look.',
      ],
    }
  },
}

/**
 * The slope of the line that fits best (least squares).
 *
 * @param points x, y
 */
export function slope(points: number[][]): number | undefined {
  if (points.length < 2) return undefined
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / points.length
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / points.length
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  return spread === 0 ? undefined : points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread
}
