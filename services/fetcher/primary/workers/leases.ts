// The leases: which worker has which fetch, and until when. A result counts only while its lease stands in this table.

/** A fetch handed to a worker. `what` is the primary's own business. */
interface Lease<T> {
  id: number
  worker: number
  deadlineAt: number
  what: T
}

export type Leases<T> = ReturnType<typeof createLeases<T>>

/**
 * A worker ends a request after `timeoutMs` and reports that. A lease that is still open this much later has lost its
 * worker.
 */
export const LEASE_GRACE_MS = 1_000

/** @param options `now`: by that worker's clock */
export function createLeases<T>({ now }: { now: (worker: number) => number }) {
  const leases = new Map<number, Lease<T>>()
  /** The number of leases of each worker. */
  const counts = new Map<number, number>()
  let lastId = 0

  /** @returns the lease's id */
  function grant(worker: number, timeoutMs: number, what: T): number {
    const id = ++lastId
    leases.set(id, { id, worker, deadlineAt: now(worker) + timeoutMs + LEASE_GRACE_MS, what })
    counts.set(worker, countOf(worker) + 1)
    return id
  }

  /** @returns `undefined` if the lease is not in force, or not this worker's */
  function find(id: number, worker: number): Lease<T> | undefined {
    const lease = leases.get(id)
    return lease?.worker === worker ? lease : undefined
  }

  /**
   * Ends a lease with its result.
   *
   * @param worker the sender of the result
   * @returns `undefined` if the lease is not in force, or not this worker's
   */
  function end(id: number, worker: number): Lease<T> | undefined {
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
  function takeFrom(worker: number): Lease<T>[] {
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
