// Joins a room under a name. The answer follows when the journal has decided who has the name.
import type { Join } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import type { HandlerDeps } from './index.ts'

export const createJoin = ({ joins }: Pick<HandlerDeps, 'joins'>) =>
  function join(session: Session, message: Join) {
    return joins.join(session, message)
  }
