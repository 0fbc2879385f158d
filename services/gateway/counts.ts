// The counts of a gateway. Hot paths add to plain numbers, which metrics.ts reads at each scrape: a labelled counter costs as
// much as encoding a pong.
import { roomErrorCodes } from '@keycast/backbone'
import { closeCodes, type ErrorCode, errorCodes } from '@keycast/protocol'
import { createHistogram } from '@keycast/service'
import { decisionCodes } from './access/backend/decisions.ts'
import { refusalReasons } from './access/tokens/refusal.ts'
import { statusOf } from './doors/http/problems.ts'
import { rulings } from './doors/publish-rulings.ts'

export type Counts = ReturnType<typeof createCounts>

/** Why sessions end, besides the reasons for which the gateway closes them: {@link closeCodes}. */
const otherEnds = ['client', 'lost', 'silent']

/** Why upgrades are refused, see upgrade.ts. */
const refusals = ['path', 'draining', 'full', 'origin', 'subprotocol', 'token', 'account']

/** Every label at zero, from the start: a counter that Prometheus first sees at 1 has not increased for it. */
const zeros = <L extends string>(labels: Iterable<L>) =>
  Object.fromEntries([...labels].map(label => [label, 0])) as Record<L, number>

/** Why publishes are refused, here or by the journal. */
const publishRefusals = [
  'bad_key',
  'unauthenticated',
  'message_refused',
  ...decisionCodes,
  ...roomErrorCodes.filter(code => !['other_epoch', 'name_taken'].includes(code)),
]

/** Why joins are refused. */
const joinRefusals = [
  'bad_key',
  'bad_message',
  'unauthenticated',
  ...decisionCodes,
  'unknown_namespace',
  'too_many_keys',
  'name_taken',
  'capacity',
  'journal_unavailable',
]

/** How an HTTP request for a value can end. */
const statuses = new Set(['200', '204', '304', ...Object.values(statusOf).map(String), '500'])

/** In seconds: from a socket that takes a write at once, up to one that is closed as slow (GATEWAY_STALL_MS_MAX). */
const DELIVERY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function createCounts() {
  return {
    received: { auth: 0, get: 0, subscribe: 0, unsubscribe: 0, ping: 0, publish: 0, history: 0, join: 0, leave: 0 },
    sent: {
      welcome: 0,
      authed: 0,
      subscribed: 0,
      ok: 0,
      pong: 0,
      value: 0,
      delta: 0,
      current: 0,
      stale: 0,
      error: 0,
      closing: 0,
      message: 0,
      gap: 0,
      published: 0,
      history: 0,
      joined: 0,
      members: 0,
      presence: 0,
    },
    /** `error` and `stale` messages. */
    errors: zeros(Object.keys(errorCodes) as ErrorCode[]),
    sentBytes: 0,
    sentCompressed: 0,
    savedBytes: 0,
    /** Versions to be compressed, by the result. */
    compressions: { kept: 0, overtaken: 0, larger: 0, busy: 0, failed: 0 },
    deltaSavedBytes: 0,
    conflated: 0,
    coalesced: 0,
    getHits: 0,
    getMisses: 0,
    subscribeHits: 0,
    subscribeMisses: 0,
    /** Questions of subscriptions to fetchers, backends and journals, but for reads of histories, which are counted below. */
    asked: 0,
    httpHits: 0,
    httpMisses: 0,
    /** Requests at /v1/values, by the status they were answered with. */
    httpValues: zeros(statuses),
    /** Requests at /v1/messages, likewise. */
    httpMessages: zeros(statuses),
    /** Requests at /v1/wait, likewise. */
    httpWaits: zeros(statuses),
    /** Of a new version that was written to every subscriber that takes it; metrics.ts says what each of the three is. */
    fanOuts: createHistogram([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]),
    valueAges: createHistogram([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
    changeDelays: createHistogram([0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
    /** From when a version is first wanted compressed to when it is. */
    compressionSeconds: createHistogram([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]),
    /** From when a change reaches this gateway to when it is written to a session. */
    deliveries: createHistogram(DELIVERY_BUCKETS),
    /** From when a session does not take what was written to when it has taken it. */
    stalls: createHistogram(DELIVERY_BUCKETS),
    /** Sessions, by why they ended. */
    closed: zeros([...Object.keys(closeCodes), ...otherEnds]),
    /** Tokens that were accepted, by how they came. */
    tokensAccepted: { header: 0, cookie: 0, message: 0 },
    /** Tokens that were refused, by why. */
    tokensRefused: zeros(refusalReasons),
    /** Keys that the rights did not cover. */
    accessRefused: { unauthenticated: 0, forbidden: 0 },
    /** Whether a viewer may read, by how that was known: from what the backend said before, or asked. */
    decisions: { memory: 0, coalesced: 0, asked: 0 },
    /** Upgrades, by why they were refused. */
    refused: zeros(refusals),
    /** Publishes, by what became of them. */
    publishes: zeros(['kept', 'duplicate', ...publishRefusals]),
    /** Messages about which a backend was asked first, by what it said. */
    rulings: zeros(rulings),
    /** Joins of rooms, by what became of them. */
    joins: zeros(['joined', ...joinRefusals]),
    /** From when a publish reaches this gateway to when the journal's word does. */
    publishSeconds: createHistogram(DELIVERY_BUCKETS),
    /** From when messages reach this gateway to when they are written to a session, once a write. */
    messageDeliveries: createHistogram(DELIVERY_BUCKETS),
    /** Subscriptions to rooms that named a position, by whether all after it was there. */
    resumes: { recovered: 0, not_recovered: 0 },
    /** Sessions told of a gap, by why. */
    gaps: { trimmed: 0, epoch: 0, ahead: 0 },
    /** Reads of the journal for sessions that were behind, and sessions that shared one under way. */
    pageReads: 0,
    pageReadsCoalesced: 0,
  }
}

/** @param label one of few */
export function countOne(counter: Record<string, number>, label: string) {
  counter[label] = (counter[label] ?? 0) + 1
}
