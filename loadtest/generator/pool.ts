// The generator's processes as one: starts them, gives them orders and adds their reports up.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { nowUs } from './clock.ts'
import { CLOSE_MS, DRAIN_MS } from './finish-timeouts.ts'
import { createHistogram, merge } from './histogram.ts'

const program = fileURLToPath(new URL('process.ts', import.meta.url))

/** For a process whose event loop is at its limit to take the order and to send its last report. */
const REPORT_MS = 10_000
/** The longest that closing one connection takes. */
const CLIENT_CLOSE_MS = 2

/**
 * A second of all processes together.
 *
 * @typedef {object} Second
 * @property {number} second since the pool started
 * @property {number} open clients at its end
 * @property {number} connecting
 * @property {Record<string, number>} counts
 * @property {Record<string, import('./histogram.ts').Histogram>} histograms
 * @property {{ cpuMs: number, busiest: number, lateMsP99: number, lateMsMax: number, residentBytes: number }} generator
 *   `busiest`: the share of the second in which the busiest process's event loop had work
 *
 * @typedef {object} Totals of the whole run
 * @property {Record<string, number>} counts
 * @property {Record<string, number>} reasons
 * @property {Record<string, import('./histogram.ts').Histogram>} histograms
 *
 * @typedef {object} PoolOptions
 * @property {string} workload a file of workloads/
 * @property {object} settings the workload's own
 * @property {number} processes
 * @property {string[]} urls
 * @property {number} clientsMax
 * @property {string} [subprotocol]
 * @property {import('./tokens.ts').Signing} [signing] the signing key, if each client brings a token
 * @property {string} [from] the address all clients come from
 * @property {(second: Second) => void} onSecond
 *
 * @typedef {Awaited<ReturnType<typeof startPool>>} Pool
 */

/** A process of the generator ended before its time: nothing is measured any more. */
export class GeneratorError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message)
    this.name = 'GeneratorError'
  }
}

/**
 * @param {PoolOptions} options
 * @throws {GeneratorError}
 */
export async function startPool({
  workload,
  settings,
  processes,
  urls,
  clientsMax,
  subprotocol,
  signing,
  from,
  onSecond,
}) {
  const startUs = nowUs()
  /** @type {Totals} */
  const totals = { counts: {}, reasons: {}, histograms: {} }
  /** @type {Map<number, { reports: number, merged: Second }>} */
  const incomplete = new Map()
  let open = 0
  let ended = false
  let unreported = 0
  /** @type {(error: Error) => void} */
  let fail = () => {}
  /** Rejects when a process dies. @type {Promise<never>} */
  const failure = new Promise((_, reject) => {
    fail = reject
  })
  failure.catch(() => {}) // callers race it; unhandled it would end the process

  const children = Array.from({ length: processes }, () =>
    fork(program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
  )
  for (const child of children) {
    child.on('message', message => {
      const report = /** @type {import('./process.ts').Report} */ (message)
      if (report.type === 'second') onReport(report)
    })
    child.on('exit', (code, signal) => {
      if (!ended) fail(new GeneratorError(`a generator process ended: ${signal ?? `exit code ${code}`}`))
    })
  }

  /** @param {import('./process.ts').Order} order */
  const tellAll = order => {
    for (const child of children) if (child.connected) child.send(order)
  }
  /** @param {import('node:child_process').ChildProcess} child @param {string} type */
  const said = (child, type) =>
    new Promise(resolve => {
      child.on('message', report => {
        if (/** @type {import('./process.ts').Report} */ (report).type === type) resolve(report)
      })
    })

  const ready = Promise.all(children.map(child => said(child, 'ready')))
  children.forEach((child, index) => {
    const clients = { urls, clientsMax, subprotocol, signing, from, index, processes }
    child.send({ type: 'prepare', workload, settings, clients, startUs })
  })
  await Promise.race([ready, failure])

  return {
    totals,
    failure,
    open: () => open,
    pids: () => children.map(child => /** @type {number} */ (child.pid)),
    /** Processes that sent no last report: their last second is in no figure. */
    unreported: () => unreported,

    /** Opens clients, one every so often, until there were `count`. @param {{ everyUs: number, count: number }} ramp */
    ramp({ everyUs, count }) {
      // A little ahead, so that every process knows before the first client is due.
      tellAll({ type: 'ramp', fromUs: nowUs() + 20_000, everyUs, count })
    },

    hold: () => tellAll({ type: 'hold' }),

    /** @param {unknown} message for the workload */
    tell: message => tellAll({ type: 'tell', message }),

    /**
     * Ends the load: no more requests, outstanding answers awaited, connections closed.
     *
     * @returns {Promise<unknown[]>} the outcome of each process that reported it. A run is not thrown away for one that
     *   died, or hangs: {@link unreported}
     */
    async finish() {
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

  /** @param {import('./process.ts').SecondReport} report */
  function onReport(report) {
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

/**
 * Resolves when nothing more is to be expected of a process.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @param {number} giveUpMs
 * @returns {Promise<undefined>}
 */
function gone(child, giveUpMs) {
  return new Promise(resolve => {
    if (!child.connected) return resolve(undefined)
    setTimeout(() => resolve(undefined), giveUpMs).unref()
    // Messages sent before it are delivered first.
    child.once('disconnect', () => resolve(undefined))
  })
}

/** @param {number} second @returns {Second} */
function emptySecond(second) {
  const generator = { cpuMs: 0, busiest: 0, lateMsP99: 0, lateMsMax: 0, residentBytes: 0 }
  return { second, open: 0, connecting: 0, counts: {}, histograms: {}, generator }
}

/** @param {Second} into @param {import('./process.ts').SecondReport} report */
function addSecond(into, { open, connecting, counts, histograms, usage }) {
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

/** @param {Totals} into @param {import('./tally.ts').TallyReport} report */
function addTo(into, { counts, reasons, histograms }) {
  addCounts(into.counts, counts)
  addCounts(into.reasons, reasons)
  addHistograms(into.histograms, histograms)
}

/** @param {Record<string, number>} into @param {Record<string, number>} counts */
function addCounts(into, counts) {
  for (const [name, count] of Object.entries(counts)) into[name] = (into[name] ?? 0) + count
}

/** @param {Record<string, import('./histogram.ts').Histogram>} into @param {Record<string, string>} histograms */
function addHistograms(into, histograms) {
  for (const [name, encoded] of Object.entries(histograms)) {
    into[name] ??= createHistogram()
    merge(into[name], encoded)
  }
}
