// The refusals of wants: the links are told the reason, and what nobody wants any more is dropped.
import { REFUSED_BY_BACKEND, tokenDigest } from '@keycast/backbone'
import { errorCodes } from '@keycast/protocol'
import { dropAll, dropValue, invalidate } from '../keys/held.ts'
import { isWanted, isWatched } from '../keys/interest.ts'

/**
 * @typedef {import('../keys/entry.ts').Entry} Entry
 * @typedef {import('../keys/interest.ts').Want} Want
 * @typedef {'bad_key' | 'unknown_namespace' | 'capacity' | 'forbidden' | 'token_expired'} RefusalCode
 * @typedef {ReturnType<typeof createRefusals>} Refusals
 */

/** A gateway may ask again after this time if its user's token had expired. It reports a new token by itself. */
const EXPIRED_RETRY_MS = 1_000

/**
 * @param {object} deps
 * @param {import('../keys/key-table.ts').KeyTable} deps.table
 * @param {import('../keys/interest.ts').Interest} deps.interest
 * @param {import('../fetching/fetches.ts').Fetches} deps.fetches
 * @param {import('../timing/schedule.ts').Schedule} deps.schedule
 * @param {ReturnType<typeof import('./refused-wants.ts').createRefusedWants>} deps.refused
 * @param {(link: string, key: string) => void} deps.markDue the link is due the key's latest state
 * @param {import('../metrics.ts').FetchMetrics} deps.metrics
 */
export function createRefusals({ table, interest, fetches, schedule, refused, markDue, metrics }) {
  /**
   * @param {string} link
   * @param {string} key
   * @param {RefusalCode} code
   * @param {string} message
   * @param {Want} want
   * @param {{ tokenDigest?: string }} [more]
   */
  function refuse(link, key, code, message, want, more) {
    metrics.refused(code)
    /** @type {import('@keycast/backbone').FailedAnswer} */
    const answer = { type: 'failed', key, code, message, ageMs: 0, ...more }
    if (code === 'token_expired') answer.retryAfterMs = EXPIRED_RETRY_MS
    refused.add(link, answer, want)
    markDue(link, key)
    return undefined
  }

  /**
   * Tells all that want a key why they cannot have it, and drops it.
   *
   * @param {Entry} entry
   * @param {RefusalCode} code
   * @param {string} message
   */
  function endAll(entry, code, message) {
    for (const { link, want } of interest.drop(entry)) refuse(link, entry.key, code, message, want)
    forget(entry)
  }

  /** @param {Entry} entry that nobody wants any more */
  function forget(entry) {
    dropAll(entry)
    schedule.end(entry)
    fetches.abandon(entry)
    table.recount(entry)
  }

  /**
   * The backend refused a user's token. Links that sent this token are told so; for the others the backend is asked
   * with theirs.
   *
   * @param {Entry} entry
   * @param {string | undefined} authorization that the backend was asked with
   */
  function forbid(entry, authorization) {
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
    /** @param {Entry} entry for which there is no room beside all else */
    refuseAll: entry => endAll(entry, 'capacity', errorCodes.capacity),
    forbid,
    /** @param {Entry} entry of whose user no token is valid any more */
    expireAll(entry) {
      metrics.ownEnded('expired')
      endAll(entry, 'token_expired', errorCodes.token_expired)
    },
  }
}
