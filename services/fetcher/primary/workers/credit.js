// How many leases a worker takes at one time.

/**
 * As many as all backends may have under way together. With fewer, one backend that hangs could hold every worker's leases
 * until they time out, and no other backend would be asked. And a single worker that is left can do all of it.
 *
 * @param {object} options
 * @param {number} options.origins
 * @param {number} options.inFlightMax fetches to each of them
 * @param {number} [options.authorizeOrigins] that are asked whether viewers may read
 * @param {number} [options.authorizeInFlightMax] questions to each of those
 */
export const creditFor = ({ origins, inFlightMax, authorizeOrigins = 0, authorizeInFlightMax = 0 }) =>
  Math.max(1, origins) * inFlightMax + authorizeOrigins * authorizeInFlightMax
