// Ends a session's subscriptions to keys. The request is idempotent: a key it was not subscribed to is no error.
import type { Unsubscribe } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import type { HandlerDeps } from './index.ts'

export const createUnsubscribe = ({ topics, outbox }: Pick<HandlerDeps, 'topics' | 'outbox'>) =>
  function unsubscribe(session: Session, { id, keys }: Unsubscribe) {
    for (const key of keys) topics.unsubscribe(session, key)
    outbox.send(session, { type: 'ok', id })
  }
