// Subscribes a session to keys: the accepted ones are confirmed at once, then the state of each follows.
import { errorMessage } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/protocol').Subscribe} Subscribe
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** Cheap enough for a client that asks for thousands of keys too many, once. */
const REFUSALS_PER_TOKEN = 10

/** @param {Pick<import('./index.js').HandlerDeps, 'admissions' | 'subscriptions' | 'outbox' | 'rateLimit'>} deps */
export const createSubscribe = ({ admissions, subscriptions, outbox, rateLimit }) => {
  /** What has to be asked for, of the fetcher or the backend. */
  const asked = () => subscriptions.stats().keys + admissions.stats().awaiting

  /**
   * @param {Session} session
   * @param {Subscribe} message
   */
  function subscribe(session, { id, keys }) {
    const retryAfterMs = rateLimit.keysWaitMs(session)
    if (retryAfterMs > 0) return outbox.send(session, errorMessage('rate_limited', { id, retryAfterMs }))

    // Of a key named twice the last version counts.
    const wanted = new Map(keys.map(({ key, version }) => [key, version]))
    const askedBefore = asked()
    const accepted = []
    const refused = []
    for (const [key, version] of wanted) {
      const refusal = admissions.subscribe(session, key, version)
      if (refusal) refused.push(errorMessage(refusal.code, { id, key, subscribed: false, message: refusal.message }))
      else accepted.push({ key })
    }

    const watchedAnew = Math.max(0, asked() - askedBefore)
    rateLimit.chargeKeys(session, { watchedAnew, watchedBefore: accepted.length - watchedAnew })

    // The states follow by themselves: what a subscription is due is written after what is queued here.
    outbox.send(session, { type: 'subscribed', id, keys: accepted })
    for (const error of refused) outbox.send(session, error)
    // Each error is many times longer than a bad key: without a price one message could ask for megabytes of them.
    rateLimit.charge(session, Math.floor(refused.length / REFUSALS_PER_TOKEN))
  }

  return subscribe
}
