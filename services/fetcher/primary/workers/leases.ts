// The leases: which worker has which fetch, and until when. A result counts only while its lease stands in this table.

/**
 * A fetch handed to a worker. `what` is the primary's own business.
 *
 * @template T
 * @typedef {{ id: number, worker: number, deadlineAt: number, what: T }} Lease
 */

/**
 * @template T
 * @typedef {ReturnType<typeof createLeases<T>>} Leases
 */

/**
 * A worker ends a request after `timeoutMs` and reports that. A lease that is still open this much later has lost its
 * worker.
 */
export const LEASE_GRACE_MS = 1_000

/**
 * @template T
 * @param {{ now: (worker: number) => number }} options `now`: by that worker's clock
 */
export function createLeases({ now }) {
  /** @type {Map<number, Lease<T>>} */
  const leases = new Map()
  /** The number of leases of each worker. @type {Map<number, number>} */
  const counts = new Map()
  let lastId = 0

  /**
   * @param {number} worker
   * @param {number} timeoutMs
   * @param {T} what
   * @returns {number} the lease's id
   */
  function grant(worker, timeoutMs, what) {
    const id = ++lastId
    leases.set(id, { id, worker, deadlineAt: now(worker) + timeoutMs + LEASE_GRACE_MS, what })
    counts.set(worker, countOf(worker) + 1)
    return id
  }

  /**
   * Ends a lease with its result.
   *
   * @param {number} id
   * @param {number} worker the sender of the result
   * @returns {Lease<T> | undefined} `undefined` if the lease is not in force, or not this worker's
   */
  function end(id, worker) {
    const lease = leases.get(id)
    if (lease?.worker !== worker) return undefined
    leases.delete(id)
    counts.set(worker, countOf(worker) - 1)
    return lease
  }

  /**
   * Ends all leases of a worker that will bring no more results.
   *
   * @param {number} worker
   * @returns {Lease<T>[]} the oldest first
   */
  function takeFrom(worker) {
    const taken = [...leases.values()].filter(lease => lease.worker === worker)
    for (const { id } of taken) leases.delete(id)
    counts.delete(worker)
    return taken
  }

  /** @returns {Map<number, number>} for each worker with an overdue lease, by how many milliseconds at most */
  function overdue() {
    const overdueMs = new Map()
    for (const { worker, deadlineAt } of leases.values()) {
      const overMs = now(worker) - deadlineAt
      if (overMs >= 0) overdueMs.set(worker, Math.max(overMs, overdueMs.get(worker) ?? 0))
    }
    return overdueMs
  }

  /** @param {number} worker */
  function countOf(worker) {
    return counts.get(worker) ?? 0
  }

  return { grant, end, takeFrom, overdue, countOf }
}
