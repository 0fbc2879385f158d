// One connected client as the gateway sees it: a plain record, for there are tens of thousands of them. Each field names
// the file that reads and writes it.
import type { Get, History } from '@keycast/protocol'
import type { Payer } from '@keycast/service'
import type { Viewer } from '../access/backend/viewers.ts'
import type { Peer } from '../access/client-address.ts'
import type { Rights } from '../access/rights.ts'
import type { Verified } from '../access/tokens/tokens.ts'
import type { CloseCode } from '../delivery/outbox.ts'
import type { Encoding } from '../encodings/encoding.ts'
import type { Membership } from '../topics/rooms/presence/joins.ts'
import type { Subscription } from '../topics/topics.ts'
import type { Piece, Transport } from '../transport/transport.ts'
import type { Account } from './accounts.ts'
import type { Bucket } from './rate-limit.ts'

/** A get that waits for its client to read, and the time as of which its answer must be fresh. */
export interface DeferredGet {
  get: Get | History
  asOfMs: number
}

export interface Session {
  id: string
  transport: Transport
  encoding: Encoding
  /** By key, those that wait to be admitted among them; topics/topics.ts. */
  subscriptions: Map<string, Subscription>
  /** Rooms that it joined, or waits to; presence/joins.ts. */
  memberships: Map<string, Membership> | undefined
  /** Messages that leave with the next flush, in order; this and the next three: outbox.ts. */
  pieces: Piece[]
  pieceBytes: number
  /** Subscriptions that are due something, written after the pieces. */
  due: Subscription[]
  /** The number of them that ended meanwhile. */
  dueEnded: number
  /** doors/get.ts. */
  deferredGets: DeferredGet[]
  /** The number of gets that wait for the fetcher; doors/get.ts. */
  pendingGets: number
  /** The number of answers that wait for a message of a room; rooms/held-answers.ts. */
  answersHeld: number
  /** Whether a flush is coming; flusher.ts. */
  dirty: boolean
  /** Since when the client has not taken what was written; outbox.ts. */
  stalledAtMs: number | undefined
  /** The code with which it is closed after the next flush. */
  closing: CloseCode | undefined
  /** Nothing is read from it or queued for it any more; sessions.ts. */
  ended: boolean
  /** The reason, if the gateway ended it. */
  endReason: string | undefined
  /** Requests it may send now; this and the next: rate-limit.ts. */
  requestAllowance: Bucket
  /** Keys it may subscribe to now. */
  keyAllowance: Bucket
  /** When it may ask again for what there was no room for, and publish again; rate-limit.ts. */
  mayTakeAtMs: number
  mayPublishAtMs: number
  /** Whether anything came from it since the last ping; heartbeat.ts. */
  heard: boolean
  /** This and the next: the client's peer, see access/client-address.ts. */
  address: string
  isNamed: boolean
  /** Every door asks them; never kept elsewhere. This and all that follow: credentials.ts. */
  rights: Rights
  /** Its token; `undefined` for an anonymous session. */
  verified: Verified | undefined
  /** For whom backends are asked; `undefined` where none is. */
  viewer: Viewer | undefined
  /** The account whose limits it shares with others. */
  account: Account | undefined
  /** Whom nodes and journals charge. */
  payer: Payer | undefined
  /** Whether it may do nothing until it sent a token. */
  mustAuth: boolean
  /** Sent while it must; receive.ts. */
  earlyBytes: number
  /** doors/auth.ts, as the next. */
  authsPending: number
  /** Of those pending. */
  lastAuth: Promise<unknown> | undefined
  /** In which it is pinged; sessions.ts. */
  slice: number
}

export function createSession(
  transport: Transport,
  encoding: Encoding,
  {
    id,
    requestAllowance,
    keyAllowance,
    peer,
    rights,
  }: Pick<Session, 'id' | 'requestAllowance' | 'keyAllowance' | 'rights'> & { peer: Peer },
): Session {
  return {
    id,
    transport,
    encoding,
    subscriptions: new Map(),
    memberships: undefined,
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
    mayTakeAtMs: 0,
    mayPublishAtMs: 0,
    heard: true,
    address: peer.address,
    isNamed: peer.isNamed,
    rights,
    verified: undefined,
    viewer: undefined,
    account: undefined,
    payer: undefined,
    mustAuth: false,
    earlyBytes: 0,
    authsPending: 0,
    lastAuth: undefined,
    slice: 0,
  }
}
