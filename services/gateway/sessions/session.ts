// One connected client as the gateway sees it: a plain record, for there are tens of thousands of them. Each field names
// the file that reads and writes it.
import { randomBytes } from 'node:crypto'

/**
 * @typedef {import('@keycast/protocol').Get} Get
 * @typedef {import('@keycast/protocol').History} History
 * @typedef {import('../encodings/encoding.ts').Encoding} Encoding
 * @typedef {import('../keys/admissions.ts').Awaited} Awaited
 * @typedef {import('../keys/subscriptions.ts').Subscription | import('../rooms/room.ts').RoomSubscription} AnySubscription
 * @typedef {AnySubscription | import('../presence/member-list.ts').MembersWatch} Due
 * @typedef {import('../transport/transport.ts').Piece} Piece
 * @typedef {import('../transport/transport.ts').Transport} Transport
 *
 * A get that waits for its client to read, and the time as of which its answer must be fresh.
 * @typedef {{ get: Get | History, asOfMs: number }} DeferredGet
 *
 * @typedef {object} Session
 * @property {string} id
 * @property {Transport} transport
 * @property {Encoding} encoding
 * @property {Map<string, AnySubscription>} subscriptions by key; subscriptions.ts, rooms/followers.ts
 * @property {Map<string, Awaited> | undefined} awaited keys that its viewer must first be admitted to; keys/admissions.ts
 * @property {Piece[]} pieces messages that leave with the next flush, in order; this and the next three: outbox.ts
 * @property {number} pieceBytes
 * @property {Due[]} due subscriptions that are due something, written after the pieces
 * @property {number} dueEnded the number of them that ended meanwhile
 * @property {DeferredGet[]} deferredGets handlers/get.ts
 * @property {number} pendingGets the number of gets that wait for the fetcher; handlers/get.ts
 * @property {number} answersHeld the number of answers that wait for a message of a room; rooms/held-answers.ts
 * @property {boolean} dirty whether a flush is coming; flusher.ts
 * @property {number | undefined} stalledAtMs since when the client has not taken what was written; outbox.ts
 * @property {import('../delivery/outbox.ts').CloseCode | undefined} closing the code with which it is closed after the
 *   next flush
 * @property {boolean} ended nothing is read from it or queued for it any more; sessions.ts
 * @property {string | undefined} endReason the reason, if the gateway ended it
 * @property {import('./bucket.ts').Bucket} requestAllowance requests it may send now; this and the next: rate-limit.ts
 * @property {import('./bucket.ts').Bucket} keyAllowance keys it may subscribe to now
 * @property {boolean} heard whether anything came from it since the last ping; heartbeat.ts
 * @property {string} address this and the next: the client's peer, see access/identify.ts
 * @property {boolean} isNamed
 * @property {import('../access/rights.ts').Rights} rights every door asks them; never kept elsewhere. This and all that follow: credentials.ts
 * @property {import('../access/tokens/tokens.ts').Verified | undefined} verified its token; `undefined` for an anonymous session
 * @property {import('../access/backend/viewers.ts').Viewer | undefined} viewer for whom backends are asked; `undefined` where none is
 * @property {import('./accounts.ts').Account | undefined} account the account whose limits it shares with others
 * @property {boolean} mustAuth whether it may do nothing until it sent a token
 * @property {number} earlyBytes sent while it must; receive.ts
 * @property {number} authsPending handlers/auth.ts, as the next
 * @property {Promise<unknown> | undefined} lastAuth of those pending
 * @property {number} slice in which it is pinged; sessions.ts
 */

/** Names a session in the log and to its client: 128 bits, so that no id is guessed or used twice. */
const ID_BYTES = 16

/**
 * @param {Transport} transport
 * @param {Encoding} encoding
 * @param {Pick<Session, 'requestAllowance' | 'keyAllowance' | 'rights'> & { peer: import('../access/identify.ts').Peer }} start
 * @returns {Session}
 */
export function createSession(transport, encoding, { requestAllowance, keyAllowance, peer, rights }) {
  return {
    id: randomBytes(ID_BYTES).toString('base64url'),
    transport,
    encoding,
    subscriptions: new Map(),
    awaited: undefined,
    pieces: [],
    pieceBytes: 0,
    due: [],
    dueEnded: 0,
    deferredGets: [],
    pendingGets: 0,
    answersHeld: 0,
    dirty: false,
    stalledAtMs: undefined,
    closing: undefined,
    ended: false,
    endReason: undefined,
    requestAllowance,
    keyAllowance,
    heard: true,
    address: peer.address,
    isNamed: peer.isNamed,
    rights,
    verified: undefined,
    viewer: undefined,
    account: undefined,
    mustAuth: false,
    earlyBytes: 0,
    authsPending: 0,
    lastAuth: undefined,
    slice: 0,
  }
}

/**
 * The number of keys that a session is subscribed to or waits for.
 *
 * @param {Pick<Session, 'subscriptions' | 'awaited'>} session
 */
export const keyCountOf = ({ subscriptions, awaited }) => subscriptions.size + (awaited?.size ?? 0)

/**
 * Whether a session is subscribed to a key, or will be once its backend has decided.
 *
 * @param {Session} session
 * @param {string} key
 */
export const isSubscribed = ({ subscriptions, awaited }, key) => subscriptions.has(key) || awaited?.has(key) === true
