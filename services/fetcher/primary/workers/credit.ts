// The number of leases that a worker takes at a time.
import { WAITS_MAX } from '../fetching/long-polls.ts'

interface Options {
  origins: number
  /** The limit of fetches to each of them. */
  inFlightMax: number
  /** The backends that decide who may read. */
  authorizeOrigins?: number
  /** The limit of questions to each of those. */
  authorizeInFlightMax?: number
  /** The backends that are asked to wait for changes. */
  waitOrigins?: number
}

/**
 * As many as all backends may have under way together. With fewer, one hanging backend could hold every worker's leases
 * until they time out, and no other backend would be asked. And a single remaining worker can do all the work.
 */
export const creditFor = ({
  origins,
  inFlightMax,
  authorizeOrigins = 0,
  authorizeInFlightMax = 0,
  waitOrigins = 0,
}: Options) => Math.max(1, origins) * inFlightMax + authorizeOrigins * authorizeInFlightMax + waitOrigins * WAITS_MAX
