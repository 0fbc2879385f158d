// The promise of the backbone: a gateway may rely on this when it wants keys, and a fetcher node is asked these things.
// zeromq/ keeps the promise over sockets; memory/ keeps it inside one process, for unit tests. docs/backbone.md gives
// the wire form and the reason for each rule.
import type { ErrorCode, Problem } from '@keycast/protocol'
import type { Content, Format, Payer } from '@keycast/service'

/**
 * A gateway's own state of a key: the version of its value, or `undefined` where it was told `not_found`; and how long
 * ago the backend was asked for it, at the least. `order`: as the node gave it with that version. `plan`: the value is
 * confirmed, and the node that the key was asked of would ask the backend next in `inMs`. A node that comes to own the key
 * may leave it at that.
 */
export interface Held {
  version: string | undefined
  ageMs: number
  order?: number
  rank?: number
  plan?: Plan
}

/** `maxAgeMs`: as that node gave it with the value. `askedAgoMs`: how long ago the backend was asked for certain. */
export interface Plan {
  inMs: number
  maxAgeMs: number
  askedAgoMs: number
}

/**
 * The `Authorization` that a viewer's token makes, and until when the token is valid, in milliseconds since 1970. Both
 * absent for viewers without a token. Secret: never logged.
 */
export interface Credentials {
  authorization?: string
  expiresAt?: number
}

/**
 * A wanted key, with what the asking gateway holds of it: bytes that the gateway has, never merely a client's version.
 * `credentials` come with a viewer key (wire/viewer-key.ts), unless the viewer has none that are valid.
 */
export interface Want {
  key: string
  held: Held | undefined
  credentials?: Credentials
}

/**
 * A backend's answer to whether a viewer may read a key, given `ageMs` ago. `failed`: nothing of use; then `ageMs`
 * tells since when the viewer was last admitted, where that still counts, and `retryAfterMs` when to ask again.
 */
export interface Decision {
  verdict: 'admitted' | 'refused' | 'failed'
  message: string
  ageMs?: number
  retryAfterMs?: number
}

/**
 * A key's value, or with `content` undefined its end, as the backend hands it over. `rank`: the backend's own number for
 * it; one that is lower than another of the key is ignored. `isRepeated`: perhaps it was handed over before, to another
 * node.
 */
export interface HandedOver {
  key: string
  content: (Content & { body: Buffer }) | undefined
  rank?: number
  isRepeated?: boolean
}

/** `older`: ignored, as a value of that rank was handed over. A problem: it is not the key's value, or perhaps it is. */
export type Taken = { outcome: 'taken' } | { outcome: 'older'; rank: number } | Problem

/** A client's message, before it is published. `from`: nobody's name where it is empty. `data`: JSON. */
export interface AskedMessage {
  key: string
  from: string
  messageId?: string
  data: Buffer
}

/**
 * What the backend says of a message. `take`: with `data`, JSON, that is published in place of the message's own.
 * `refuse`: `reason` is the backend's own code. `none`: it says nothing of use. `crowded`: it was not asked, because too
 * many messages wait for that.
 */
export type Ruling =
  | { ruling: 'take'; data?: Buffer }
  | { ruling: 'refuse'; reason?: string }
  | { ruling: 'none' | 'crowded'; message: string; retryAfterMs?: number }

/** A fossil delta that makes the value it comes with out of the version `from` of the same key. */
export interface Delta {
  from: string
  bytes: Buffer
}

/**
 * When the node asks the backend by itself again. A quiet watch hears of that only where the version, or how long it
 * may be used, is another then, or where it fails or takes long: see {@link Confirmations}.
 */
export interface Next {
  inMs: number
  everyMs: number
}

/**
 * The key's value. `ageMs`: since the backend was asked. `maxAgeMs`: how old it may get before a `get` asks again.
 * `store` false: to be held only while watched (`no-store`, `private`). `delta`: only where it starts `from` the
 * version the gateway holds or was last sent. `order` is the same at all gateways, and rises with every change, also
 * back to a former version: it is the time at which the backend was asked for the version, in milliseconds since 1970, or
 * more where the number before it was no less. `rank`: the highest of the key's values that the backend handed over.
 */
interface ValueAnswer {
  type: 'value'
  key: string
  version: string
  order?: number
  rank?: number
  ageMs: number
  maxAgeMs: number
  store: boolean
  contentType: string
  format: Format
  body: Buffer
  delta?: Delta
  delayMs?: number
  next?: Next
}

/** The version the gateway holds (or was last sent on this link) is the latest as of `ageMs` ago. */
interface CurrentAnswer {
  type: 'current'
  key: string
  version: string
  order?: number
  rank?: number
  ageMs: number
  maxAgeMs: number
  store: boolean
  next?: Next
}

/**
 * The node that came to own the key asks the backend `next` when the one before it would have: the version that the
 * gateway holds, and what it knows of its age, stand until then. Without `next`: that fetch takes long, and nothing
 * confirms the version until more is said.
 */
export interface KeptAnswer {
  type: 'kept'
  key: string
  version: string
  next?: Next
}

/**
 * The last try failed. `ageMs`: since the backend was asked in that try. With `retryAfterMs` the fetcher tries again by
 * itself while the key is watched. `not_found` is an answer like any other: it comes with `maxAgeMs`. `forbidden` comes
 * with the digest of the token that the backend refused (wire/token-digest.ts), unless it was asked without one. `payer`:
 * it is the one whose accounts hold too much; another may have the key. `onlyFor`: an old `not_found` for a get of this
 * payer, who asked for the key in vain before; for another the backend would be asked.
 */
export interface FailedAnswer {
  type: 'failed'
  key: string
  code: ErrorCode
  message: string
  ageMs: number
  maxAgeMs?: number
  retryAfterMs?: number
  tokenDigest?: string
  payer?: Payer
  onlyFor?: Payer
}

export type Answer = ValueAnswer | CurrentAnswer | KeptAnswer | FailedAnswer

/**
 * The gateway's side. All calls are idempotent and return at once. Wants are state: the key's owner is told of them
 * when a link to it is up, and told again whenever that may have been lost. Each time, the `held` function given at
 * creation says what the gateway holds of the key.
 */
export interface Backbone {
  /** Resolves when the sockets exist, not when a node answers. */
  start: () => Promise<void>
  stop: () => Promise<void>
  /** Asks for every change of the key, until `unwatch`. */
  watch: (key: string) => void
  unwatch: (key: string) => void
  /** Asks for one answer, fetched now or no older than the namespace's maxAge; the first answer to it ends it. */
  get: (key: string) => void
  cancelGet: (key: string) => void
  /** The credentials of a watched viewer key changed, or the payer of any: its owner is told. */
  renewWatch: (key: string) => void
  /**
   * The backend's content changed: it must be asked now. `users`: of keys that have a value per user, theirs alone;
   * names as tokens have them. Resolves once every live node has confirmed; rejects with
   * {@link FetcherUnavailable} if no node is alive, or one did not confirm before the deadline.
   */
  refresh: (keys: string[], options: { users?: string[]; deadlineMs: number }) => Promise<void>
  /**
   * Gives a value to its key's owner, and resolves once that has it as the latest. Never rejects. Those of one key are
   * taken in the order given. After `fetcher_unavailable` it may have been taken: it is given once, since a second time
   * may come after a newer value.
   */
  handOver: (value: HandedOver, options: { deadlineMs: number }) => Promise<Taken>
  /**
   * Asks whether a key's viewer may read it. `maxAgeMs`: not to be answered with an admission that began longer ago.
   * `payer`: who wants to know. Never rejects; `undefined` if no node answered.
   */
  authorize: (
    key: string,
    credentials: Credentials,
    options: { deadlineMs: number; maxAgeMs?: number; payer?: Payer },
  ) => Promise<Decision | undefined>
  /**
   * Asks the backend whether a message may be published. Never rejects; `undefined` if no node answered. After a loss the
   * backend may be asked twice.
   */
  askAbout: (message: AskedMessage, options: { deadlineMs: number; payer?: Payer }) => Promise<Ruling | undefined>
  /** The node that the key is routed to now. */
  ownerOf: (key: string) => { node: string | undefined; alive: boolean }
  /** @param key counts the nodes that may have it, unless all keys are of one kind of nodes */
  nodesAlive: (key?: string) => number
  /** Those that answer and are given no keys yet, since they were lost before. */
  nodesHeld: () => number
}

/** The functions that a gateway gives the backbone, which calls them of this object once it was started. */
export interface BackboneEvents {
  held: (key: string, type: 'watch' | 'get') => Held | undefined
  /** The credentials of a viewer key's viewer; looked up each time a want is sent. */
  credentials?: (key: string) => Credentials | undefined
  /** Whom a key's owner charges for it; looked up likewise. */
  payer?: (key: string, type: 'watch' | 'get') => Payer | undefined
  /**
   * In the order of a key's states, except that a failover may repeat one; never one from before the key was last
   * wanted. `isGot`: it answers and ends the key's `get`. Otherwise it is for the watch, and may be older than a `get`
   * under way accepts. A body may be kept: it is never reused or changed.
   */
  onAnswer: (answer: Answer, isGot: boolean, confirmations?: Confirmations) => void
}

/**
 * The time up to which a node has asked the backend for a namespace's keys as announced (`next`), and has sent this
 * gateway all results. It moves while the link lives, and stops for good with it; answers with `next` come with the one
 * that holds for them. `untilMs`: monotonic, on this gateway's clock.
 */
export interface Confirmations {
  untilMs: number
}

/**
 * Clients read this wherever a backend refused a viewer: of a key that nobody may read and of one that does not exist. If
 * the texts differed, they would tell which keys exist.
 */
export const REFUSED_BY_BACKEND = 'the backend does not grant this'

/** No owner of the keys could be told before the deadline. Nothing is known of the key's next value. */
export class FetcherUnavailable extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FetcherUnavailable'
  }
}
