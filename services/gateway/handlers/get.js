// One value for one request: from memory where it is fresh enough, else by a fetch shared with all who wait for the key.
import { errorCodes } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/protocol').Get} Get
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** @param {Pick<import('./index.js').HandlerDeps, 'values' | 'outbox' | 'counts' | 'now'>} deps */
export const createGet = ({ values, outbox, counts, now }) => {
  /**
   * @param {Session} session
   * @param {Get} message
   * @param {number} asOfMs as of when the answer must be fresh: a get that waited is not asked for again because it did
   */
  function get(session, message, asOfMs) {
    const { id, key } = message
    const problem = values.refusal(key)
    if (problem) return outbox.send(session, errorOf(id, key, problem))
    if (!outbox.takes(session)) return hold(session, message, asOfMs)

    const outcome = values.fresh(key, asOfMs)
    if (outcome) {
      counts.getHits++
      return answer(session, message, outcome)
    }
    counts.getMisses++
    if (!outbox.mayWait(session)) return tooMany(session, message)
    session.getsWaiting++
    // Never rejects. A session that ended meanwhile is sent nothing by the outbox.
    void values.want(key).then(later => {
      session.getsWaiting--
      if (outbox.takes(session)) answer(session, message, later)
      else hold(session, message, now() - (later.value ? later.ageMs : 0))
    })
  }

  /**
   * @param {Session} session
   * @param {Get} message
   * @param {import('../keys/entry.js').Outcome} outcome
   */
  function answer(session, { id, key, version }, { value, problem }) {
    if (problem) outbox.send(session, errorOf(id, key, problem))
    else if (value.version === version) outbox.send(session, { type: 'current', id, key, version })
    else outbox.sendValue(session, value, id)
  }

  /**
   * The client does not read: its get waits without the value, which may be a newer one by then.
   *
   * @param {Session} session
   * @param {Get} message
   * @param {number} asOfMs
   */
  function hold(session, message, asOfMs) {
    if (!outbox.hold(session, message, asOfMs)) tooMany(session, message)
  }

  /** @param {Session} session @param {Get} message */
  function tooMany(session, { id, key }) {
    outbox.send(session, { type: 'error', id, key, code: 'too_many_waiting', message: errorCodes.too_many_waiting })
  }

  return get
}

/**
 * @param {Get['id']} id
 * @param {string} key
 * @param {import('../keys/entry.js').Problem} problem
 */
function errorOf(id, key, { code, message, retryAfterMs }) {
  return { type: /** @type {const} */ ('error'), id, key, code, message, retryAfterMs }
}
