// Counts the keys that sessions are subscribed to, values and rooms together: by session, by account and in all.
import { keyCountOf, type Session } from '../sessions/session.ts'

export type Places = ReturnType<typeof createPlaces>

export function createPlaces({
  keysPerSessionMax,
  subscriptionsMax,
}: {
  keysPerSessionMax: number
  subscriptionsMax: number
}) {
  let taken = 0
  return {
    /**
     * Takes a place for one more subscription.
     *
     * @returns the limit that left no place, if one did
     */
    take(session: Session): 'too_many_keys' | 'capacity' | undefined {
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

    /** A subscription ended. */
    leave({ account }: Session) {
      taken--
      if (account) account.keys--
    },

    taken: () => taken,
  }
}
