// The type of a workload: what a scenario has each client do. It runs in the generator's processes.

/**
 * @typedef {object} Workload
 * @property {import('./clients.ts').Behaviour} behaviour
 * @property {() => number} outstanding requests sent and not yet answered
 * @property {(message: any) => void} [tell] a message from the scenario
 * @property {() => void} stop sends no more
 * @property {() => unknown} [outcome] sent to the scenario at the end, beside counts and histograms
 */

/**
 * @template S the workload's settings
 * @template {string} C its counts
 * @template {string} H its histograms
 * @typedef {object} WorkloadOptions
 * @property {S} settings
 * @property {{ counts: Record<C, number>, histograms: Record<H, import('./histogram.ts').Histogram>,
 *   recorders: Record<H, (us: number) => void>, because: (reason: string) => void }} tally
 * @property {ReturnType<typeof import('./own-usage.ts').createUsageMeter>} usage
 * @property {() => number} nowUs
 * @property {number} index of this process
 * @property {number} processes
 */

/**
 * Each file of workloads/ exports one as `createWorkload`, beside `counts` and `histograms`, the names of what it tallies.
 *
 * @template S
 * @template {string} C
 * @template {string} H
 * @typedef {(options: WorkloadOptions<S, C, H>) => Workload} CreateWorkload
 */

export {}
