// The workers in service, and the choice of the one that gets a fetch. This file does not look at what a fetch is
// about.
import { fnv1a } from '@keycast/backbone'
import { createAwakeClock } from '@keycast/service'
import { createLeases } from './leases.ts'
import { createSupervisor } from './supervisor.ts'
import { createWatchdog, SWEEP_MS } from './watchdog.ts'
import { createWorkerClock, readMainThread } from './worker-clock.ts'

/**
 * @typedef {import('../../work/messages.ts').Lease} LeaseMessage
 * @typedef {import('../../work/messages.ts').Result} Result
 * @typedef {import('../fetching/fetches.ts').Fetch | import('../authorize/asks.ts').Ask} Leased a fetch, or a question whether a viewer may read
 * @typedef {import('./processes.ts').WorkerProcess} WorkerProcess
 * @typedef {ReturnType<typeof createWorkers>} Workers
 *
 * @typedef {object} WorkerMetrics
 * @property {(reason: 'exit' | 'silent') => void} workerLost
 * @property {() => void} lateResult the result of a lease that is not in force any more
 *
 * The processes of the workers, and the socket to them. `send` takes a worker's routing id, always the same buffer.
 * @typedef {{ fork: import('./processes.ts').Fork, send: (routingId: Buffer, lease: LeaseMessage) => void }} Connection
 *
 * The ends of leases. `onLost`: the worker that had the fetch will not answer. `onCredit`: there may be credit again.
 * @typedef {object} WorkerEvents
 * @property {(leased: Leased, result: Result, body: Buffer | undefined, delta: Buffer | undefined) => void} onResult
 * @property {(leased: Leased) => void} onLost
 * @property {() => void} onCredit
 *
 * `place`: a lost worker's successor takes it, and with it its keys. Without `routingId` the worker has not announced
 * itself. `credit`: leases it takes at one time. `usage`: as it last said.
 * @typedef {object} Worker
 * @property {number} place
 * @property {WorkerProcess} process
 * @property {Buffer | undefined} routingId
 * @property {number} credit
 * @property {import('../../work/messages.ts').Usage} usage
 * @property {import('./worker-clock.ts').WorkerClock} clock
 * @property {number} heardAt by its clock
 */

/**
 * @param {object} deps
 * @param {number} deps.count
 * @param {() => import('../timing/backoff.ts').Backoff} deps.firstBackoff between restarts
 * @param {Pick<import('../timing/timer-wheel.ts').TimerWheel, 'set'>} deps.wheel
 * @param {import('@keycast/service').Every} deps.every
 * @param {WorkerMetrics} deps.metrics
 * @param {Pick<import('@keycast/service').Log, 'info' | 'warn' | 'error'>} deps.log
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {typeof readMainThread} [deps.readThread]
 */
export function createWorkers({ count, firstBackoff, wheel, every, metrics, log, now, readThread = readMainThread }) {
  /** By process id of the cluster. @type {Map<number, Worker>} */
  const workers = new Map()
  /** @type {(Worker | undefined)[]} */
  const byPlace = Array(count).fill(undefined)
  /** Workers that announced themselves, by routing id. @type {Map<string, Worker>} */
  const byRoute = new Map()
  const awake = createAwakeClock({ periodMs: SWEEP_MS, every, now })
  /** @type {import('./leases.ts').Leases<Leased>} */
  const leases = createLeases({ now: id => workers.get(id)?.clock.now() ?? 0 })
  /** @type {Connection['send']} */
  let send
  /** @type {WorkerEvents} */
  let events
  /** @type {import('./supervisor.ts').Supervisor} */
  let supervisor
  let onAllReady = () => {}
  /** The usage of ended workers, as of their last beats. */
  let endedCpuMs = 0

  /**
   * Starts the processes. The lease events are given here and not at creation: fetches need these workers, and the
   * events need the fetches.
   *
   * @param {Connection} connection
   * @param {WorkerEvents} workerEvents
   * @returns {Promise<void>} once every worker takes leases
   */
  function start(connection, workerEvents) {
    send = connection.send
    events = workerEvents
    supervisor = createSupervisor({ count, fork: connection.fork, onStart, onEnd, firstBackoff, wheel, now })
    awake.start(createWatchdog({ workers, leases, onSilent }))
    const allReady = new Promise(resolve => {
      onAllReady = () => resolve(undefined)
    })
    supervisor.start()
    return allReady
  }

  /** @returns {Promise<void>} once no process is left */
  function stop() {
    awake.stop()
    return supervisor.stop()
  }

  /** @param {number} place @param {WorkerProcess} process */
  function onStart(place, process) {
    const usage = { cpuMs: 0, residentBytes: 0 }
    const clock = createWorkerClock({ read: () => readThread(process.pid), now: awake.now })
    const worker = { place, process, routingId: undefined, credit: 0, usage, clock, heardAt: clock.now() }
    workers.set(process.id, worker)
    byPlace[place] = worker
  }

  /**
   * @param {Buffer} routingId
   * @param {import('../../work/messages.ts').Credit | import('../../work/messages.ts').ResultMessage} message
   * @param {Buffer | undefined} body
   * @param {Buffer} [delta]
   */
  function onMessage(routingId, message, body, delta) {
    if (message.type === 'credit') return announce(routingId, message)
    const worker = byRoute.get(routingId.toString('latin1'))
    if (worker) worker.heardAt = worker.clock.now()
    const lease = worker && leases.end(message.lease, worker.process.id)
    if (lease) events.onResult(lease.what, message, body, delta)
    else metrics.lateResult()
  }

  /** Others get the leases of a worker whose word could not be taken. @param {Buffer} routingId */
  function end(routingId) {
    const worker = byRoute.get(routingId.toString('latin1'))
    if (!worker) return
    log.warn({ workerPid: worker.process.pid }, 'what a worker said could not be taken: killing it')
    kill(worker)
  }

  /** @param {Buffer} routingId @param {import('../../work/messages.ts').Credit} announced */
  function announce(routingId, { worker: id, credit, cpuMs, residentBytes }) {
    const worker = workers.get(id)
    if (!worker) return // it was given up, and still speaks
    if (worker.routingId && !worker.routingId.equals(routingId)) {
      // Neither side can say which leases the worker has, and which results were lost with the connection.
      log.warn({ workerPid: worker.process.pid }, 'a worker came by a second connection: killing it')
      return kill(worker)
    }
    if (!worker.routingId) {
      log.info({ workerPid: worker.process.pid }, 'a worker takes leases')
      worker.routingId = routingId
      byRoute.set(routingId.toString('latin1'), worker)
    }
    worker.heardAt = worker.clock.now()
    worker.credit = credit
    worker.usage = { cpuMs, residentBytes }
    if (byRoute.size === count) onAllReady()
    events.onCredit()
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
   * Hands a fetch to the worker of its key, or to the freest one if that worker has no credit left. There must be
   * credit.
   *
   * @param {Leased} fetch
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

  /** @param {Worker} worker @param {import('./watchdog.ts').Silence} silence */
  function onSilent(worker, { silentMs, overdueMs }) {
    const { pid } = worker.process
    log.warn({ workerPid: pid, silentMs: Math.round(silentMs), overdueMs }, 'a worker fell silent: killing it')
    kill(worker)
  }

  /** @param {Worker} worker that is not heard, or not sure to be */
  function kill(worker) {
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
   * Takes a worker's leases away: later messages of it count for nothing.
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
    for (const { what } of leases.takeFrom(worker.process.id)) events.onLost(what)
    events.onCredit()
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
    end,
    hasCredit,
    lease,
    stats,
    /** The workers that take leases. */
    pids: () => [...workers.values()].filter(({ routingId }) => routingId).map(({ process }) => process.pid),
  }
}
