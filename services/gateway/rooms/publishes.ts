// Publishes into rooms: the checks before the journal is asked, and the order of the answers to the publisher.
import { errorCodes, errorMessage, namespaceOf } from '@keycast/protocol'
import { countOne } from '../counts.ts'
import { isRefusal } from '../gate/gate.ts'
import { retryAfterMsOf } from '../keys/problem.ts'
import { isSubscribed } from '../sessions/session.ts'
import { holdAnswer } from './held-answers.ts'

/**
 * @typedef {import('@keycast/backbone').Published} Published
 * @typedef {import('@keycast/protocol').ControlMessage} ControlMessage
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {import('../sessions/session.ts').Session} Session
 * @typedef {import('./room.ts').RoomSubscription} RoomSubscription
 * @typedef {ReturnType<typeof createPublishes>} Publishes
 *
 * @typedef {{ code: ErrorCode, message: string, retryAfterMs?: number }} Refusal
 * @typedef {Published & { code?: undefined } | Refusal} Outcome
 *
 * A publish of a session. Its outcome is said after those of the session's earlier ones to the room.
 * @typedef {{ id: import('@keycast/protocol').RequestId | undefined, outcome: Outcome | undefined }} Pending
 *
 * @typedef {{ count: number, byRoom: Map<string, Pending[]> }} Publisher
 */

/** A client repeats a publish that found no place among those under way after this time. */
const RETRY_MS = 100

/**
 * @param {object} deps
 * @param {import('@keycast/service').JournalNamespaces} deps.namespaces
 * @param {Pick<import('../gate/gate.ts').Gate, 'enter' | 'operator'>} deps.gate
 * @param {Pick<import('@keycast/backbone').RoomsBackbone, 'publish'>} deps.backbone
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'send'>} deps.outbox
 * @param {number} deps.publishMs the outcome is answered within this time
 * @param {number} deps.publishesPendingMax of one session
 * @param {Pick<import('../counts.ts').Counts, 'publishes' | 'publishSeconds'>} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createPublishes({ namespaces, gate, backbone, outbox, publishMs, publishesPendingMax, counts, now }) {
  /** Those with publishes under way. @type {Map<Session, Publisher>} */
  const publishers = new Map()

  /**
   * A client publishes. The answer follows, whatever it is.
   *
   * @param {Session} session
   * @param {import('@keycast/protocol').Publish} message
   * @returns {Promise<void> | void} once it is answered
   */
  function fromSession(session, { id, key, messageId, data }) {
    /** @type {Pending} */
    const pending = { id, outcome: undefined }
    const publisher = publishers.get(session)
    // Not in its turn: what waits for the turn of others is what is too much already.
    if ((publisher?.count ?? 0) + session.answersHeld >= publishesPendingMax) {
      return outbox.send(session, answerOf(key, id, refuse(tooMany), isSubscribed(session, key)))
    }
    const entered = gate.enter(session, 'publish', key)
    if (!(entered instanceof Promise) && isRefusal(entered)) return endAtOnce(session, key, pending, refuse(entered))
    // Takes its place in the order before it waits.
    enqueue(session, key, pending)
    const message = { key, messageId, data }
    const publishing =
      entered instanceof Promise
        ? publishEntered(session, message, entered)
        : publish({ ...message, from: entered.rights.user ?? '' })
    return publishing.then(outcome => end(session, key, pending, outcome))
  }

  /**
   * The backend decides whom it lets into the room, and so who publishes there.
   *
   * @param {Session} session
   * @param {{ key: string, messageId?: string, data: string }} message
   * @param {Promise<import('../gate/gate.ts').Admitted | import('../keys/problem.ts').Refusal>} entering
   * @returns {Promise<Outcome>}
   */
  async function publishEntered(session, message, entering) {
    const entered = await entering
    if (isRefusal(entered)) return refuse(entered)
    // A revoked token publishes nothing.
    if (session.ended) return refuse(ended)
    return publish({ ...message, from: entered.rights.user ?? '' })
  }

  /**
   * A backend publishes, under any name.
   *
   * @param {{ key: string, messageId?: string, from: string, data: string }} message
   * @returns {Promise<Outcome>} never rejects
   */
  async function fromBackend(message) {
    const problem = gate.operator('room', message.key)
    return problem ? refuse(problem) : publish(message)
  }

  /**
   * @param {{ key: string, messageId?: string, from: string, data: string }} message its key is a room's
   * @returns {Promise<Outcome>}
   */
  async function publish({ key, messageId, from, data: text }) {
    const data = Buffer.from(text)
    const bytesMax = namespaces.get(namespaceOf(key))?.bytesMax ?? 0
    if (data.length > bytesMax) {
      return refuse({ code: 'too_large', message: `data is ${data.length} bytes long: ${bytesMax} at most here` })
    }
    const startMs = now()
    const result = await backbone.publish({ room: key, messageId, from, data }, { deadlineMs: publishMs })
    counts.publishSeconds.observe(now() - startMs)
    if (result.error !== undefined) {
      const { error: code, message, retryAfterMs } = result
      return refuse({ code, message, retryAfterMs })
    }
    countOne(counts.publishes, result.duplicate ? 'duplicate' : 'kept')
    return result
  }

  /** @param {import('../keys/problem.ts').Refusal} refusal @returns {Refusal} */
  function refuse(refusal) {
    const { code, message = errorCodes[code] } = refusal
    countOne(counts.publishes, code)
    return { code, message, retryAfterMs: retryAfterMsOf(refusal, now()) }
  }

  /** @param {Session} session @param {string} key @param {Pending} pending */
  function enqueue(session, key, pending) {
    const publisher = publishers.get(session) ?? { count: 0, byRoom: new Map() }
    publishers.set(session, publisher)
    publisher.count++
    const queue = publisher.byRoom.get(key)
    if (queue) queue.push(pending)
    else publisher.byRoom.set(key, [pending])
  }

  /** @param {Session} session @param {string} key @param {Pending} pending @param {Refusal} refusal */
  function endAtOnce(session, key, pending, refusal) {
    if (!publishers.get(session)?.byRoom.has(key)) return say(session, key, pending.id, refusal)
    enqueue(session, key, pending)
    end(session, key, pending, refusal)
  }

  /**
   * The outcome of a publish is known. It is answered after all publishes before it.
   *
   * @param {Session} session @param {string} key @param {Pending} pending that is enqueued
   * @param {Outcome} outcome
   */
  function end(session, key, pending, outcome) {
    pending.outcome = outcome
    const publisher = /** @type {Publisher} */ (publishers.get(session))
    const queue = /** @type {Pending[]} */ (publisher.byRoom.get(key))
    while (queue[0]?.outcome) {
      const { id, outcome: known } = queue[0]
      queue.shift()
      publisher.count--
      say(session, key, id, known)
    }
    if (queue.length > 0) return
    publisher.byRoom.delete(key)
    if (publisher.byRoom.size === 0) publishers.delete(session)
  }

  /**
   * @param {Session} session @param {string} key @param {Pending['id']} id @param {Outcome} outcome
   */
  function say(session, key, id, outcome) {
    if (session.ended) return
    const subscription = /** @type {RoomSubscription | undefined} */ (session.subscriptions.get(key))
    const answer = answerOf(key, id, outcome, isSubscribed(session, key))
    const held = subscription?.answers
    if (subscription && outcome.code === undefined && isAhead(outcome, subscription)) {
      holdAnswer(subscription, outcome.seq, answer)
    } else if (subscription && held) {
      // This answer must not overtake the answers before it.
      holdAnswer(subscription, held[held.length - 1].seq, answer)
    } else {
      outbox.send(session, answer)
    }
  }

  return {
    fromSession,
    fromBackend,
    underWay: () => publishers.size,
  }
}

/** @type {Refusal} */
const tooMany = {
  code: 'too_many_waiting',
  message: 'too many publishes of this session are under way: wait for the answers first',
  retryAfterMs: RETRY_MS,
}

/** Nobody is told: the session is gone. @type {import('../keys/problem.ts').Refusal} */
const ended = { code: 'too_many_waiting', message: 'the session ended' }

/**
 * Whether the publisher is to be sent its message first. Until its stream has begun it is not.
 *
 * @param {Published} published
 * @param {RoomSubscription} subscription
 */
function isAhead({ epoch, seq }, { room, cursor, placing }) {
  return placing === undefined && room.epoch === epoch && cursor < seq
}

/**
 * @param {string} key @param {Pending['id']} id @param {Outcome} outcome @param {boolean} subscribed
 * @returns {ControlMessage}
 */
function answerOf(key, id, outcome, subscribed) {
  if (outcome.code !== undefined) {
    const { code, message, retryAfterMs } = outcome
    // The error says nothing about a subscription to the room, which stands.
    return errorMessage(code, { id, key, subscribed, message, retryAfterMs })
  }
  const { epoch, seq, at, duplicate } = outcome
  /** @type {import('@keycast/protocol').Published} */
  const published = { type: 'published', id, key, epoch, seq, at }
  return duplicate ? { ...published, duplicate } : published
}
