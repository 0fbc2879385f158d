// The promise of the backbone: a gateway may rely on this when it wants keys, and a fetcher node is asked these things.
// zeromq/ keeps the promise over sockets; memory/ keeps it inside one process, for unit tests. docs/backbone.md gives
// the wire form and the reason for each rule.

/**
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 *
 * The value that a gateway itself holds: its version, and how long ago the backend was asked for it, at the least. `plan`:
 * the value is confirmed, and the node that the key was asked of would ask the backend next in `inMs`. A node that comes to
 * own the key may leave it at that.
 * @typedef {{ version: string, ageMs: number, plan?: Plan }} Held
 *
 * `maxAgeMs`: as that node gave it with the value. `askedAgoMs`: how long ago the backend was asked for certain; gateways
 * before values/1.6 do not say it.
 * @typedef {{ inMs: number, maxAgeMs: number, askedAgoMs?: number }} Plan
 *
 * The `Authorization` that a viewer's token makes, and until when the token is valid, in milliseconds since 1970. Both
 * absent for viewers without a token. Secret: never logged.
 * @typedef {{ authorization?: string, expiresAt?: number }} Credentials
 *
 * A wanted key, with what the asking gateway holds of it: bytes that the gateway has, never merely a client's version.
 * `credentials` come with a viewer key (wire/viewer-key.ts), unless the viewer has none that are valid.
 * @typedef {{ key: string, held: Held | undefined, credentials?: Credentials }} Want
 *
 * A backend's answer to whether a viewer may read a key, given `ageMs` ago. `failed`: nothing of use; then `ageMs` tells
 * since when the viewer was last admitted, where that still counts, and `retryAfterMs` when to ask again.
 * @typedef {{ verdict: 'admitted' | 'refused' | 'failed', message: string, ageMs?: number, retryAfterMs?: number }} Decision
 *
 * How a value's body is to be shown: `json` and `text` bodies are UTF-8, `base64` marks bytes that are no text.
 * The body is always the content itself, never its encoding.
 * @typedef {'json' | 'text' | 'base64'} Format
 *
 * A fossil delta that makes the value it comes with out of the version `from` of the same key.
 * @typedef {{ from: string, bytes: Buffer }} Delta
 *
 * When the node asks the backend by itself again. A quiet watch hears of that only where the version, or how long it may be
 * used, is another then, or where it fails or takes long: see {@link Confirmations}.
 * @typedef {{ inMs: number, everyMs: number }} Next
 *
 * The key's value. `ageMs`: since the backend was asked. `maxAgeMs`: how old it may get before a `get` asks again.
 * `store` false: to be held only while watched (`no-store`, `private`). `delta`: only where it starts `from` the
 * version the gateway holds or was last sent.
 * @typedef {{ type: 'value', key: string, version: string, ageMs: number, maxAgeMs: number, store: boolean,
 *   contentType: string, format: Format, body: Buffer, delta?: Delta, delayMs?: number, next?: Next }} ValueAnswer
 *
 * The version the gateway holds (or was last sent on this link) is the latest as of `ageMs` ago.
 * @typedef {{ type: 'current', key: string, version: string, ageMs: number, maxAgeMs: number, store: boolean,
 *   next?: Next }} CurrentAnswer
 *
 * The node that came to own the key asks the backend `next` when the one before it would have: the version that the gateway
 * holds, and what it knows of its age, stand until then. Without `next`: that fetch takes long, and nothing confirms the
 * version until more is said.
 * @typedef {{ type: 'kept', key: string, version: string, next?: Next }} KeptAnswer
 *
 * The last try failed. `ageMs`: since the backend was asked in that try. With `retryAfterMs` the fetcher tries again
 * by itself while the key is watched. `not_found` is an answer like any other: it comes with `maxAgeMs`. `forbidden` comes
 * with the digest of the token that the backend refused (wire/token-digest.ts), unless it was asked without one.
 * @typedef {{ type: 'failed', key: string, code: ErrorCode, message: string, ageMs: number,
 *   maxAgeMs?: number, retryAfterMs?: number, tokenDigest?: string }} FailedAnswer
 *
 * @typedef {ValueAnswer | CurrentAnswer | KeptAnswer | FailedAnswer} Answer
 */

/**
 * The gateway's side. All calls are idempotent and return at once. Wants are state: the key's owner is told of them
 * when a link to it is up, and told again whenever that may have been lost. Each time, the `held` function given at
 * creation says what the gateway holds of the key.
 *
 * @typedef {object} Backbone
 * @property {() => Promise<void>} start resolves when the sockets exist, not when a node answers
 * @property {() => Promise<void>} stop
 * @property {(key: string) => void} watch asks for every change of the key, until `unwatch`
 * @property {(key: string) => void} unwatch
 * @property {(key: string) => void} get asks for one answer, fetched now or no older than the namespace's maxAge; the
 *   first answer to it ends it
 * @property {(key: string) => void} cancelGet the answer is no longer wanted
 * @property {(key: string) => void} renewCredentials the credentials of a watched viewer key changed: its owner is told
 * @property {(keys: string[], options: { deadlineMs: number }) => Promise<void>} refresh the backend's content changed:
 *   it must be asked now. Resolves once every live node has confirmed; rejects with {@link FetcherUnavailable} if no
 *   node is alive, or one did not confirm before the deadline
 * @property {(key: string, credentials: Credentials, options: { deadlineMs: number, maxAgeMs?: number }) =>
 *   Promise<Decision | undefined>} authorize asks whether a key's viewer may read it. `maxAgeMs`: not to be answered with
 *   an admission that began longer ago. Never rejects; `undefined` if no node answered
 * @property {(key: string) => { node: string | undefined, alive: boolean }} ownerOf the node that the key is routed to
 *   now
 * @property {() => number} nodesAlive
 * @property {() => number} nodesHeld those that answer and are given no keys yet, since they were lost before
 */

/**
 * The functions that a gateway gives the backbone.
 *
 * @typedef {object} BackboneEvents
 * @property {(key: string) => Held | undefined} held
 * @property {(key: string) => Credentials | undefined} [credentials] the viewer's credentials; looked up each time a
 *   want is sent
 * @property {(answer: Answer, isGot: boolean, confirmations?: Confirmations) => void} onAnswer in the order of a key's
 *   states, except that a failover may repeat one; never one from before the key was last wanted. `isGot`: it answers
 *   and ends the key's `get`. Otherwise it is for the watch, and may be older than a `get` under way accepts. A body
 *   may be kept: it is never reused or changed
 */

/**
 * The time up to which a node has asked the backend for a namespace's keys as announced (`next`), and has sent this
 * gateway all results. It moves while the link lives, and stops for good with it; answers with `next` come with the one
 * that holds for them.
 *
 * @typedef {{ untilMs: number }} Confirmations `untilMs`: monotonic, on this gateway's clock
 */

/**
 * The fetcher's side. A link is one incarnation of one gateway's connection; its wants end with it.
 *
 * @typedef {object} Hub
 * @property {(events: HubEvents) => Promise<void>} start binds, then calls the events; rejects if a port is taken
 * @property {() => Promise<void>} stop
 * @property {(link: string, key: string) => void} tell the link is due the key's latest state. Costs one set entry:
 *   `answerFor` is asked for the state when the link has credit, so a slow gateway holds no queue of values
 * @property {(link: string, id: string, decision: Decision) => void} tellDecision answers a question of that link
 * @property {() => { links: number, dueKeys: number, bytesOut: number }} stats
 */

/**
 * The functions that the fetcher's primary gives its hub. All are synchronous.
 *
 * @typedef {object} HubEvents
 * @property {(link: string, want: Want & { quiet?: boolean }) => void} onWatch `quiet`: the gateway understands `next`.
 *   Called also if the link watches already: its gateway reports its state again
 * @property {(link: string, key: string) => void} onUnwatch
 * @property {(link: string, want: Want) => void} onGet
 * @property {(link: string, key: string) => void} onCancelGet
 * @property {(key: string) => void} onRefresh
 * @property {(link: string, id: string, question: { key: string, maxAgeMs?: number } & Credentials) => void} [onAuthorize]
 *   may come twice; to be answered with `tellDecision`
 * @property {(link: string) => Iterator<unknown> | void} onLinkLost forget all wants of the link. A returned iterator
 *   is run to its end turn by turn, so that 100,000 keys hold nothing up
 * @property {() => Record<string, number> | undefined} [lagsMs] the age, by namespace, of the last moment at which
 *   every due refresh was done and its result sent to links
 * @property {(link: string, key: string) => Answer | undefined} answerFor the latest state of the key for that link, to
 *   be sent now; `undefined` if there is nothing to send (any more)
 */

/**
 * Clients read this wherever a backend refused a viewer: of a key that nobody may read and of one that does not exist. If
 * the texts differed, they would tell which keys exist.
 */
export const REFUSED_BY_BACKEND = 'the backend does not grant this'

/** No owner of the keys could be told before the deadline. Nothing is known of the key's next value. */
export class FetcherUnavailable extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message)
    this.name = 'FetcherUnavailable'
  }
}
