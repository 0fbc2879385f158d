// How long faults are drawn at random, and from which seed: FAULT_RUN_SECONDS=600 FAULT_RUN_SEED=…

export const seconds = Number(process.env.FAULT_RUN_SECONDS || 20)
export const seed = Number(process.env.FAULT_RUN_SEED || Date.now() % 1_000_000)

/** For the run, and for what it takes to start and to judge it. */
export const timeoutMs = (2 * seconds + 120) * 1_000
