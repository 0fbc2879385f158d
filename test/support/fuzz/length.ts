// The length of fuzzing, and its seed: FUZZ_SECONDS=3600 FUZZ_SEED=…

const DEFAULT_SECONDS = 15

/** Of each test file that fuzzes: they run side by side. */
export const seconds = Number(process.env.FUZZ_SECONDS || DEFAULT_SECONDS)
export const seed = Number(process.env.FUZZ_SEED || Date.now() % 1_000_000)

/** Time for the run, and for its start and its end. */
export const timeoutMs = (2 * seconds + 120) * 1_000
