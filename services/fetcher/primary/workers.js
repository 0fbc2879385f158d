// The workers: keeps as many as told alive, hands leases to those with credit, and takes them from those that are
// silent. What a fetch is about is no concern of this file.
import { createLeases } from './leases.js'

/**
 * @typedef {import('../work.js').Lease} LeaseMessage
 * @typedef {import('../work.js').Outcome} Outcome
 * @typedef {import('./entry.js').Fetch} Fetch
 * @typedef {import('./processes.js').WorkerProcess} WorkerProcess
 * @typedef {ReturnType<typeof createWorkers>} Workers
 *
 * @typedef {object} WorkerMetrics
 * @property {(reason: 'exit' | 'silent') => void} workerLost
 * @property {() => void} lateResult
 *
 * A place for one worker; a lost one's successor takes its place, and with it its keys.
 * @typedef {object} Slot
 * @property {number} index
 * @property {Worker | undefined} worker
 * @property {import('./backoff.js').Backoff | undefined} backoff while workers here do not live long
 *
 * `credit`: leases it takes at one time. Without `routingId` it has not announced itself.
 * @typedef {object} Worker
 * @property {WorkerProcess} process
 * @property {Slot} slot
 * @property {Buffer | undefined} routingId
 * @property {number} credit
 * @property {import('../work.js').Usage} usage as it last said
 * @property {number} startedAt
 * @property {number} heardAt
 */

/** Three beats: one that is late is no silence. */
export const SILENT_MS = 3_000

/**
 * With a lease overdue this much silence is enough. A worker that speaks is behind, not gone: killing it would put its
 * work on others who are behind as well, and cost the start of a process on top.
 */
export const SILENT_OVERDUE_MS = 1_500

/** A lease this much overdue is lost, whatever its worker says: a program that beats may have dropped it. */
export const LOST_LEASE_MS = 10_000

/** Node, this program and its modules on a machine that has much else to do. */
export const STARTUP_MS = 15_000

/** One that lived this long did not fail by starting: its successor starts at once. */
const LONG_LIFE_MS = 10_000

/** How often silence is looked for: what a lease may take longer than its deadline. */
export const SWEEP_MS = 100

/** A sweep later than this was no busy moment, but a process that was stopped or blocked. */
const LATE_MS = 500

/** To go by itself when told; there is nothing it has to finish. */
const DISCONNECT_MS = 1_000

/**
 * @param {object} deps
 * @param {number} deps.count
 * @param {import('./processes.js').Fork} deps.fork
 * @param {(routingId: Buffer, lease: LeaseMessage) => void} deps.send
 * @param {(fetch: Fetch, outcome: Outcome, body: Buffer | undefined, delta: Buffer | undefined) => void} deps.onResult
 * @param {(fetch: Fetch) => void} deps.onLost the worker that had it will not answer
 * @param {() => void} deps.onCredit there may be credit again
 * @param {() => import('./backoff.js').Backoff} deps.firstBackoff between restarts
 * @param {Pick<import('./timer-wheel.js').TimerWheel, 'set'>} deps.wheel
 * @param {import('./timer-wheel.js').Every} deps.every
 * @param {WorkerMetrics} deps.metrics
 * @param {Pick<import('@keycast/service').Log, 'info' | 'warn' | 'error'>} deps.log
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createWorkers({
  count,
  fork,
  send,
  onResult,
  onLost,
  onCredit,
  firstBackoff,
  wheel,
  every,
  metrics,
  log,
  now,
}) {
  /** @type {Slot[]} */
  const slots = Array.from({ length: count }, (_, index) => ({ index, worker: undefined, backoff: undefined }))
  /** Those that are counted on, by process id of the cluster. @type {Map<number, Worker>} */
  const workers = new Map()
  /** Those that announced themselves, by routing id. @type {Map<string, Worker>} */
  const byRoute = new Map()
  /** Processes that have not ended, whether counted on or not. @type {Set<WorkerProcess>} */
  const processes = new Set()
  /** @type {import('./leases.js').Leases<Fetch>} */
  const leases = createLeases({ now })
  let stopSweep = () => {}
  let sweptAt = 0
  let stopping = false
  /** Of those that ended, as far as they told. */
  let endedCpuMs = 0
  let onAllEnded = () => {}

  function start() {
    sweptAt = now()
    stopSweep = every(SWEEP_MS, sweep)
    for (const slot of slots) startIn(slot)
  }

  /** @param {Slot} slot */
  function startIn(slot) {
    if (stopping) return
    const process = fork(how => onExit(worker, how))
    /** @type {Worker} */
    const worker = {
      process,
      slot,
      routingId: undefined,
      credit: 0,
      usage: { cpuMs: 0, residentBytes: 0 },
      startedAt: now(),
      heardAt: now(),
    }
    slot.worker = worker
    workers.set(process.id, worker)
    processes.add(process)
  }

  /**
   * @param {Buffer} routingId
   * @param {import('../work.js').Credit | import('../work.js').Result} message
   * @param {Buffer | undefined} body
   * @param {Buffer} [delta]
   */
  function onMessage(routingId, message, body, delta) {
    if (message.type === 'credit') return announce(routingId, message)
    const worker = byRoute.get(routingId.toString('latin1'))
    if (worker) worker.heardAt = now()
    const lease = worker && leases.settle(message.lease, worker.process.id)
    if (lease) onResult(lease.what, message, body, delta)
    else metrics.lateResult()
  }

  /** @param {Buffer} routingId @param {import('../work.js').Credit} announced */
  function announce(routingId, { worker: id, credit, cpuMs, residentBytes }) {
    const worker = workers.get(id)
    if (!worker) return // one that was given up, and still speaks
    if (worker.routingId && !worker.routingId.equals(routingId)) {
      // Which leases it has, and which of its results were lost with the connection, neither side can say.
      log.warn({ workerPid: worker.process.pid }, 'a worker came by a second connection: killing it')
      return end(worker)
    }
    if (!worker.routingId) log.info({ workerPid: worker.process.pid }, 'a worker takes leases')
    if (!worker.routingId) byRoute.set(routingId.toString('latin1'), worker)
    worker.routingId ??= routingId
    worker.heardAt = now()
    worker.credit = credit
    worker.usage = { cpuMs, residentBytes }
    onCredit()
  }

  function hasCredit() {
    for (const worker of workers.values()) if (freeOf(worker) > 0) return true
    return false
  }

  /** @param {Worker | undefined} worker */
  function freeOf(worker) {
    return worker?.routingId ? worker.credit - leases.countOf(worker.process.id) : 0
  }

  /**
   * Hands a fetch to the worker its key belongs to, or to the freest where that one has enough to do. There must be
   * credit.
   *
   * @param {Fetch} fetch
   * @param {Omit<LeaseMessage, 'type' | 'lease'>} message
   */
  function lease(fetch, message) {
    let chosen = slots[hashOf(message.key) % slots.length].worker
    if (freeOf(chosen) <= 0) {
      for (const worker of workers.values()) if (freeOf(worker) > freeOf(chosen)) chosen = worker
    }
    if (!chosen?.routingId) throw new Error('a lease was to be handed out without credit')
    const id = leases.grant(chosen.process.id, message.timeoutMs, fetch)
    send(chosen.routingId, { type: 'lease', lease: id, ...message })
  }

  function sweep() {
    const nowMs = now()
    const standstillMs = nowMs - sweptAt - SWEEP_MS
    sweptAt = nowMs
    // Who does not listen cannot call others silent.
    if (standstillMs > LATE_MS) {
      leases.postpone(standstillMs)
      for (const worker of workers.values()) worker.heardAt += standstillMs
    }
    const overdue = leases.overdue()
    for (const worker of [...workers.values()]) {
      const overdueMs = overdue.get(worker.process.id)
      const silentMs = nowMs - worker.heardAt
      if (silentMs < patienceWith(worker, overdueMs) && (overdueMs ?? 0) < LOST_LEASE_MS) continue
      const { pid } = worker.process
      log.warn({ workerPid: pid, silentMs: Math.round(silentMs), overdueMs }, 'a worker fell silent: killing it')
      end(worker)
    }
  }

  /** @param {Worker} worker that is not heard, or not sure to be */
  function end(worker) {
    worker.process.kill()
    giveUp(worker, 'silent')
  }

  /** @param {Worker} worker @param {{ code: number | null, signal: string | null }} how */
  function onExit(worker, how) {
    processes.delete(worker.process)
    if (stopping) {
      if (processes.size === 0) onAllEnded()
      return
    }
    if (workers.has(worker.process.id)) {
      log.warn({ workerPid: worker.process.pid, ...how }, 'a worker ended')
      giveUp(worker, 'exit')
    }
    replace(worker)
  }

  /**
   * Counts on a worker no more: whatever it may still say is void.
   *
   * @param {Worker} worker
   * @param {'exit' | 'silent'} reason
   */
  function giveUp(worker, reason) {
    metrics.workerLost(reason)
    workers.delete(worker.process.id)
    endedCpuMs += worker.usage.cpuMs
    if (worker.routingId) byRoute.delete(worker.routingId.toString('latin1'))
    worker.slot.worker = undefined
    for (const { what } of leases.takeFrom(worker.process.id)) onLost(what)
    onCredit()
  }

  /** @param {Worker} worker that ended */
  function replace({ slot, startedAt }) {
    if (now() - startedAt >= LONG_LIFE_MS) {
      slot.backoff = undefined
      return startIn(slot)
    }
    slot.backoff = slot.backoff?.next() ?? firstBackoff()
    wheel.set(now() + slot.backoff.duration, () => startIn(slot))
  }

  /** Tells all to go, and ends those that do not. @returns {Promise<void>} once none is left */
  async function stop() {
    stopping = true
    stopSweep()
    if (processes.size === 0) return
    const ended = new Promise(resolve => {
      onAllEnded = () => resolve(undefined)
    })
    for (const process of processes) process.disconnect()
    const timer = setTimeout(() => {
      for (const process of processes) process.kill()
    }, DISCONNECT_MS)
    await ended
    clearTimeout(timer)
  }

  function stats() {
    let ready = 0
    let credit = 0
    let cpuMs = endedCpuMs
    let residentBytes = 0
    for (const worker of workers.values()) {
      if (worker.routingId) ready++
      credit += Math.max(0, freeOf(worker))
      cpuMs += worker.usage.cpuMs
      residentBytes += worker.usage.residentBytes
    }
    return { ready, credit, cpuMs, residentBytes }
  }

  return {
    start,
    stop,
    onMessage,
    hasCredit,
    lease,
    stats,
    /** Of those that take leases. */
    pids: () => [...workers.values()].filter(({ routingId }) => routingId).map(({ process }) => process.pid),
  }
}

/** How long a worker may be silent. @param {Worker} worker @param {number | undefined} overdueMs */
function patienceWith({ routingId }, overdueMs) {
  if (!routingId) return STARTUP_MS
  return overdueMs === undefined ? SILENT_MS : SILENT_OVERDUE_MS
}

/** FNV-1a over UTF-16 code units, 32 bits: keys are ASCII. @param {string} text */
function hashOf(text) {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
