// The rooms that sessions joined. A session that says it leaves is gone at once; one whose connection broke is kept by the
// journal for a while, so that its user can come back through any gateway.
import { JOINED } from '../access/backend/decisions.ts'
import { countOne } from '../counts.ts'
import { isRefusal } from '../gate/gate.ts'
import { problemMessage } from '../keys/problem.ts'
import { isSubscribed } from '../sessions/session.ts'

/**
 * @typedef {import('@keycast/protocol').RequestId} RequestId
 * @typedef {import('../sessions/session.ts').Session} Session
 * @typedef {ReturnType<typeof createJoins>} Joins
 *
 * A session's membership in a room. `tab`: the join that stands. `pending`: one that waits for its answer.
 * @typedef {{ tab: string | undefined, pending: string | undefined, user: string, claim: string | undefined }} Membership
 *
 * @typedef {import('../keys/problem.ts').Problem} Problem
 * @typedef {import('../keys/problem.ts').Refusal} Refusal
 */

/** Rooms that one session may have joined: a page shows a few. */
const JOINS_MAX = 100

/** A client repeats a join after this time if another one to the same room is under way. */
const RETRY_MS = 100

/**
 * @param {object} deps
 * @param {Pick<import('../gate/gate.ts').Gate, 'enter' | 'covers'>} deps.gate
 * @param {Pick<import('../access/backend/decisions.ts').Decisions, 'applies' | 'register' | 'unregister'>} deps.decisions
 * @param {Pick<import('@keycast/backbone').RoomsBackbone, 'join' | 'leave'>} deps.backbone
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'send'>} deps.outbox
 * @param {number} deps.joinMs within which a join is answered
 * @param {Pick<import('../counts.ts').Counts, 'joins'>} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createJoins({ gate, decisions, backbone, outbox, joinMs, counts, now }) {
  /** Sessions with memberships, by key of the room. @type {Map<Session, Map<string, Membership>>} */
  const members = new Map()
  let count = 0

  /**
   * Joins that wait for the backend to decide, by key of the room. `count`: those that a leave overtook wait as well.
   *
   * @type {Map<Session, { count: number, byRoom: Map<string, import('@keycast/protocol').Join> }>}
   */
  const undecided = new Map()

  /**
   * The answer follows, whatever it is.
   *
   * @param {Session} session
   * @param {import('@keycast/protocol').Join} message
   * @returns {Promise<void> | void} once it is answered
   */
  function join(session, message) {
    const { id, key } = message
    const waiting = undecided.get(session)
    if (waiting?.byRoom.has(key)) return refuse(session, id, key, underWay)
    if (waiting && waiting.count >= JOINS_MAX) return refuse(session, id, key, tooManyWaiting)
    const entered = gate.enter(session, 'join', key)
    if (entered instanceof Promise) return joinEntered(session, message, entered)
    return isRefusal(entered) ? refuse(session, id, key, entered) : enter(session, message)
  }

  /**
   * @param {Session} session @param {import('@keycast/protocol').Join} message
   * @param {Promise<import('../gate/gate.ts').Admitted | Refusal>} entering
   */
  async function joinEntered(session, message, entering) {
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

  /** @param {Session} session that may join @param {import('@keycast/protocol').Join} message the session may join */
  function enter(session, { id, key, name, claim: given }) {
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

  /** @param {Session} session @param {string} key */
  const membershipOf = (session, key) => members.get(session)?.get(key)

  /**
   * @param {Session} session @param {string} key @param {Pick<Membership, 'user' | 'claim'>} who
   * @returns {Membership | undefined} `undefined` if the session has too many
   */
  function open(session, key, who) {
    const own = members.get(session) ?? new Map()
    if (own.size >= JOINS_MAX) return undefined
    const membership = { tab: undefined, pending: undefined, ...who }
    members.set(session, own.set(key, membership))
    count++
    if (decisions.applies(key)) decisions.register(session, key, JOINED)
    return membership
  }

  /** @param {Session} session @param {string} key */
  function forget(session, key) {
    const own = members.get(session)
    if (!own?.delete(key)) return
    count--
    decisions.unregister(session, key, JOINED)
    if (own.size === 0) members.delete(session)
  }

  /**
   * @param {Session} session @param {RequestId | undefined} id @param {string} key @param {Membership} membership
   * @param {string} tab
   * @param {Awaited<ReturnType<import('@keycast/backbone').RoomsBackbone['join']>['joined']>} outcome
   */
  function answer(session, id, key, membership, tab, outcome) {
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

  /**
   * The journal lost its memory, and cannot take the member again.
   *
   * @param {Session} session @param {string} key @param {Membership} membership @param {string} tab
   * @param {import('@keycast/backbone').NotPublished} refused
   */
  function lose(session, key, membership, tab, { error: code, message }) {
    if (membership.tab !== tab) return
    membership.tab = undefined
    if (membership.pending === undefined) forget(session, key)
    refuse(session, undefined, key, { code, message })
  }

  /** @param {Session} session @param {RequestId | undefined} id @param {string} key @param {Refusal} refusal */
  function refuse(session, id, key, refusal) {
    if (session.ended) return
    countOne(counts.joins, refusal.code)
    // The error says nothing about a subscription to the room, which stands.
    const subscribed = isSubscribed(session, key)
    outbox.send(session, problemMessage(refusal, now(), { id, key, subscribed }))
  }

  /** @param {Session} session @param {string} key @param {import('@keycast/backbone').Leaving} leaving */
  function end(session, key, leaving) {
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

    /** @param {Session} session @param {import('@keycast/protocol').Leave} message */
    leave(session, { id, key }) {
      undecided.get(session)?.byRoom.delete(key)
      end(session, key, 'now')
      outbox.send(session, { type: 'ok', id })
    },

    /** @param {Session} session its rights changed */
    endUncovered(session) {
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
     *
     * @param {Session} session @param {string} key @param {Problem | undefined} problem
     */
    decided(session, key, problem) {
      if (!problem || problem.retryAfterMs !== undefined || !membershipOf(session, key)) return
      end(session, key, 'now')
      refuse(session, undefined, key, problem)
    },

    /**
     * The session has another viewer: what was decided for the one before says nothing.
     *
     * @param {Session} session
     * @param {() => void} change sets the new viewer
     */
    changeViewer(session, change) {
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

    /** @param {Session} session that ended @param {import('@keycast/backbone').Leaving} leaving has ended */
    drop(session, leaving) {
      undecided.delete(session)
      for (const key of [...(members.get(session)?.keys() ?? [])]) end(session, key, leaving)
    },

    stats: () => ({ joins: count }),
  }
}

/** @type {Refusal} */
const underWay = {
  code: 'too_many_waiting',
  message: 'a join of this room is under way: wait for its answer',
  retryAfterMs: RETRY_MS,
}

/** @type {Refusal} */
const tooManyWaiting = {
  code: 'too_many_waiting',
  message: `${JOINS_MAX} joins of this session wait for the backend's word: wait for some of the answers first`,
  retryAfterMs: RETRY_MS,
}

/** @type {Refusal} */
const leftBefore = { code: 'bad_message', message: 'a leave came before the join was answered' }
