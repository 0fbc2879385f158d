// Stands a session up for keys: what was accepted is said at once, then where each key stands.
import { errorCodes } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/protocol').Subscribe} Subscribe
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** Cheap enough for a client that asks for thousands of keys too many, once. */
const REFUSALS_PER_TOKEN = 10

/** @param {Pick<import('./index.js').HandlerDeps, 'subscriptions' | 'outbox' | 'charge' | 'limits' | 'now'>} deps */
export const createSubscribe = ({ subscriptions, outbox, charge, limits, now }) =>
  /**
   * @param {Session} session
   * @param {Subscribe} message
   */
  function subscribe(session, { id, keys }) {
    const retryAfterMs = limits.keysWaitMs(session, now())
    if (retryAfterMs > 0) {
      const error = /** @type {const} */ ({ type: 'error', code: 'rate_limited', message: errorCodes.rate_limited })
      return outbox.send(session, { ...error, id, retryAfterMs })
    }

    // Of a key named twice the last version counts.
    const wanted = new Map(keys.map(({ key, version }) => [key, version]))
    const keysBefore = subscriptions.stats().keys
    const accepted = []
    const refused = []
    for (const [key, version] of wanted) {
      const refusal = subscriptions.add(session, key, version)
      if (refusal) refused.push({ key, code: refusal.code, message: refusal.message })
      else accepted.push({ key })
    }

    const watchedAnew = subscriptions.stats().keys - keysBefore
    limits.takeKeys(session, { watchedAnew, watchedBefore: accepted.length - watchedAnew })

    // Values follow by themselves: what a subscription lacks is written after what is queued here.
    outbox.send(session, { type: 'subscribed', id, keys: accepted })
    for (const error of refused) outbox.send(session, { type: 'error', id, ...error })
    // Each error is many times longer than a bad key: without a price one message could ask for megabytes of them.
    charge(session, Math.floor(refused.length / REFUSALS_PER_TOKEN))
  }
