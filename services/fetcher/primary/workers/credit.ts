// The number of leases that a worker takes at a time.

/**
 * As many as all backends may have under way together. With fewer, one hanging backend could hold every worker's leases
 * until they time out, and no other backend would be asked. And a single remaining worker can do all the work.
 *
 * @param {object} options
 * @param {number} options.origins
 * @param {number} options.inFlightMax the limit of fetches to each of them
 * @param {number} [options.authorizeOrigins] the backends that decide who may read
 * @param {number} [options.authorizeInFlightMax] the limit of questions to each of those
 */
export const creditFor = ({ origins, inFlightMax, authorizeOrigins = 0, authorizeInFlightMax = 0 }) =>
  Math.max(1, origins) * inFlightMax + authorizeOrigins * authorizeInFlightMax
