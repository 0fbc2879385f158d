// Ends a session's subscriptions to keys. The request is idempotent: a key it was not subscribed to is no error.
import type { ControlMessage, Unsubscribe } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'

interface Deps {
  readonly topics: { unsubscribe(session: Session, key: string): void }
  readonly outbox: { send(session: Session, message: ControlMessage): void }
}

export const createUnsubscribe = ({ topics, outbox }: Deps) =>
  function unsubscribe(session: Session, { id, keys }: Unsubscribe) {
    for (const key of keys) topics.unsubscribe(session, key)
    outbox.send(session, { type: 'ok', id })
  }
