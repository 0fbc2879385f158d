// The leases: which worker has which fetch, and until when. A result counts only while its lease stands in this table.
import type { LeaseResult, Work } from '../../worker-messages.ts'

/** Whoever handed out a lease, and hears of its end. */
export interface Leaseholder<What> {
  ended(what: What, result: LeaseResult, body?: Buffer, delta?: Buffer): void
  /** The worker that had it will not answer. */
  lost(what: What): void
}

/** The part of the workers that all need who hand out leases. `lease` must only be called while there is credit. */
export interface Pool {
  hasCredit: () => boolean
  lease: <What>(holder: Leaseholder<What>, what: What, work: Work, body?: Buffer) => void
}

/** `what` is its holder's own business. */
interface Lease {
  id: number
  worker: number
  deadlineAt: number
  holder: Leaseholder<unknown>
  what: unknown
}

export type Leases = ReturnType<typeof createLeases>

/**
 * A worker ends a request after `timeoutMs` and reports that. A lease that is still open this much later has lost its
 * worker.
 */
export const LEASE_GRACE_MS = 1_000

/** @param options `now`: by that worker's clock */
export function createLeases({ now }: { now: (worker: number) => number }) {
  const leases = new Map<number, Lease>()
  /** The number of leases of each worker. */
  const counts = new Map<number, number>()
  let lastId = 0

  /** @returns the lease's id */
  function grant<What>(worker: number, timeoutMs: number, holder: Leaseholder<What>, what: What): number {
    const id = ++lastId
    leases.set(id, { id, worker, deadlineAt: now(worker) + timeoutMs + LEASE_GRACE_MS, holder, what })
    counts.set(worker, countOf(worker) + 1)
    return id
  }

  /** @returns `undefined` if the lease is not in force, or not this worker's */
  function find(id: number, worker: number): Lease | undefined {
    const lease = leases.get(id)
    return lease?.worker === worker ? lease : undefined
  }

  /**
   * Ends a lease with its result.
   *
   * @param worker the sender of the result
   * @returns `undefined` if the lease is not in force, or not this worker's
   */
  function end(id: number, worker: number): Lease | undefined {
    const lease = find(id, worker)
    if (!lease) return undefined
    leases.delete(id)
    counts.set(worker, countOf(worker) - 1)
    return lease
  }

  /**
   * Ends all leases of a worker that will bring no more results.
   *
   * @returns the oldest first
   */
  function takeFrom(worker: number): Lease[] {
    const taken = [...leases.values()].filter(lease => lease.worker === worker)
    for (const { id } of taken) leases.delete(id)
    counts.delete(worker)
    return taken
  }

  /** @returns for each worker with an overdue lease, by how many milliseconds at most */
  function overdue(): Map<number, number> {
    const overdueMs = new Map()
    for (const { worker, deadlineAt } of leases.values()) {
      const overMs = now(worker) - deadlineAt
      if (overMs >= 0) overdueMs.set(worker, Math.max(overMs, overdueMs.get(worker) ?? 0))
    }
    return overdueMs
  }

  function countOf(worker: number) {
    return counts.get(worker) ?? 0
  }

  return { grant, find, end, takeFrom, overdue, countOf }
}
