// The generator's processes as one: starts them, gives them orders and adds their reports up.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Histogram } from 'hdr-histogram-js'
import { nowUs } from './clock.ts'
import { CLOSE_MS, DRAIN_MS } from './finish-timeouts.ts'
import { createHistogram, merge } from './histogram.ts'
import type { Order, Report, SecondReport } from './process.ts'
import type { TallyReport } from './tally.ts'
import type { Signing } from './tokens.ts'

const program = fileURLToPath(new URL('process.ts', import.meta.url))

/** For a process whose event loop is at its limit to take the order and to send its last report. */
const REPORT_MS = 10_000
/** The longest that closing one connection takes. */
const CLIENT_CLOSE_MS = 2

/** A second of all processes together. */
export interface Second {
  /** Since the pool started. */
  second: number
  /** Clients at its end. */
  open: number
  connecting: number
  counts: Record<string, number>
  histograms: Record<string, Histogram>
  /** `busiest`: the share of the second in which the busiest process's event loop had work. */
  generator: { cpuMs: number; busiest: number; lateMsP99: number; lateMsMax: number; residentBytes: number }
}

/** Of the whole run; all that the workload counts is there from the beginning. */
interface Totals {
  counts: Record<string, number>
  reasons: Record<string, number>
  histograms: Record<string, Histogram>
}

export interface PoolOptions {
  /** A file of workloads/ */
  workload: string
  /** The workload's own. */
  settings: object
  processes: number
  urls: string[]
  clientsMax: number
  subprotocol?: string
  /** The signing key, if each client brings a token. */
  signing?: Signing
  /** Whose token all clients bring; each is a user of its own unless given. */
  user?: string
  /** The address all clients come from. */
  from?: string
  onSecond: (second: Second) => void
}

export type Pool = Awaited<ReturnType<typeof startPool>>

/** A process of the generator ended before its time: nothing is measured any more. */
export class GeneratorError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'GeneratorError'
  }
}

/** @throws {GeneratorError} */
export async function startPool({
  workload,
  settings,
  processes,
  urls,
  clientsMax,
  subprotocol,
  signing,
  user,
  from,
  onSecond,
}: PoolOptions) {
  const startUs = nowUs()
  const totals: Totals = { counts: {}, reasons: {}, histograms: {} }
  const incomplete = new Map<number, { reports: number; merged: Second }>()
  let open = 0
  let ended = false
  let unreported = 0
  let fail: (error: Error) => void = () => {}
  /** Rejects when a process dies. */
  const failure = new Promise<never>((_, reject) => {
    fail = reject
  })
  failure.catch(() => {}) // callers race it; unhandled it would end the process

  const children = Array.from({ length: processes }, () =>
    fork(program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
  )
  for (const child of children) {
    child.on('message', message => {
      const report = message as Report
      if (report.type === 'second') onReport(report)
    })
    child.on('exit', (code, signal) => {
      if (!ended) fail(new GeneratorError(`a generator process ended: ${signal ?? `exit code ${code}`}`))
    })
  }

  const tellAll = (order: Order) => {
    for (const child of children) if (child.connected) child.send(order)
  }
  const said = <T extends Report['type']>(child: ChildProcess, type: T) =>
    new Promise<Extract<Report, { type: T }>>(resolve => {
      child.on('message', report => {
        if ((report as Report).type === type) resolve(report as Extract<Report, { type: T }>)
      })
    })

  const ready = Promise.all(children.map(child => said(child, 'ready')))
  children.forEach((child, index) => {
    const clients = { urls, clientsMax, subprotocol, signing, user, from, index, processes }
    child.send({ type: 'prepare', workload, settings, clients, startUs })
  })
  for (const report of await Promise.race([ready, failure])) addTo(totals, report)

  return {
    totals,
    failure,
    open: () => open,
    pids: () => children.map(child => child.pid as number),
    /** Processes that sent no last report: their last second is in no figure. */
    unreported: () => unreported,

    /** Opens clients, one every so often, until there were `count`. */
    ramp({ everyUs, count }: { everyUs: number; count: number }) {
      // A little ahead, so that every process knows before the first client is due.
      tellAll({ type: 'ramp', fromUs: nowUs() + 20_000, everyUs, count })
    },

    hold: () => tellAll({ type: 'hold' }),

    /** @param message for the workload */
    tell: (message: unknown) => tellAll({ type: 'tell', message }),

    /**
     * Ends the load: no more requests, outstanding answers awaited, connections closed.
     *
     * @returns the outcome of each process that reported it. A run is not thrown away for one that died, or hangs:
     *   {@link unreported}
     */
    async finish(): Promise<unknown[]> {
      ended = true
      const giveUpMs = DRAIN_MS + CLOSE_MS + REPORT_MS + CLIENT_CLOSE_MS * (clientsMax / processes)
      const finished = Promise.all(
        children.map(child => Promise.race([said(child, 'finished'), gone(child, giveUpMs)])),
      )
      tellAll({ type: 'finish' })
      const reports = (await finished).filter(report => report !== undefined)
      unreported = processes - reports.length
      for (const { last } of reports) addTo(totals, last)
      return reports.map(({ outcome }) => outcome)
    },

    /** Ends the processes whatever they are doing. */
    kill() {
      ended = true
      for (const child of children) child.kill('SIGKILL')
    },
  }

  function onReport(report: SecondReport) {
    addTo(totals, report)
    const entry = incomplete.get(report.second) ?? { reports: 0, merged: emptySecond(report.second) }
    incomplete.set(report.second, entry)
    addSecond(entry.merged, report)
    entry.reports += 1
    if (entry.reports < processes) return
    incomplete.delete(report.second)
    open = entry.merged.open
    onSecond(entry.merged)
  }
}

/** Resolves when nothing more is to be expected of a process. */
function gone(child: ChildProcess, giveUpMs: number): Promise<undefined> {
  return new Promise(resolve => {
    if (!child.connected) return resolve(undefined)
    setTimeout(() => resolve(undefined), giveUpMs).unref()
    // Messages sent before it are delivered first.
    child.once('disconnect', () => resolve(undefined))
  })
}

function emptySecond(second: number): Second {
  const generator = { cpuMs: 0, busiest: 0, lateMsP99: 0, lateMsMax: 0, residentBytes: 0 }
  return { second, open: 0, connecting: 0, counts: {}, histograms: {}, generator }
}

function addSecond(into: Second, { open, connecting, counts, histograms, usage }: SecondReport) {
  into.open += open
  into.connecting += connecting
  addCounts(into.counts, counts)
  addHistograms(into.histograms, histograms)
  const { generator } = into
  generator.cpuMs += usage.cpuMs
  generator.residentBytes += usage.residentBytes
  generator.busiest = Math.max(generator.busiest, usage.busy)
  generator.lateMsP99 = Math.max(generator.lateMsP99, usage.lateMsP99)
  generator.lateMsMax = Math.max(generator.lateMsMax, usage.lateMsMax)
}

function addTo(into: Totals, { counts, reasons, histograms }: TallyReport) {
  addCounts(into.counts, counts)
  addCounts(into.reasons, reasons)
  addHistograms(into.histograms, histograms)
}

function addCounts(into: Record<string, number>, counts: Record<string, number>) {
  for (const [name, count] of Object.entries(counts)) into[name] = (into[name] ?? 0) + count
}

function addHistograms(into: Record<string, Histogram>, histograms: Record<string, string>) {
  for (const [name, encoded] of Object.entries(histograms)) {
    into[name] ??= createHistogram()
    merge(into[name], encoded)
  }
}
