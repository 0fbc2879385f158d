// Counts the keys that sessions are subscribed to, values and rooms together: by session, by account and in all.
import { keyCountOf } from '../sessions/session.ts'

/**
 * @typedef {import('../sessions/session.ts').Session} Session
 * @typedef {ReturnType<typeof createPlaces>} Places
 */

/** @param {{ keysPerSessionMax: number, subscriptionsMax: number }} limits */
export function createPlaces({ keysPerSessionMax, subscriptionsMax }) {
  let taken = 0
  return {
    /**
     * Takes a place for one more subscription.
     *
     * @param {Session} session
     * @returns {'too_many_keys' | 'capacity' | undefined} the limit that left no place, if one did
     */
    take(session) {
      const { account } = session
      // An ended session would keep its place for good. Nobody is told the code.
      if (session.ended) return 'capacity'
      if (keyCountOf(session) >= keysPerSessionMax || (account && account.keys >= account.keysMax)) {
        return 'too_many_keys'
      }
      if (taken >= subscriptionsMax) return 'capacity'
      taken++
      if (account) account.keys++
      return undefined
    },

    /** A subscription ended. @param {Session} session */
    leave({ account }) {
      taken--
      if (account) account.keys--
    },

    taken: () => taken,
  }
}
