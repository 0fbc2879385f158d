// How many keys sessions may hold. Counted are those that they are subscribed to, values and rooms together, by session, by account and in
// all; and the rooms that each has joined.
import type { Problem } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import type { Lasting } from './gate.ts'

interface Deps {
  keysPerSessionMax: number
  subscriptionsMax: number
}

/** Rooms that one session may have joined: a page shows a few. */
const JOINS_MAX = 100

export function createQuota({ keysPerSessionMax, subscriptionsMax }: Deps) {
  let subscriptions = 0
  let joins = 0

  /**
   * Takes one more key.
   *
   * @returns the limit that is reached, if one is
   */
  function take(session: Session, act: Lasting): Problem | undefined {
    // An ended session would never give it back. Nobody is told the problem.
    if (session.ended) return { code: 'capacity' }
    return act === 'subscribe' ? takeSubscription(session) : takeJoin(session)
  }

  function takeSubscription(session: Session): Problem | undefined {
    const { account } = session
    if (session.subscriptions.size >= keysPerSessionMax || (account && account.keys >= account.keysMax)) {
      return { code: 'too_many_keys' }
    }
    if (subscriptions >= subscriptionsMax) return { code: 'capacity' }
    subscriptions++
    if (account) account.keys++
    return undefined
  }

  function takeJoin({ memberships }: Session): Problem | undefined {
    if (memberships && memberships.size >= JOINS_MAX) {
      const message = `this session has joined ${JOINS_MAX} rooms: leave some`
      return { code: 'too_many_keys', message }
    }
    joins++
    return undefined
  }

  /** A key is held no more. */
  function giveBack({ account }: Session, act: Lasting) {
    if (act === 'join') {
      joins--
      return
    }
    subscriptions--
    if (account) account.keys--
  }

  return { take, giveBack, stats: () => ({ subscriptions, joins }) }
}
