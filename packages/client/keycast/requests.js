// Numbers requests, and says how long to wait before one that was refused for being too many is sent again.

/** A request costs one, and one more per so many bytes: docs/protocol.md. */
const BYTES_PER_TOKEN = 1_024

/** @param {string} text of a request */
export const costOf = text => 1 + Math.floor(text.length / BYTES_PER_TOKEN)

/**
 * The gateway's figure is the time until nothing is owed. What is sent next has its own cost: sent at that moment it
 * would be refused again, and so on for ever.
 *
 * @param {number | undefined} retryAfterMs
 * @param {number} cost
 * @param {number} requestsPerSecond
 */
export const pauseMs = (retryAfterMs, cost, requestsPerSecond) =>
  Math.ceil((retryAfterMs ?? 0) + (cost * 1_000) / requestsPerSecond)

/** The longest text a request may have: the gateway cuts off who exceeds a limit by much. @param {import('./connection/connection.js').Limits} limits */
export const requestBytesMax = ({ messageBytes, requestsPerSecond }) =>
  Math.min(messageBytes, requestsPerSecond * BYTES_PER_TOKEN - 1)
