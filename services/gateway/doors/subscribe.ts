// Subscribes a session to keys. Values are confirmed at once, then the state of each follows; each room once it is known
// where its stream begins.
import { type ControlMessage, errorMessage, type Problem, type RequestId, type Subscribe } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import { errorAbout, type Start } from '../topics/topics.ts'

/** Cheap enough for a client whose 5,000 keys are all refused, once: a refusal takes as long as a request to answer. */
const REFUSALS_PER_TOKEN = 4

interface Deps {
  readonly topics: {
    subscribe(session: Session, key: string, start: Start, id: RequestId | undefined): 'value' | 'room' | Problem
    asked(): number
  }
  readonly outbox: { send(session: Session, message: ControlMessage): void }
  readonly rateLimit: {
    charge(session: Session, requests: number): number
    keysWaitMs(session: Session): number
    chargeKeys(session: Session, keys: { watchedBefore: number; watchedAnew: number }): void
  }
}

export const createSubscribe = ({ topics, outbox, rateLimit }: Deps) => {
  return function subscribe(session: Session, { id, keys }: Subscribe) {
    const retryAfterMs = rateLimit.keysWaitMs(session)
    if (retryAfterMs > 0) return outbox.send(session, errorMessage({ code: 'rate_limited', retryAfterMs }, { id }))

    // If a key is named twice, the last one counts.
    const wanted = new Map(keys.map(each => [each.key, each]))
    const accepted = []
    const refused = []
    let roomsAccepted = 0
    for (const start of wanted.values()) {
      const { key } = start
      const askedBefore = topics.asked()
      const subscribed = topics.subscribe(session, key, start, id)
      if (typeof subscribed === 'string') {
        if (subscribed === 'value') accepted.push({ key })
        else roomsAccepted++
        // At once: what is charged below may end the session, which has no account then.
        const watchedAnew = topics.asked() - askedBefore
        rateLimit.chargeKeys(session, { watchedAnew, watchedBefore: 1 - watchedAnew })
      } else {
        refused.push(errorAbout(session, key, subscribed, id))
        // Each error is many times longer than a bad key. Without a price, one message could ask for megabytes of errors.
        const isCharged = refused.length % REFUSALS_PER_TOKEN === 0
        if (isCharged && rateLimit.charge(session, 1) === Number.POSITIVE_INFINITY) return
      }
    }

    // The states follow by themselves: due values are written after the messages that are queued here.
    if (accepted.length > 0 || roomsAccepted === 0) outbox.send(session, { type: 'subscribed', id, keys: accepted })
    for (const error of refused) outbox.send(session, error)
  }
}
