// The length of runs with random faults, and their seed: FAULT_RUN_SECONDS=600 FAULT_RUN_SEED=…

export const seconds = Number(process.env.FAULT_RUN_SECONDS || 20)
export const seed = Number(process.env.FAULT_RUN_SEED || Date.now() % 1_000_000)

/** Time for the run, and for its start and its judgement. */
export const timeoutMs = (2 * seconds + 120) * 1_000

/** Seeds beside the few that a unit test always takes: for as long as FAULT_RUN_SECONDS say, and none unless they do. */
export function* furtherSeeds() {
  const endsAt = performance.now() + (process.env.FAULT_RUN_SECONDS ? seconds : 0) * 1_000
  for (let next = seed; performance.now() < endsAt; next++) yield next
}
