// How many leases a worker takes at one time.

/**
 * As many as all backends may have under way together. With fewer, one backend that hangs could hold every worker's leases
 * until they time out, and no other backend would be asked. And a single worker that is left can do all of it.
 *
 * @param {{ origins: number, inFlightMax: number }} options `inFlightMax`: fetches to each of the origins
 */
export const creditFor = ({ origins, inFlightMax }) => Math.max(1, origins) * inFlightMax
