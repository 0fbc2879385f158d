// Ends a session's subscriptions to keys. The request is idempotent: a key it was not subscribed to is no error.
import type { Unsubscribe } from '@keycast/protocol'
import type { Outbox } from '../delivery/outbox.ts'
import type { Session } from '../sessions/session.ts'
import type { Topics } from '../topics/topics.ts'

interface Deps {
  readonly topics: Pick<Topics, 'unsubscribe'>
  readonly outbox: Pick<Outbox, 'send'>
}

export const createUnsubscribe = ({ topics, outbox }: Deps) =>
  function unsubscribe(session: Session, { id, keys }: Unsubscribe) {
    for (const key of keys) topics.unsubscribe(session, key)
    outbox.send(session, { type: 'ok', id })
  }
