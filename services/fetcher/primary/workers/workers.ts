// The workers in service, and the choice of the one that gets a lease. This file does not look at what that is for.
import { fnv1a } from '@keycast/backbone'
import { createAwakeClock, type Every, type Log, type World } from '@keycast/service'
import type { Credit, Lease, ResultMessage, Usage } from '../../worker-messages.ts'
import type { FetcherMetrics } from '../metrics.ts'
import { createLeases, type Pool } from './leases.ts'
import type { Fork, WorkerProcess } from './processes.ts'
import { createSupervisor, type Supervisor } from './supervisor.ts'
import { createWatchdog, type Silence, SWEEP_MS } from './watchdog.ts'
import { createWorkerClock, readMainThread, type WorkerClock } from './worker-clock.ts'

export type Workers = ReturnType<typeof createWorkers>

/**
 * The processes of the workers, and the socket to them. `send` takes a worker's routing id, always the same buffer.
 */
export interface Connection {
  fork: Fork
  send: (routingId: Buffer, lease: Lease, body?: Buffer) => void
}

/**
 * `place`: a lost worker's successor takes it, and with it its keys. Without `routingId` the worker has not announced
 * itself. `credit`: leases it takes at one time. `usage`: as it last said.
 */
export interface Worker {
  place: number
  process: WorkerProcess
  routingId: Buffer | undefined
  credit: number
  usage: Usage
  clock: WorkerClock
  /** By its clock. */
  heardAt: number
}

interface Deps {
  count: number
  wheel: { set: (atMs: number, run: () => void) => unknown }
  every: Every
  after: World['after']
  metrics: Pick<FetcherMetrics, 'workerLost' | 'lateResult'>
  log: Pick<Log, 'info' | 'warn' | 'error'>
  now: () => number
  random: () => number
  readThread?: typeof readMainThread
}

export function createWorkers({
  count,
  wheel,
  every,
  after,
  metrics,
  log,
  now,
  random,
  readThread = readMainThread,
}: Deps) {
  /** By process id of the cluster. */
  const workers = new Map<number, Worker>()
  const byPlace: (Worker | undefined)[] = Array(count).fill(undefined)
  /** Workers that announced themselves, by routing id. */
  const byRoute = new Map<string, Worker>()
  const awake = createAwakeClock({ periodMs: SWEEP_MS, every, now })
  const leases = createLeases({ now: id => workers.get(id)?.clock.nowMs ?? 0 })
  let send: Connection['send']
  /** There may be credit again. */
  let onCredit: () => void
  let supervisor: Supervisor
  let onAllReady = () => {}
  /** The usage of ended workers, as of their last beats. */
  let endedCpuMs = 0

  /**
   * Starts the processes. Not given at creation: fetches need these workers, and are started when there is credit.
   *
   * @returns once every worker takes leases
   */
  function start(connection: Connection, credited: () => void): Promise<void> {
    send = connection.send
    onCredit = credited
    supervisor = createSupervisor({ count, fork: connection.fork, onStart, onEnd, wheel, after, now, random })
    awake.start(createWatchdog({ workers, leases, onSilent }))
    const allReady = new Promise<void>(resolve => {
      onAllReady = resolve
    })
    supervisor.start()
    return allReady
  }

  /** @returns once no process is left */
  function stop(): Promise<void> {
    awake.stop()
    return supervisor.stop()
  }

  function onStart(place: number, process: WorkerProcess) {
    const usage = { cpuMs: 0, residentBytes: 0 }
    const clock = createWorkerClock({ read: () => readThread(process.pid), now: awake.now })
    const worker = { place, process, routingId: undefined, credit: 0, usage, clock, heardAt: clock.nowMs }
    workers.set(process.id, worker)
    byPlace[place] = worker
  }

  function onMessage(routingId: Buffer, message: Credit | ResultMessage, body: Buffer | undefined, delta?: Buffer) {
    if (message.type === 'credit') return announce(routingId, message)
    const worker = byRoute.get(routingId.toString('latin1'))
    if (worker) worker.heardAt = worker.clock.nowMs
    const isLast = message.nth === undefined
    const lease = worker && (isLast ? leases.end : leases.find)(message.lease, worker.process.id)
    if (lease) lease.holder.ended(lease.what, message, body, delta)
    else metrics.lateResult()
  }

  /** Others get the leases of a worker whose word could not be taken. */
  function end(routingId: Buffer) {
    const worker = byRoute.get(routingId.toString('latin1'))
    if (!worker) return
    log.warn({ workerPid: worker.process.pid }, 'what a worker said could not be taken: killing it')
    kill(worker)
  }

  function announce(routingId: Buffer, { worker: id, credit, cpuMs, residentBytes }: Credit) {
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
    worker.heardAt = worker.clock.nowMs
    worker.credit = credit
    worker.usage = { cpuMs, residentBytes }
    if (byRoute.size === count) onAllReady()
    onCredit()
  }

  function hasCredit() {
    for (const worker of workers.values()) if (freeOf(worker) > 0) return true
    return false
  }

  function freeOf(worker: Worker | undefined) {
    return worker?.routingId ? worker.credit - leases.countOf(worker.process.id) : 0
  }

  /**
   * Hands work to the worker of its key, or to the freest one if that worker has no credit left. There must be credit.
   */
  const lease: Pool['lease'] = (holder, what, work, body) => {
    let chosen = byPlace[(fnv1a(work.key) >>> 0) % count]
    if (freeOf(chosen) <= 0) {
      for (const worker of workers.values()) if (freeOf(worker) > freeOf(chosen)) chosen = worker
    }
    if (!chosen?.routingId) throw new Error('a lease was to be handed out without credit')
    const id = leases.grant(chosen.process.id, work.timeoutMs, holder, what)
    send(chosen.routingId, { type: 'lease', lease: id, hasBody: body && true, ...work }, body)
  }

  function onSilent(worker: Worker, { silentMs, overdueMs }: Silence) {
    const { pid } = worker.process
    log.warn({ workerPid: pid, silentMs: Math.round(silentMs), overdueMs }, 'a worker fell silent: killing it')
    kill(worker)
  }

  /** @param worker that is not heard, or not sure to be */
  function kill(worker: Worker) {
    worker.process.kill()
    giveUp(worker, 'silent')
  }

  function onEnd({ id, pid }: WorkerProcess, how: { code: number | null; signal: string | null }) {
    const worker = workers.get(id)
    if (!worker) return
    log.warn({ workerPid: pid, ...how }, 'a worker ended')
    giveUp(worker, 'exit')
  }

  /** Takes a worker's leases away: later messages of it count for nothing. */
  function giveUp(worker: Worker, reason: 'exit' | 'silent') {
    metrics.workerLost(reason)
    workers.delete(worker.process.id)
    byPlace[worker.place] = undefined
    if (worker.routingId) byRoute.delete(worker.routingId.toString('latin1'))
    endedCpuMs += worker.usage.cpuMs
    for (const { holder, what } of leases.takeFrom(worker.process.id)) holder.lost(what)
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
    end,
    hasCredit,
    lease,
    stats,
    /** The workers that take leases. */
    pids: () => [...workers.values()].filter(({ routingId }) => routingId).map(({ process }) => process.pid),
  }
}
