// The measurement of `ticker` and `fanout`: all clients watch the same ticking keys, and every change is counted at
// every client.
import { nowUs } from '../generator/clock.ts'
import type { Change, SubscribeOutcome } from '../generator/workloads/subscribe.ts'
import { openAll } from './connect-all.ts'
import { cpuFigures, secondsOf, sumOf } from './figures.ts'
import type { Context } from './scenario.ts'

/** The counts of scenarios that measure so. */
export const tickCounts = [
  'changes',
  'sent',
  'received',
  'replaced',
  'lost',
  'opened',
  'refused',
  'dropped',
  'closed',
  'requested',
  'subscribed',
  'refusals',
  'values',
  'currents',
  'stale',
  'measured',
  'wentBack',
  'outside',
  'unexpected',
]
/** For deliveries still under way when the last change is made: on a busy machine the generator may be seconds behind. */
const SETTLE_MS = 5_000
/**
 * Between the last subscription and the first change that counts. The generator's processes are told meanwhile: a change
 * that reached one before it was told would be missing.
 */
const CALM_MS = 500

/** The gateways' counter of values that were replaced by newer ones before they were sent. */
const REPLACED = 'conflated_total'

/**
 * @param load `ramp`: clients opened a second; `each`: 1 where each client watches one of the keys, else it watches
 *   all; `changes`: how many are measured, of each key; `changeMs`: from one change of a key to the next, as the system
 *   was told
 */
export async function measureTicks(
  context: Context,
  {
    clients,
    ramp,
    keys,
    each,
    changes,
    changeMs,
  }: { clients: number; ramp: number; keys: string[]; each?: 1; changes: number; changeMs: number },
) {
  const pool = await context.startPool({ workload: 'subscribe', settings: { keys, each }, clientsMax: clients })
  context.phase('ramp')
  await openAll(context, pool, { clients, count: 'subscribed', everyUs: 1e6 / ramp })

  context.phase('measure')
  const subscribers = pool.totals.counts.subscribed
  const replacedBefore = await context.watcher.exported(REPLACED)
  const fromUs = nowUs() + CALM_MS * 1_000
  pool.tell({ fromUs, changes })
  const expectedMs = changes * changeMs
  const everyone = () => pool.totals.counts.measured >= changes * subscribers * (each ?? keys.length)
  await context.until(everyone, CALM_MS + expectedMs * 1.2 + 2 * changeMs + SETTLE_MS)
  context.phase('end')
  const replacedAfter = await context.watcher.exported(REPLACED)
  const outcomes = (await pool.finish()) as SubscribeOutcome[]

  const seen = unite(
    outcomes.map(outcome => outcome.changes),
    changes,
  )
  const { counts, reasons, histograms } = pool.totals
  const subscribersOf = (key: string) => sumOf(outcomes, outcome => outcome.subscribers[key] ?? 0)
  const watched = new Map(keys.map(key => [key, subscribersOf(key)]))
  const sent = sumOf(seen, ({ key }) => watched.get(key) ?? 0)
  const received = sumOf(seen, change => change.delivered)
  const missing = sent - received
  // Some may have been replaced of a change made before those that are counted.
  const replaced = Math.max(0, Math.min(missing, (replacedAfter ?? 0) - (replacedBefore ?? 0)))
  const lost = missing - replaced
  const measured = secondsOf(context, 'measure')
  const seconds = seen.length === 0 ? 0 : (seen[seen.length - 1].stampUs - seen[0].stampUs) / 1e6
  const incomplete = seen.filter(({ key, delivered }) => delivered < (watched.get(key) ?? 0)).length
  const due = changes * keys.filter(key => (watched.get(key) ?? 0) > 0).length

  return {
    seen,
    subscribers,
    replaced,
    lost,
    measured,
    perSecond: seconds === 0 ? undefined : received / seconds,
    cpu: cpuFigures(measured.slice(1, -1), 'measured'),
    counts: { ...counts, changes: seen.length, sent, received, replaced, lost },
    sums: [
      {
        text: `${seen.length} changes, each to all its subscribers, of ${subscribers} in all = ${sent} sent = received ${received} + replaced by newer ones ${replaced} + lost ${lost}`,
        holds: missing >= 0,
      },
      {
        text: `every delivery timed: ${histograms.latency.totalCount} latencies = ${counts.measured} deliveries counted one by one`,
        holds:
          histograms.latency.totalCount === counts.measured &&
          counts.measured ===
            sumOf(
              outcomes.flatMap(outcome => outcome.changes),
              change => change.delivered,
            ),
      },
      {
        text: `values that went back in time: ${counts.wentBack}; unexpected messages: ${counts.unexpected}`,
        holds: counts.wentBack + counts.unexpected === 0,
      },
      ...(replacedAfter === undefined
        ? []
        : [{ text: `deliveries that neither came nor were replaced: ${lost}`, holds: lost === 0 }]),
      // A run that ended early has fewer changes, too.
      ...(context.ended() === undefined
        ? [{ text: `changes seen ${seen.length} = changes due ${due}`, holds: seen.length === due }]
        : []),
    ],
    latency: histograms.latency,
    reasons,
    notes: [
      `Values are states, not events: one that a client has not been sent yet is replaced by the next, as the gateways count it${replacedAfter === undefined ? ' (here they were not asked, and lost stands for both)' : ''}. ${incomplete} of ${seen.length} changes did not reach everybody.`,
      ...(replacedAfter === undefined
        ? []
        : ['Gateways count every state they replaced: a lost delivery could hide behind one that was no value.']),
    ],
  }
}

/**
 * The changes as all processes saw them, of each key the first `count` in time. A process that missed one altogether may
 * have taken one more at the end; that one is no part of the measurement.
 */
export function unite(outcomes: Change[][], count: number) {
  const united = new Map<string, Change>()
  for (const change of outcomes.flat()) {
    const name = `${change.key} ${change.stampUs}`
    const known = united.get(name)
    if (known === undefined) {
      united.set(name, { ...change })
      continue
    }
    known.delivered += change.delivered
    known.lastUs = Math.max(known.lastUs, change.lastUs)
  }
  const taken = new Map<string, number>()
  return [...united.values()]
    .sort((a, b) => a.stampUs - b.stampUs)
    .filter(({ key }) => {
      const number = (taken.get(key) ?? 0) + 1
      taken.set(key, number)
      return number <= count
    })
}

/** The headline if nothing made after the beginning of the measurement arrived before its end. */
export const NOTHING_CAME =
  'No change made during the measurement reached anybody before its end: the system, or the generator, is far behind.'

/** From a change to the last client it reached. @returns milliseconds, mean */
export function meanSpreadMs(changes: Change[]): number | undefined {
  return changes.length === 0
    ? undefined
    : sumOf(changes, change => change.lastUs - change.stampUs) / changes.length / 1_000
}
