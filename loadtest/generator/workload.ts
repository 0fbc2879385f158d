// The type of a workload: what a scenario has each client do. It runs in the generator's processes.
import type { Histogram } from 'hdr-histogram-js'
import type { Behaviour } from './clients.ts'

export interface Workload {
  behaviour: Behaviour
  /** Requests sent and not yet answered. */
  outstanding: () => number
  /** A message from the scenario. */
  tell?: (message: any) => void
  /** Sends no more. */
  stop: () => void
  /** Sent to the scenario at the end, beside counts and histograms. */
  outcome?: () => unknown
}

/**
 * the workload's settings
 *
 * its counts
 *
 * its histograms
 */
interface WorkloadOptions<S, C extends string, H extends string> {
  settings: S
  tally: {
    counts: Record<C, number>
    histograms: Record<H, Histogram>
    recorders: Record<H, (us: number) => void>
    because: (reason: string) => void
  }
  usage: ReturnType<typeof import('./own-usage.ts').createUsageMeter>
  nowUs: () => number
  /** Of this process. */
  index: number
  processes: number
}

/**
 * Each file of workloads/ exports one as `createWorkload`, beside `counts` and `histograms`, the names of what it
 * tallies.
 */
export type CreateWorkload<S, C extends string, H extends string> = (options: WorkloadOptions<S, C, H>) => Workload
