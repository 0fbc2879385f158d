// This gateway's record of one key: its value, its last failure, and the sessions and requests that want it. Where values differ
// per user, there is one for each user.
import { readViewerKey } from '@keycast/backbone'
import type { ErrorCode, Problem } from '@keycast/protocol'
import type { Namespace } from '@keycast/service'
import type { Slots } from '../../encodings/slots.ts'
import type { Kind, Topic } from '../topic.ts'
import type { Refreshes } from './age.ts'
import type { Failure } from './failure.ts'
import type { ValueSubscription } from './subscriptions.ts'
import type { Value } from './value.ts'

/**
 * The answer to a request for a key. `ageMs`: since the backend was asked for it; `maxAgeMs`: up to which age it may be
 * used; `store` false: not to be kept by anyone (`no-store`, `private`).
 */
export interface Found {
  value: Value
  problem?: undefined
  ageMs: number
  maxAgeMs: number
  store: boolean
}

interface NotFound {
  value?: undefined
  problem: Problem
}

export type Result = Found | NotFound

/** A request that waits for an answer of the fetcher. */
interface Waiter {
  resolve: (result: Result) => void
  deadlineAtMs: number
}

export interface Entry extends Topic {
  /** That clients know. */
  readonly key: string
  /** For the cache and the backbone: the key, or the viewer key of a user's own value. */
  wireKey: string
  /** The viewer whose own value it is; `undefined` if all viewers have the same. */
  viewer: string | undefined
  namespace: Namespace
  value: Value | undefined
  /** Whether it has had a value since it was made. */
  wasFound: boolean
  /** The time at which the backend was asked for the known state (value or `not_found`); never moves back. */
  askedAtMs: number
  /** Silent refreshes, which move the time above on without an answer: see age.ts. */
  refreshes: Refreshes | undefined
  maxAgeMs: number
  store: boolean
  /** Of the last try; undefined after a good one. */
  failure: Failure | undefined
  subscriptions: ValueSubscription[]
  /** The number of subscriptions that were sent nothing of the value yet. */
  pendingSubscriptions: number
  watchedAtMs: number
  /** Whether any answer came since the watch began: from then on the fetcher keeps the key fresh. */
  isWatchAnswered: boolean
  /** Of the `error` that every subscriber has been sent. */
  announcedCode: ErrorCode | undefined
  /** Whether every subscriber has been sent `stale`. */
  stale: boolean
  /** The frames of that `error` or `stale`. */
  problemFrames: Slots<Buffer> | undefined
  problemFramesAtMs: number
  waiters: Waiter[]
  /** Its page in calendar.ts; Infinity if it has none. */
  calendarPage: number
  /** Its size, as the cache counted it. */
  bytes: number
}

/** Shared by all entries without subscriptions or waiters, so that an idle one costs no lists. Never pushed to. */
export const NOBODY = Object.freeze([]) as unknown as any[]

export function createEntry(wireKey: string, namespace: Namespace, kind: Kind): Entry {
  const viewed = namespace.isPerUser ? readViewerKey(wireKey) : undefined
  return {
    kind,
    key: viewed?.key ?? wireKey,
    wireKey,
    viewer: viewed?.viewer,
    namespace,
    value: undefined,
    wasFound: false,
    askedAtMs: Number.NEGATIVE_INFINITY,
    refreshes: undefined,
    maxAgeMs: namespace.maxAgeMs,
    store: true,
    failure: undefined,
    subscriptions: NOBODY,
    pendingSubscriptions: 0,
    watchedAtMs: Number.NEGATIVE_INFINITY,
    isWatchAnswered: false,
    announcedCode: undefined,
    stale: false,
    problemFrames: undefined,
    problemFramesAtMs: Number.NEGATIVE_INFINITY,
    waiters: NOBODY,
    calendarPage: Number.POSITIVE_INFINITY,
    bytes: 0,
  }
}

/** Whether the backend never had anything under the key, as far as this gateway saw. Anyone can invent such keys. */
export function isMissing({ wasFound, failure }: Entry) {
  return !wasFound && failure?.problem.code === 'not_found'
}

/** Whether a session or a request wants the key now. A wanted entry is kept, however large. */
export function isWanted(entry: Entry) {
  return entry.subscriptions.length > 0 || entry.waiters.length > 0
}
