// The rooms that sessions joined. A session that says it leaves is gone at once; one whose connection broke is kept by the
// journal for a while, so that its user can come back through any gateway.
import type { Leaving, NotPublished, RoomsBackbone } from '@keycast/backbone'
import type { Join, Leave, RequestId } from '@keycast/protocol'
import { type Decisions, JOINED } from '../access/backend/decisions.ts'
import { type Counts, countOne } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import { type Admitted, type Gate, isRefusal } from '../gate/gate.ts'
import { type Problem, problemMessage, type Refusal } from '../keys/problem.ts'
import { isSubscribed, type Session } from '../sessions/session.ts'

export type Joins = ReturnType<typeof createJoins>

/** A session's membership in a room. `tab`: the join that stands. `pending`: one that waits for its answer. */
interface Membership {
  tab: string | undefined
  pending: string | undefined
  user: string
  claim: string | undefined
}

/** Rooms that one session may have joined: a page shows a few. */
const JOINS_MAX = 100

/** A client repeats a join after this time if another one to the same room is under way. */
const RETRY_MS = 100

interface Deps {
  gate: Pick<Gate, 'enter' | 'covers'>
  decisions: Pick<Decisions, 'applies' | 'register' | 'unregister'>
  backbone: Pick<RoomsBackbone, 'join' | 'leave'>
  outbox: Pick<Outbox, 'send'>
  /** Within which a join is answered. */
  joinMs: number
  counts: Pick<Counts, 'joins'>
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createJoins({ gate, decisions, backbone, outbox, joinMs, counts, now }: Deps) {
  /** Sessions with memberships, by key of the room. */
  const members = new Map<Session, Map<string, Membership>>()
  let count = 0

  /**
   * Joins that wait for the backend to decide, by key of the room. `count`: those that a leave overtook wait as well.
   */
  const undecided = new Map<Session, { count: number; byRoom: Map<string, Join> }>()

  /**
   * The answer follows, whatever it is.
   *
   * @returns once it is answered
   */
  function join(session: Session, message: Join): Promise<void> | void {
    const { id, key } = message
    const waiting = undecided.get(session)
    if (waiting?.byRoom.has(key)) return refuse(session, id, key, underWay)
    if (waiting && waiting.count >= JOINS_MAX) return refuse(session, id, key, tooManyWaiting)
    const entered = gate.enter(session, 'join', key)
    if (entered instanceof Promise) return joinEntered(session, message, entered)
    return isRefusal(entered) ? refuse(session, id, key, entered) : enter(session, message)
  }

  async function joinEntered(session: Session, message: Join, entering: Promise<Admitted | Refusal>) {
    const { id, key } = message
    const waiting = undecided.get(session) ?? { count: 0, byRoom: new Map() }
    undecided.set(session, waiting)
    waiting.count++
    waiting.byRoom.set(key, message)
    const entered = await entering
    waiting.count--
    if (waiting.count === 0 && undecided.get(session) === waiting) undecided.delete(session)
    // A leave came, or the session ended. After a leave another join may wait here; this one must not touch it.
    if (session.ended || waiting.byRoom.get(key) !== message) return refuse(session, id, key, leftBefore)
    waiting.byRoom.delete(key)
    return isRefusal(entered) ? refuse(session, id, key, entered) : enter(session, message)
  }

  /** @param session that may join @param message the session may join */
  function enter(session: Session, { id, key, name, claim: given }: Join) {
    const user = session.rights.user ?? ''
    // A session that joins again without its claim means itself.
    const claim = user === '' ? (given ?? membershipOf(session, key)?.claim) : undefined
    const known = membershipOf(session, key)
    if (known?.pending !== undefined) return refuse(session, id, key, underWay)
    // Otherwise the session's own name would count as taken by somebody else.
    if (known && (known.user !== user || known.claim !== claim)) end(session, key, 'now')
    const membership = membershipOf(session, key) ?? open(session, key, { user, claim })
    if (!membership) {
      const message = `this session has joined ${JOINS_MAX} rooms: leave some`
      return refuse(session, id, key, { code: 'too_many_keys', message })
    }
    const { tab, joined } = backbone.join(
      { room: key, user, name, claim },
      { deadlineMs: joinMs, onLost: refused => lose(session, key, membership, tab, refused) },
    )
    membership.pending = tab
    return joined.then(outcome => answer(session, id, key, membership, tab, outcome))
  }

  const membershipOf = (session: Session, key: string) => members.get(session)?.get(key)

  /** @returns `undefined` if the session has too many */
  function open(session: Session, key: string, who: Pick<Membership, 'user' | 'claim'>): Membership | undefined {
    const own = members.get(session) ?? new Map()
    if (own.size >= JOINS_MAX) return undefined
    const membership = { tab: undefined, pending: undefined, ...who }
    members.set(session, own.set(key, membership))
    count++
    if (decisions.applies(key)) decisions.register(session, key, JOINED)
    return membership
  }

  function forget(session: Session, key: string) {
    const own = members.get(session)
    if (!own?.delete(key)) return
    count--
    decisions.unregister(session, key, JOINED)
    if (own.size === 0) members.delete(session)
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
    if (outcome.error !== undefined) {
      if (membership.tab === undefined) forget(session, key)
      const { error: code, message, retryAfterMs } = outcome
      return refuse(session, id, key, { code, message, retryAfterMs })
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
  function lose(
    session: Session,
    key: string,
    membership: Membership,
    tab: string,
    { error: code, message }: NotPublished,
  ) {
    if (membership.tab !== tab) return
    membership.tab = undefined
    if (membership.pending === undefined) forget(session, key)
    refuse(session, undefined, key, { code, message })
  }

  function refuse(session: Session, id: RequestId | undefined, key: string, refusal: Refusal) {
    if (session.ended) return
    countOne(counts.joins, refusal.code)
    // The error says nothing about a subscription to the room, which stands.
    const subscribed = isSubscribed(session, key)
    outbox.send(session, problemMessage(refusal, now(), { id, key, subscribed }))
  }

  function end(session: Session, key: string, leaving: Leaving) {
    const membership = membershipOf(session, key)
    if (!membership) return
    const { tab, pending } = membership
    membership.tab = membership.pending = undefined
    forget(session, key)
    // No member saw this one: the journal has not answered its join yet.
    if (pending !== undefined) backbone.leave(pending, 'now')
    if (tab !== undefined) backbone.leave(tab, leaving)
  }

  return {
    join,

    leave(session: Session, { id, key }: Leave) {
      undecided.get(session)?.byRoom.delete(key)
      end(session, key, 'now')
      outbox.send(session, { type: 'ok', id })
    },

    /** @param session its rights changed */
    endUncovered(session: Session) {
      for (const key of [...(members.get(session)?.keys() ?? [])]) {
        const problem = gate.covers(session.rights, 'join', key)
        if (!problem) continue
        end(session, key, 'now')
        refuse(session, undefined, key, problem)
      }
    },

    /**
     * Applies the backend's decision. A refused user leaves the room. Users stay while the backend cannot be asked:
     * otherwise each of its restarts would empty all rooms, and nobody would come back by themselves.
     */
    decided(session: Session, key: string, problem: Problem | undefined) {
      if (!problem || problem.retryAfterMs !== undefined || !membershipOf(session, key)) return
      end(session, key, 'now')
      refuse(session, undefined, key, problem)
    },

    /**
     * The session has another viewer: what was decided for the one before says nothing.
     *
     * @param change sets the new viewer
     */
    changeViewer(session: Session, change: () => void) {
      const keys = [...(members.get(session)?.keys() ?? [])].filter(decisions.applies)
      for (const key of keys) decisions.unregister(session, key, JOINED)
      change()
      for (const key of keys) {
        const { problem } = decisions.register(session, key, JOINED)
        if (!problem) continue
        end(session, key, 'now')
        refuse(session, undefined, key, problem)
      }
    },

    /** @param session that ended @param leaving has ended */
    drop(session: Session, leaving: Leaving) {
      undecided.delete(session)
      for (const key of [...(members.get(session)?.keys() ?? [])]) end(session, key, leaving)
    },

    stats: () => ({ joins: count }),
  }
}

const underWay: Refusal = {
  code: 'too_many_waiting',
  message: 'a join of this room is under way: wait for its answer',
  retryAfterMs: RETRY_MS,
}

const tooManyWaiting: Refusal = {
  code: 'too_many_waiting',
  message: `${JOINS_MAX} joins of this session wait for the backend's word: wait for some of the answers first`,
  retryAfterMs: RETRY_MS,
}

const leftBefore: Refusal = { code: 'bad_message', message: 'a leave came before the join was answered' }
