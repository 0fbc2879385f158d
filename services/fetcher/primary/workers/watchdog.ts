// Finds workers that hang: silent ones, and those that keep a lease long after its deadline. All times are by the clock of
// each worker (worker-clock.ts): one that is given no CPU does not hang.
import { SILENT_MS } from '@keycast/service'
import type { Worker } from './workers.ts'

/** `overdueMs`: of its lease that is most overdue. */
export interface Silence {
  silentMs: number
  overdueMs: number | undefined
}

/**
 * With an overdue lease this much silence is enough. A worker that still beats is behind, not dead: killing it would
 * move its work to others that are behind as well, and cost the start of a process on top.
 */
export const SILENT_OVERDUE_MS = 1_500

/** A lease this much overdue is lost, though its worker beats: the worker may have dropped it. */
export const LOST_LEASE_MS = 10_000

/** Time for Node, this program and its modules to start on a busy machine. */
export const STARTUP_MS = 15_000

/** All workers are checked this often: a dead one is found this much too late at most. */
export const SWEEP_MS = 100

interface Deps {
  /** Those that are counted on. */
  workers: Map<number, Worker>
  leases: { overdue: () => Map<number, number> }
  /** The worker is to be killed. */
  onSilent: (worker: Worker, silence: Silence) => void
}

/** @returns looks at all workers */
export function createWatchdog({ workers, leases, onSilent }: Deps): () => void {
  return () => {
    for (const { clock } of workers.values()) clock.advance()
    const overdue = leases.overdue()
    for (const worker of [...workers.values()]) {
      const overdueMs = overdue.get(worker.process.id)
      const silentMs = worker.clock.nowMs - worker.heardAt
      const isLost = overdueMs !== undefined && overdueMs >= LOST_LEASE_MS
      if (isLost || silentMs >= patienceWith(worker, overdueMs)) onSilent(worker, { silentMs, overdueMs })
    }
  }
}

/** The silence that a worker is allowed. */
function patienceWith({ routingId }: Worker, overdueMs: number | undefined) {
  if (!routingId) return STARTUP_MS
  return overdueMs === undefined ? SILENT_MS : SILENT_OVERDUE_MS
}
