// Puts the primary's state and its events together; its links to gateways and workers are given to it.
import type { Containment, Log, Namespaces, World } from '@keycast/service'
import type { Post } from '@keycast/service/notify'
import type { ChangeStream } from './changes/changes.ts'
import { createFailureLog } from './failure-log.ts'
import { createFetches } from './fetching/fetches.ts'
import { createLongPolls } from './fetching/long-polls.ts'
import { createResults } from './fetching/results.ts'
import { createRefusedWants } from './gateways/answers.ts'
import { createHandedOver } from './gateways/handed-over.ts'
import { createRefusals } from './gateways/refusals.ts'
import { createGatewayWants } from './gateways/wants.ts'
import { createInterest } from './keys/interest.ts'
import { createKeyTable } from './keys/key-table.ts'
import type { FetcherMetrics } from './metrics.ts'
import { createViewers } from './notify/viewers.ts'
import { createKeySources } from './origins/origins.ts'
import { createRecovery } from './origins/recovery.ts'
import { createReconfigure } from './reconfigure.ts'
import { createInTurns } from './timing/in-turns.ts'
import { createRefreshes } from './timing/refreshes-under-way.ts'
import { createSchedule } from './timing/schedule.ts'
import type { TimerWheel } from './timing/timer-wheel.ts'
import type { Tokens } from './tokens/tokens.ts'
import type { Pool } from './workers/leases.ts'

export type Primary = ReturnType<typeof createPrimary>

interface Deps extends World {
  namespaces: Namespaces
  pool: Pool
  /** The link is due the key's latest state. */
  markDue: (link: string, key: string) => void
  wheel: TimerWheel
  metrics: FetcherMetrics
  settings: { inFlightMax: number; cacheBytesMax: number; waitsMax: number }
  containment?: Containment
  log: Pick<Log, 'warn' | 'info'>
  tokens: Pick<Tokens, 'authorizationOf' | 'refused'>
  /** Calls a backend. */
  post: Post
  /** The backends' streams of changes, by the key under which gateways watch each. */
  changes: Map<string, ChangeStream>
}

export function createPrimary({ settings, ...given }: Deps) {
  const { namespaces, markDue, wheel, log, now, random } = given
  const sources = createKeySources({ namespaces, inFlightMax: settings.inFlightMax, now })
  const table = createKeyTable({
    bytesMax: settings.cacheBytesMax,
    onEvicted: entry => refusals.refuseAll(entry),
    onUnpaid: entry => refusals.refuseShares(entry),
  })
  const interest = createInterest({ markDue, wheel, now })
  const inTurns = createInTurns({ wheel, now })
  const failureLog = createFailureLog({
    wheel,
    log,
    now,
    says: 'fetches from a backend fail',
    saysAgain: 'fetches from a backend succeed again',
  })
  const fetches = createFetches({ ...given, sources, inTurns, failureLog })
  const { want } = fetches
  const refreshes = createRefreshes({ namespaces, wheel, onOverdue: interest.notifyWatchers, now })
  const waits = createLongPolls({ ...given, settings })
  const schedule = createSchedule({ wheel, refreshes, want, beginWait: waits.begin, now, random })
  const recovery = createRecovery({ wheel, inTurns, schedule, want, now, random })
  const refused = createRefusedWants()
  const viewers = createViewers({ ...given, table })
  const parts = { ...given, sources, table, interest, inTurns, fetches, schedule, refreshes, recovery, refused }
  const refusals = createRefusals(parts)
  const hubEvents = createGatewayWants({ ...parts, refusals, viewers })
  const results = createResults({ ...parts, refusals })
  fetches.start({
    onResult: results.take,
    onRefused: results.refuse,
    onExpired: refusals.expireAll,
    onAbandoned: table.recount,
  })
  waits.start({
    workOf: fetches.workOf,
    isHeld: entry => table.get(entry.key) === entry,
    want,
    onResult: results.take,
    tryAt: schedule.tryAt,
  })

  const handOver = createHandedOver({ ...parts, results })
  const reconfigure = createReconfigure({ ...parts, refusals })

  return {
    hubEvents,
    handOver,
    lagsMs: refreshes.lagsMs,
    fetches,
    waits,
    sources,
    table,
    interest,
    viewers,
    reconfigure,
  }
}
