// Notices that requests of a gateway were lost on the way: a number is missing, or a request that a beat announced
// never came.

/**
 * The progress of one link's requests.
 *
 * @typedef {object} Arrivals
 * @property {number} received requests
 * @property {number} announced requests sent, as of the link's latest beat
 * @property {number} receivedAtBeat `received`, at that beat
 */

/** @returns {Arrivals} the state of a link that has sent nothing yet */
export const createArrivals = () => ({ received: 0, announced: 0, receivedAtBeat: 0 })

/**
 * Takes the number of an arrived request.
 *
 * @param {Arrivals} arrivals
 * @param {number} number requests are numbered from 1
 * @returns {boolean} false if one before it was lost
 */
export function takeRequest(arrivals, number) {
  if (number !== arrivals.received + 1) return false
  arrivals.received = number
  return true
}

/**
 * Takes the number of sent requests from a beat.
 *
 * Behind is not lost: requests come by another socket, thousands of keys may wait in it, and each takes its time. Requests
 * that the beat before announced count as lost only if none at all has come since.
 *
 * @param {Arrivals} arrivals
 * @param {number} sent
 * @returns {boolean} true if some may be lost, unless they still wait to be read
 */
export function takeBeat(arrivals, sent) {
  const { received, announced, receivedAtBeat } = arrivals
  arrivals.announced = sent
  arrivals.receivedAtBeat = received
  return announced > received && received === receivedAtBeat
}
