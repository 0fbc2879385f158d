// The workers that are counted on: who announced itself, and which of them gets a fetch. What a fetch is about is no
// concern of this file.
import { fnv1a } from '@keycast/backbone'
import { createLeases } from './leases.js'
import { createSupervisor } from './supervisor.js'
import { watchForSilence } from './watchdog.js'

/**
 * @typedef {import('../../work/messages.js').Lease} LeaseMessage
 * @typedef {import('../../work/messages.js').Result} Result
 * @typedef {import('../keys/entry.js').Fetch} Fetch
 * @typedef {import('./processes.js').WorkerProcess} WorkerProcess
 * @typedef {ReturnType<typeof createWorkers>} Workers
 *
 * @typedef {object} WorkerMetrics
 * @property {(reason: 'exit' | 'silent') => void} workerLost
 * @property {() => void} lateResult
 *
 * `place`: a lost one's successor takes it, and with it its keys. Without `routingId` it has not announced itself.
 * `credit`: leases it takes at one time. `usage`: as it last said.
 * @typedef {object} Worker
 * @property {number} place
 * @property {WorkerProcess} process
 * @property {Buffer | undefined} routingId
 * @property {number} credit
 * @property {import('../../work/messages.js').Usage} usage
 * @property {number} heardAt
 */

/**
 * @param {object} deps
 * @param {number} deps.count
 * @param {import('./processes.js').Fork} deps.fork
 * @param {(routingId: Buffer, lease: LeaseMessage) => void} deps.send
 * @param {(fetch: Fetch, result: Result, body: Buffer | undefined, delta: Buffer | undefined) => void} deps.onResult
 * @param {(fetch: Fetch) => void} deps.onLost the worker that had it will not answer
 * @param {() => void} deps.onCredit there may be credit again
 * @param {() => import('../timing/backoff.js').Backoff} deps.firstBackoff between restarts
 * @param {Pick<import('../timing/timer-wheel.js').TimerWheel, 'set'>} deps.wheel
 * @param {import('@keycast/service').Every} deps.every
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
  /** By process id of the cluster. @type {Map<number, Worker>} */
  const workers = new Map()
  /** @type {(Worker | undefined)[]} */
  const byPlace = Array(count).fill(undefined)
  /** Those that announced themselves, by routing id. @type {Map<string, Worker>} */
  const byRoute = new Map()
  /** @type {import('./leases.js').Leases<Fetch>} */
  const leases = createLeases({ now })
  const supervisor = createSupervisor({ count, fork, onStart, onEnd, firstBackoff, wheel, now })
  let stopWatch = () => {}
  /** Of those that ended, as far as they told. */
  let endedCpuMs = 0

  function start() {
    stopWatch = watchForSilence({ workers, leases, onSilent, every, now })
    supervisor.start()
  }

  /** @returns {Promise<void>} once no process is left */
  function stop() {
    stopWatch()
    return supervisor.stop()
  }

  /** @param {number} place @param {WorkerProcess} process */
  function onStart(place, process) {
    const usage = { cpuMs: 0, residentBytes: 0 }
    const worker = { place, process, routingId: undefined, credit: 0, usage, heardAt: now() }
    workers.set(process.id, worker)
    byPlace[place] = worker
  }

  /**
   * @param {Buffer} routingId
   * @param {import('../../work/messages.js').Credit | import('../../work/messages.js').ResultMessage} message
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

  /** @param {Buffer} routingId @param {import('../../work/messages.js').Credit} announced */
  function announce(routingId, { worker: id, credit, cpuMs, residentBytes }) {
    const worker = workers.get(id)
    if (!worker) return // one that was given up, and still speaks
    if (worker.routingId && !worker.routingId.equals(routingId)) {
      // Which leases it has, and which of its results were lost with the connection, neither side can say.
      log.warn({ workerPid: worker.process.pid }, 'a worker came by a second connection: killing it')
      return end(worker)
    }
    if (!worker.routingId) {
      log.info({ workerPid: worker.process.pid }, 'a worker takes leases')
      worker.routingId = routingId
      byRoute.set(routingId.toString('latin1'), worker)
    }
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
    let chosen = byPlace[(fnv1a(message.key) >>> 0) % count]
    if (freeOf(chosen) <= 0) {
      for (const worker of workers.values()) if (freeOf(worker) > freeOf(chosen)) chosen = worker
    }
    if (!chosen?.routingId) throw new Error('a lease was to be handed out without credit')
    const id = leases.grant(chosen.process.id, message.timeoutMs, fetch)
    send(chosen.routingId, { type: 'lease', lease: id, ...message })
  }

  /** @param {Worker} worker @param {import('./watchdog.js').Silence} silence */
  function onSilent(worker, { silentMs, overdueMs }) {
    const { pid } = worker.process
    log.warn({ workerPid: pid, silentMs: Math.round(silentMs), overdueMs }, 'a worker fell silent: killing it')
    end(worker)
  }

  /** @param {Worker} worker that is not heard, or not sure to be */
  function end(worker) {
    worker.process.kill()
    giveUp(worker, 'silent')
  }

  /** @param {WorkerProcess} process @param {{ code: number | null, signal: string | null }} how */
  function onEnd({ id, pid }, how) {
    const worker = workers.get(id)
    if (!worker) return
    log.warn({ workerPid: pid, ...how }, 'a worker ended')
    giveUp(worker, 'exit')
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
    byPlace[worker.place] = undefined
    if (worker.routingId) byRoute.delete(worker.routingId.toString('latin1'))
    endedCpuMs += worker.usage.cpuMs
    for (const { what } of leases.takeFrom(worker.process.id)) onLost(what)
    onCredit()
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
