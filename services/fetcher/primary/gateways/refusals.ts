// The refusals of wants: the links are told the reason, and what nobody wants any more is dropped.
import { type FailedAnswer, REFUSED_BY_BACKEND, tokenDigest } from '@keycast/backbone'
import { errorCodes } from '@keycast/protocol'
import { type Payer, SHARE_TAKEN } from '@keycast/service'
import type { Fetches } from '../fetching/fetches.ts'
import type { Entry } from '../keys/entry.ts'
import { dropAll, dropValue, invalidate } from '../keys/held.ts'
import { type Interest, isWanted, isWatched, type Want } from '../keys/interest.ts'
import type { KeyTable } from '../keys/key-table.ts'
import type { FetcherMetrics } from '../metrics.ts'
import type { Schedule } from '../timing/schedule.ts'
import type { RefusedWants } from './answers.ts'

export type RefusalCode = 'bad_key' | 'unknown_namespace' | 'capacity' | 'forbidden' | 'token_expired'
export type Refusals = ReturnType<typeof createRefusals>

/** A gateway may ask again after this time if its user's token had expired. It reports a new token by itself. */
const EXPIRED_RETRY_MS = 1_000

interface Deps {
  table: KeyTable
  interest: Interest
  fetches: Fetches
  schedule: Schedule
  refused: RefusedWants
  /** The link is due the key's latest state. */
  markDue: (link: string, key: string) => void
  metrics: FetcherMetrics
}

export function createRefusals({ table, interest, fetches, schedule, refused, markDue, metrics }: Deps) {
  function refuse(
    link: string,
    key: string,
    code: RefusalCode,
    message: string,
    want: Want,
    more?: { tokenDigest?: string; payer?: Payer },
  ) {
    metrics.refused(more?.payer === undefined ? code : 'share')
    const answer: FailedAnswer = { type: 'failed', key, code, message, ageMs: 0, ...more }
    if (code === 'token_expired') answer.retryAfterMs = EXPIRED_RETRY_MS
    refused.add(link, answer, want)
    markDue(link, key)
    return undefined
  }

  /**
   * A payer has had their share. Another one may have the key: the gateway says who.
   *
   * @param payer `undefined` where nobody is charged
   */
  function refuseShare(link: string, key: string, want: Want, payer: Payer | undefined) {
    return refuse(link, key, 'capacity', SHARE_TAKEN, want, { payer })
  }

  /** Tells all that want a key why they cannot have it, and drops it. */
  function endAll(entry: Entry, code: RefusalCode, message: string) {
    for (const { link, want } of interest.drop(entry)) refuse(link, entry.key, code, message, want)
    forget(entry)
  }

  /** @param entry that nobody wants any more */
  function forget(entry: Entry) {
    dropAll(entry)
    schedule.end(entry)
    fetches.abandon(entry)
    table.recount(entry)
  }

  /**
   * The backend refused a user's token. Links that sent this token are told so; for the others the backend is asked
   * with theirs.
   *
   * @param authorization that the backend was asked with
   */
  function forbid(entry: Entry, authorization: string | undefined) {
    const digest = authorization === undefined ? {} : { tokenDigest: tokenDigest(authorization) }
    const ended = interest.drop(entry, ({ credentials }) => credentials?.authorization === authorization)
    for (const { link, want } of ended) refuse(link, entry.key, 'forbidden', REFUSED_BY_BACKEND, want, digest)
    if (ended.length > 0) metrics.ownEnded('forbidden')
    if (!isWanted(entry)) return forget(entry)
    if (!isWatched(entry)) schedule.end(entry)
    // It may have been fetched with this token.
    dropValue(entry)
    invalidate(entry)
    fetches.want(entry)
    table.recount(entry)
  }

  return {
    refuse,
    refuseShare,
    /** @param entry whose id the namespace takes no more */
    refuseMisfit: (entry: Entry, why: string) => endAll(entry, 'bad_key', why),
    /** @param entry for which there is no room beside all else */
    refuseAll: (entry: Entry) => endAll(entry, 'capacity', errorCodes.capacity),
    /** @param entry for which those who want it have no room in their shares */
    refuseShares(entry: Entry) {
      for (const { link, want, payer } of interest.drop(entry)) refuseShare(link, entry.key, want, payer)
      forget(entry)
    },
    forbid,
    /** @param entry of whose user no token is valid any more */
    expireAll(entry: Entry) {
      metrics.ownEnded('expired')
      endAll(entry, 'token_expired', errorCodes.token_expired)
    },
  }
}
