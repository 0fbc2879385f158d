// Subscribes a session to keys. Values are confirmed at once, then the state of each follows; rooms once it is known where
// their streams begin.
import { errorMessage, type Subscribe, type Wanted } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import type { HandlerDeps } from './index.ts'

/** Cheap enough for a client that asks for thousands of keys too many, once. */
const REFUSALS_PER_TOKEN = 10

export const createSubscribe = ({
  admissions,
  subscriptions,
  rooms,
  outbox,
  rateLimit,
}: Pick<HandlerDeps, 'admissions' | 'subscriptions' | 'rooms' | 'outbox' | 'rateLimit'>) => {
  return function subscribe(session: Session, { id, keys }: Subscribe) {
    const retryAfterMs = rateLimit.keysWaitMs(session)
    if (retryAfterMs > 0) return outbox.send(session, errorMessage({ code: 'rate_limited', retryAfterMs }, { id }))

    // If a key is named twice, the last one counts.
    const wanted = new Map(keys.map(each => [each.key, each]))
    const keysBefore = askedKeys()
    const accepted = []
    const refused = []
    const ofRooms: Wanted[] = []
    for (const each of wanted.values()) {
      const { key, version } = each
      if (rooms.isRoom(key)) {
        ofRooms.push(each)
        continue
      }
      const problem = admissions.subscribe(session, key, version)
      if (problem) refused.push(errorMessage(problem, { id, key, subscribed: false }))
      else accepted.push({ key })
    }
    const announcement = rooms.announce(session, id)
    let roomsAccepted = 0
    for (const { key, after, last, presence = false } of ofRooms) {
      const start = after || last !== undefined || presence ? { after, last, presence } : undefined
      const problem = admissions.subscribeRoom(session, key, start, announcement)
      if (problem) refused.push(errorMessage(problem, { id, key, subscribed: false }))
      else roomsAccepted++
    }

    const watchedAnew = Math.max(0, askedKeys() - keysBefore)
    rateLimit.chargeKeys(session, { watchedAnew, watchedBefore: accepted.length + roomsAccepted - watchedAnew })

    // The states follow by themselves: due values are written after the messages that are queued here.
    if (roomsAccepted === 0 || ofRooms.length < wanted.size) {
      outbox.send(session, { type: 'subscribed', id, keys: accepted })
    }
    for (const error of refused) outbox.send(session, error)
    rooms.finish(announcement)
    // Each error is many times longer than a bad key. Without a price, one message could ask for megabytes of errors. The
    // charge comes last, because it may end the session.
    rateLimit.charge(session, Math.floor(refused.length / REFUSALS_PER_TOKEN))
  }

  /** The number of keys that need a question to the fetcher, a backend or the journal. */
  function askedKeys() {
    return subscriptions.stats().keys + admissions.stats().awaiting + rooms.stats().rooms
  }
}
