// Requests, the keys they name, and the gateway's limits on them.

/** A request costs one, and one more per so many bytes: docs/protocol.md. */
const BYTES_PER_TOKEN = 1_024

/** How long to wait after a refusal that does not say. */
export const PAUSE_DEFAULT_MS = 1_000

/**
 * The longest text a request may have: the gateway cuts off a client that exceeds a limit by much.
 *
 * @param {import('./connection/connection.js').Limits} limits
 */
export const requestBytesMax = ({ messageBytes, requestsPerSecond }) =>
  Math.min(messageBytes, requestsPerSecond * BYTES_PER_TOKEN - 1)

/** Every key fits this; the gateway checks the rest. Without it a key could be too long to be sent at all. */
export const keyGrammar = /^[a-z0-9-]{1,32}:[A-Za-z0-9._~/-]{1,255}$/

/** @param {string} key */
export const badKey = key => ({ code: /** @type {const} */ ('bad_key'), message: 'a key is namespace:id', key })
