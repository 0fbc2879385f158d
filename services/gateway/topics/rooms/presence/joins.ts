// The rooms that sessions joined. A session that says it leaves is gone at once; one whose connection broke is kept by the
// journal for a while, so that its user can come back through any gateway.
import type { Leaving, RoomsBackbone } from '@keycast/backbone'
import { type ControlMessage, isProblem, type Join, type Leave, type Problem, type RequestId } from '@keycast/protocol'
import type { Containment } from '@keycast/service'
import { type Counts, countOne } from '../../../counts.ts'
import type { CloseCode } from '../../../delivery/outbox.ts'
import type { Admitted, Lasting } from '../../../gate/gate.ts'
import type { Session } from '../../../sessions/session.ts'
import { errorAbout } from '../../topics.ts'

/**
 * A session's membership in a room. `asked`: a join that waits for the backend to decide. `pending`: one that waits for
 * the journal. `tab`: the join that stands.
 */
export interface Membership {
  asked: Join | undefined
  pending: string | undefined
  tab: string | undefined
  user: string
  claim: string | undefined
}

/** A client repeats a join after this time if another one to the same room is under way. */
const RETRY_MS = 100

interface Deps {
  gate: {
    hold(session: Session, act: Lasting, key: string): Admitted | Problem | 'waits'
    release(session: Session, act: Lasting, key: string): void
  }
  backbone: Pick<RoomsBackbone, 'join' | 'leave'>
  outbox: { send(session: Session, message: ControlMessage): void; close(session: Session, code: CloseCode): void }
  /** Within which a join is answered. */
  joinMs: number
  containment: Pick<Containment, 'guard'>
  counts: Pick<Counts, 'joins'>
}

export function createJoins({ gate, backbone, outbox, joinMs, containment, counts }: Deps) {
  const membershipOf = (session: Session, key: string) => session.memberships?.get(key)

  /** The answer follows, whatever it is. */
  function join(session: Session, message: Join): Promise<void> | void {
    const { id, key } = message
    const known = membershipOf(session, key)
    if (known?.asked || known?.pending !== undefined) return refuse(session, id, key, underWay)
    const held = gate.hold(session, 'join', key)
    if (held !== 'waits' && isProblem(held)) return refuse(session, id, key, held)
    const membership = known ?? open(session, key)
    if (held !== 'waits') return enter(session, membership, message)
    membership.asked = message
  }

  function open(session: Session, key: string): Membership {
    const membership = { asked: undefined, pending: undefined, tab: undefined, user: '', claim: undefined }
    session.memberships ??= new Map()
    session.memberships.set(key, membership)
    return membership
  }

  /**
   * @param membership whose session may join
   * @returns once the join is answered
   */
  function enter(session: Session, membership: Membership, { id, key, name, claim: given }: Join) {
    const user = session.rights.user ?? ''
    // A session that joins again without its claim means itself.
    const claim = user === '' ? (given ?? membership.claim) : undefined
    // Otherwise the session's own name would count as taken by somebody else.
    if (membership.user !== user || membership.claim !== claim) vacate(membership, 'now')
    const { tab, joined } = backbone.join(
      { room: key, user, name, claim, payer: session.payer },
      { deadlineMs: joinMs, onLost: problem => lose(session, key, membership, tab, problem) },
    )
    Object.assign(membership, { user, claim, pending: tab })
    return joined.then(outcome => answer(session, id, key, membership, tab, outcome))
  }

  const enterAdmitted = containment.guard('session', enter, session => outbox.close(session, 'internalError'))

  function forget(session: Session, key: string) {
    session.memberships?.delete(key)
    gate.release(session, 'join', key)
  }

  function answer(
    session: Session,
    id: RequestId | undefined,
    key: string,
    membership: Membership,
    tab: string,
    outcome: Awaited<ReturnType<RoomsBackbone['join']>['joined']>,
  ) {
    if (membership.pending !== tab) return refuse(session, id, key, leftBefore)
    membership.pending = undefined
    if (isProblem(outcome)) {
      if (membership.tab === undefined) forget(session, key)
      return refuse(session, id, key, outcome)
    }
    // Earlier memberships end only now: a user whose new name is taken keeps the one they have.
    if (membership.tab !== undefined) backbone.leave(membership.tab, 'now')
    membership.tab = tab
    const { name, claim } = outcome
    membership.claim = claim
    countOne(counts.joins, 'joined')
    outbox.send(session, { type: 'joined', id, key, name, claim })
  }

  /** The journal lost its memory, and cannot take the member again. */
  function lose(session: Session, key: string, membership: Membership, tab: string, problem: Problem) {
    if (membership.tab !== tab) return
    membership.tab = undefined
    if (membership.pending === undefined) forget(session, key)
    tell(session, key, problem)
  }

  function refuse(session: Session, id: RequestId | undefined, key: string, problem: Problem) {
    if (session.ended) return
    countOne(counts.joins, problem.code)
    outbox.send(session, errorAbout(session, key, problem, id))
  }

  /** A membership has ended: said without a time to come back, since the gateway does not try again. */
  function tell(session: Session, key: string, problem: Problem) {
    countOne(counts.joins, problem.code)
    outbox.send(session, { ...errorAbout(session, key, problem), retryAfterMs: undefined })
  }

  function end(session: Session, key: string, leaving: Leaving) {
    const membership = membershipOf(session, key)
    if (!membership) return
    forget(session, key)
    vacate(membership, leaving)
  }

  function vacate(membership: Membership, leaving: Leaving) {
    const { tab, pending } = membership
    membership.tab = membership.pending = undefined
    // No member saw this one: the journal has not answered its join yet.
    if (pending !== undefined) backbone.leave(pending, 'now')
    if (tab !== undefined) backbone.leave(tab, leaving)
  }

  const keysOf = (session: Session) => [...(session.memberships?.keys() ?? [])]

  return {
    join,
    keysOf,

    leave(session: Session, { id, key }: Leave) {
      const { asked } = membershipOf(session, key) ?? {}
      end(session, key, 'now')
      outbox.send(session, { type: 'ok', id })
      if (asked) refuse(session, asked.id, key, leftBefore)
    },

    stateOf(session: Session, key: string) {
      const membership = membershipOf(session, key)
      if (!membership) return undefined
      return membership.asked ? 'waits' : 'stands'
    },

    /** A member stays whoever its user is by now: others see the name it came with. */
    pause() {},

    /**
     * A session that is refused leaves the room. Members stay while the backend cannot be asked: otherwise each of its
     * restarts would empty all rooms, and nobody would come back by themselves.
     */
    decided(session: Session, key: string, outcome: Admitted | Problem) {
      const membership = membershipOf(session, key) as Membership
      const { asked } = membership
      membership.asked = undefined
      if (!isProblem(outcome)) {
        if (asked) enterAdmitted(session, membership, asked)
        return
      }
      const isMember = membership.tab !== undefined || membership.pending !== undefined
      if (outcome.retryAfterMs === undefined || !isMember) end(session, key, 'now')
      else if (!asked) return
      refuse(session, asked?.id, key, outcome)
    },

    /** @param session that ended @param leaving has ended */
    drop(session: Session, leaving: Leaving) {
      for (const key of keysOf(session)) end(session, key, leaving)
    },
  }
}

const underWay: Problem = {
  code: 'too_many_waiting',
  message: 'a join of this room is under way: wait for its answer',
  retryAfterMs: RETRY_MS,
}

const leftBefore: Problem = { code: 'bad_message', message: 'a leave came before the join was answered' }
