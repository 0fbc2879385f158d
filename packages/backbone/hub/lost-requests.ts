// Notices that requests of a gateway were lost on the way: a number is missing, or a request that a beat announced
// never came.

/** The progress of one link's requests. */
export interface Arrivals {
  received: number
  /** Sent, as of the link's latest beat. */
  announced: number
  /** `received`, at that beat. */
  receivedAtBeat: number
}

export const createArrivals = (): Arrivals => ({ received: 0, announced: 0, receivedAtBeat: 0 })

/** @returns false if a request before it was lost */
export function takeRequest(arrivals: Arrivals, number: number): boolean {
  if (number !== arrivals.received + 1) return false
  arrivals.received = number
  return true
}

/**
 * Behind is not lost: requests come by another socket, thousands of keys may wait in it, and each takes its time. Requests
 * that the beat before announced count as lost only if none at all has come since.
 *
 * @returns true if some may be lost, unless they still wait to be read
 */
export function takeBeat(arrivals: Arrivals, sent: number): boolean {
  const { received, announced, receivedAtBeat } = arrivals
  arrivals.announced = sent
  arrivals.receivedAtBeat = received
  return announced > received && received === receivedAtBeat
}
