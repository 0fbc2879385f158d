// Requests, the keys they name, and the gateway's limits on them.

import { KeycastError } from './errors.js'

/** A request costs one, and one more per so many bytes: docs/protocol.md. */
const BYTES_PER_TOKEN = 1_024

/** The wait after a refusal that names none. */
export const PAUSE_DEFAULT_MS = 1_000

/**
 * The longest text a request may have: the gateway cuts off a client that exceeds a limit by much.
 *
 * @param {import('./connection/connection.js').Limits} limits
 */
export const requestBytesMax = ({ messageBytes, requestsPerSecond }) =>
  Math.min(messageBytes, requestsPerSecond * BYTES_PER_TOKEN - 1)

/** How long it is as it is sent: a letter of most alphabets takes more than one byte. @param {unknown} message */
export const bytesOf = message => new TextEncoder().encode(JSON.stringify(message)).length

/** Every valid key fits; the gateway checks the rest. A longer one could not be sent, and no address holds half a surrogate pair. */
const keyGrammar = /^[a-z\d-]{1,32}:\P{Cs}{0,255}$/u

/** @param {string} key @returns {KeycastError | undefined} why the gateway cannot be asked for it, if so */
export const badKey = key =>
  keyGrammar.test(key) ? undefined : new KeycastError({ code: 'bad_key', message: 'a key is namespace:id', key })
