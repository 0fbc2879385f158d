// One connected client as the gateway sees it: a plain record, for there are tens of thousands of them. What is done
// with it is in the files named at its fields.
import { randomBytes } from 'node:crypto'
import { BYTES_SUBPROTOCOL } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/protocol').Get} Get
 * @typedef {import('../transport/transport.js').Piece} Piece
 * @typedef {import('../keys/subscriptions.js').Subscription} Subscription
 *
 * A get that waits for its client to read, and the time as of which its answer must be fresh.
 * @typedef {{ get: Get, asOfMs: number }} HeldGet
 *
 * @typedef {object} Session
 * @property {string} id
 * @property {import('../transport/transport.js').Transport} transport
 * @property {boolean} bytes whether it speaks `keycast.v1.bytes`
 * @property {boolean} compressed whether its values may be compressed
 * @property {Map<string, Subscription>} subscriptions by key; subscriptions.js
 * @property {Piece[]} pieces what leaves with the next flush, in order; this and the next seven: outbox.js
 * @property {number} pieceBytes
 * @property {Subscription[]} lacking subscriptions that are due something, written after the pieces
 * @property {number} lackingEnded how many of them ended meanwhile
 * @property {HeldGet[]} heldGets
 * @property {number} getsWaiting how many wait for the fetcher; handlers/get.js
 * @property {boolean} dirty whether a flush is coming; flusher.js
 * @property {number | undefined} stalledAtMs since when the client has not taken what was written
 * @property {import('../delivery/outbox.js').CloseCode | undefined} closing how it is to be closed after the next flush
 * @property {boolean} ended nothing is read from it or queued for it any more
 * @property {string | undefined} endReason why, where the gateway ended it
 * @property {number} tokens requests it may send now; limits.js
 * @property {number} tokensAtMs
 * @property {number} keyTokens keys it may subscribe to now; limits.js
 * @property {number} keyTokensAtMs
 * @property {boolean} heard whether anything came from it since the last ping; heartbeat.js
 * @property {number} slice
 */

/** Names a session in the log and to its client: 128 bits, so that none is guessed or met twice. */
const ID_BYTES = 16

/**
 * @param {import('../transport/transport.js').Transport} transport
 * @param {{ tokens: number, keyTokens: number, nowMs: number, slice: number }} start
 * @returns {Session}
 */
export function createSession(transport, { tokens, keyTokens, nowMs, slice }) {
  return {
    id: randomBytes(ID_BYTES).toString('base64url'),
    transport,
    bytes: transport.subprotocol === BYTES_SUBPROTOCOL,
    compressed: transport.isCompressed,
    subscriptions: new Map(),
    pieces: [],
    pieceBytes: 0,
    lacking: [],
    lackingEnded: 0,
    heldGets: [],
    getsWaiting: 0,
    dirty: false,
    stalledAtMs: undefined,
    closing: undefined,
    ended: false,
    endReason: undefined,
    tokens,
    tokensAtMs: nowMs,
    keyTokens,
    keyTokensAtMs: nowMs,
    heard: true,
    slice,
  }
}
