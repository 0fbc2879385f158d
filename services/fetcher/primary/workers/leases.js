// Which fetch is with which worker, until when. A result counts only while its lease stands in this table.

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
 * A worker holds the backend to `timeoutMs` and then says so itself: only one that is silent lets this pass, too.
 */
export const LEASE_GRACE_MS = 1_000

/**
 * @template T
 * @param {{ now: () => number }} options `now`: monotonic, in milliseconds
 */
export function createLeases({ now }) {
  /** @type {Map<number, Lease<T>>} */
  const leases = new Map()
  /** How many each worker has. @type {Map<number, number>} */
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
    leases.set(id, { id, worker, deadlineAt: now() + timeoutMs + LEASE_GRACE_MS, what })
    counts.set(worker, countOf(worker) + 1)
    return id
  }

  /**
   * Ends a lease with its result.
   *
   * @param {number} id
   * @param {number} worker who says so
   * @returns {Lease<T> | undefined} `undefined` where that lease is not in force, or not this worker's
   */
  function settle(id, worker) {
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

  /** @returns {Map<number, number>} for each worker with a lease past its deadline, by how many milliseconds at most */
  function overdue() {
    const late = new Map()
    const nowMs = now()
    for (const { worker, deadlineAt } of leases.values()) {
      const lateMs = nowMs - deadlineAt
      if (lateMs >= 0) late.set(worker, Math.max(lateMs, late.get(worker) ?? 0))
    }
    return late
  }

  /** Moves every deadline: this process stood still for so long and heard nobody. @param {number} ms */
  function postpone(ms) {
    for (const lease of leases.values()) lease.deadlineAt += ms
  }

  /** @param {number} worker */
  function countOf(worker) {
    return counts.get(worker) ?? 0
  }

  return { grant, settle, takeFrom, overdue, postpone, countOf }
}
