// One generator process: opens its share of the clients, runs the scenario's workload with each, and reports counts and
// latencies every second. pool.ts starts it and gives it orders.
import { received } from './client.ts'
import { type Clients, type ClientsSettings, clientCounts, createClients } from './clients.ts'
import { nowUs, pause } from './clock.ts'
import { CLOSE_MS, DRAIN_MS } from './finish-timeouts.ts'
import { createUsageMeter, type Usage } from './own-usage.ts'
import { createSchedule, type Due } from './schedule.ts'
import { createTally, type TallyReport } from './tally.ts'
import type { Workload } from './workload.ts'

const DRAIN_LOOK_MS = 20

/** Orders to a process, and its reports. */
interface Prepare {
  type: 'prepare'
  workload: string
  settings: unknown
  clients: ClientsSettings
  startUs: number
}

export type Order =
  | Prepare
  | { type: 'ramp'; fromUs: number; everyUs: number; count: number }
  | { type: 'hold' }
  | { type: 'tell'; message: unknown }
  | { type: 'finish' }

export type SecondReport = TallyReport & {
  type: 'second'
  second: number
  open: number
  connecting: number
  usage: Usage
}

/** When it is ready a process has counted nothing yet, of all that it counts. */
export type Report =
  | (TallyReport & { type: 'ready' })
  | SecondReport
  | { type: 'finished'; last: SecondReport; outcome: unknown }

let workload: Workload
let clients: Clients
let tally: ReturnType<typeof createTally>
const usage = createUsageMeter()
let startUs = 0
let second = 0
let reporting: NodeJS.Timeout

process.on('message', message => obey(message as Order))
// Ctrl-C and supervisors signal the whole process group. This process ends when the scenario orders it to, with a report.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
// The parent is gone. Without this the process would run for ever.
process.on('disconnect', () => process.exit(1))

async function obey(order: Order) {
  switch (order.type) {
    case 'prepare':
      return prepare(order)
    case 'ramp':
      return clients.ramp(order)
    case 'hold':
      return clients.hold()
    case 'tell':
      return workload.tell?.(order.message)
    case 'finish':
      return finish()
  }
}

async function prepare(order: Prepare) {
  const { counts, histograms, createWorkload } = await import(`./workloads/${order.workload}.ts`)
  tally = createTally({ counts: [...clientCounts, ...counts], histograms })
  const { index, processes } = order.clients
  const { onLate } = usage
  const phase = index / processes
  const newSchedule = <T>(intervalMs: number, onDue: Due<T>) =>
    createSchedule({ intervalMs, phase, nowUs, onDue, onLate })
  workload = createWorkload({ settings: order.settings, tally, newSchedule, onLate, nowUs, index, processes })
  clients = createClients({
    ...order.clients,
    behaviour: workload.behaviour ?? { headBytesMax: 0, open: () => ({ onMessage() {}, onEnd() {} }) },
    tally,
  })
  startUs = order.startUs
  reportNext()
  say({ type: 'ready', ...tally.take() })
}

/** Seconds begin at the same instant in every process, so that they can be added up. */
function reportNext() {
  reporting = setTimeout(
    () => {
      say(report())
      second += 1
      reportNext()
    },
    (startUs + (second + 1) * 1e6 - nowUs()) / 1_000,
  )
}

function report(): SecondReport {
  tally.counts.bytesIn += received.bytes
  received.bytes = 0
  return {
    type: 'second',
    second,
    open: clients.open(),
    connecting: clients.connecting(),
    ...tally.take(),
    usage: usage.take(),
  }
}

/** Stops requests, awaits outstanding answers, then closes every connection. */
async function finish() {
  clients.hold()
  workload.stop?.()
  const giveUpUs = nowUs() + DRAIN_MS * 1_000
  while ((workload.outstanding?.() ?? 0) > 0 && nowUs() < giveUpUs) await pause(DRAIN_LOOK_MS)
  clearTimeout(reporting)
  const open = clients.open()
  const outcome = workload.outcome?.()
  await clients.closeAll()
  const closedByUs = nowUs() + CLOSE_MS * 1_000
  while (clients.open() > 0 && nowUs() < closedByUs) await pause(DRAIN_LOOK_MS)
  process.send?.({ type: 'finished', last: { ...report(), open }, outcome }, () => process.exit(0))
}

function say(message: Report) {
  process.send?.(message)
}
