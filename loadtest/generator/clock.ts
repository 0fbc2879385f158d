// One clock for all processes of a run.
import { performance } from 'node:perf_hooks'

/** Both read CLOCK_MONOTONIC; performance.now() returns a number, and costs a tenth of a bigint. */
const bootUs = Number(process.hrtime.bigint() / 1_000n) - performance.now() * 1_000

/**
 * Microseconds since the machine started: the same on every process of a host, and never set back. A backend's
 * `process.hrtime.bigint()` is on the same scale.
 */
export const nowUs = () => performance.now() * 1_000 + bootUs

export const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))
