// The type of a workload: what a scenario has each client do. It runs in the generator's processes.
import type { Histogram } from 'hdr-histogram-js'
import type { Behaviour } from './clients.ts'
import type { Due, Schedule } from './schedule.ts'

export interface Workload {
  /** Of clients over WebSocket; nothing where the workload has connections of its own. */
  behaviour?: Behaviour
  /** Requests sent and not yet answered, where the end is to wait for them. */
  outstanding?: () => number
  /** A message from the scenario. */
  tell?(message: unknown): void
  /** Sends no more, where it would go on by itself. */
  stop?: () => void
  /** Sent to the scenario at the end, beside counts and histograms. */
  outcome?: () => unknown
}

/** `tally`: of its counts and histograms. */
interface WorkloadOptions<S, C extends readonly string[], H extends readonly string[]> {
  settings: S
  tally: {
    counts: Record<C[number], number>
    histograms: Record<H[number], Histogram>
    recorders: Record<H[number], (us: number) => void>
    because: (reason: string) => void
  }
  /** Of this process's clients, apart from those of others. */
  newSchedule: <T>(intervalMs: number, onDue: Due<T>) => Schedule<T>
  /** Is told how late requests were sent that no schedule sends. */
  onLate: (lateUs: number, requests: number) => void
  nowUs: () => number
  /** Of this process. */
  index: number
  processes: number
}

/**
 * Each file of workloads/ exports one as `createWorkload`, beside `counts` and `histograms`, the names of what it
 * tallies.
 */
export type CreateWorkload<S, C extends readonly string[], H extends readonly string[]> = (
  options: WorkloadOptions<S, C, H>,
) => Workload
