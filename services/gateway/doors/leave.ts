// Leaves a room. One that was not joined is left already.
import type { Leave } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import type { HandlerDeps } from './index.ts'

export const createLeave = ({ joins }: Pick<HandlerDeps, 'joins'>) =>
  function leave(session: Session, message: Leave) {
    joins.leave(session, message)
  }
