// Publishes a message into a room. The answer follows when the journal has kept it, or surely has not.
import type { Publish } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import type { HandlerDeps } from './index.ts'

export const createPublish = ({ publishes }: Pick<HandlerDeps, 'publishes'>) =>
  function publish(session: Session, message: Publish) {
    return publishes.fromSession(session, message)
  }
