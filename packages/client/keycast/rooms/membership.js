// Whether this client is in a room, and under which name: it joins again in each new session, until it leaves.
import { backoffMs } from '../connection/backoff.js'
import { randomText } from '../random.js'

/**
 * `claim`: a secret by which an anonymous client keeps that name.
 *
 * @typedef {{ name: string, claim?: string | undefined }} Join
 */

const claimGrammar = /^[\w-]{22}$/

/**
 * @param {import('./room.js').Room} room
 * @param {import('../client.js').PartDeps & {
 *   isOpen: () => boolean, check: (key: string) => void, forget: (key: string) => void }} deps
 *   `isOpen`: there is a session. `check` throws if nothing of a key can be asked. `forget`: for a room that may not be
 *   wanted any more
 */
export function createMembership(room, { environment, calls, createAlarm, isOpen, check, forget }) {
  const { key } = room
  /** The join that stands, or will stand again in the next session. @type {Join | undefined} */
  let standing
  /** By which this client is recognized if it has no token. @type {string | undefined} */
  let claim
  /** What the gateway refused the join with, which is asked for again, and how often it did. */
  /** @type {import('../errors.js').KeycastError | undefined} */
  let error
  let refusals = 0
  let isRenewing = false
  /** The last of the joins and leaves that are not answered yet. @type {Promise<unknown> | undefined} */
  let turn
  /** For the next try. */
  const alarm = createAlarm()

  function end() {
    standing = undefined
    alarm.clear()
    room.become({ joinedAs: undefined })
  }

  /**
   * Joins and leaves go out one by one. The gateway refuses a join while another is under way, and a join that is
   * repeated after a loss must not come after the leave.
   *
   * @template T
   * @param {() => Promise<T>} task
   */
  function inTurn(task) {
    const mine = turn?.then(task, task) ?? task()
    turn = mine
    return mine.finally(() => {
      if (turn !== mine) return
      turn = undefined
      forget(key)
    })
  }

  /** @param {Join} wanted @returns {Promise<Join>} */
  const ask = wanted =>
    calls.ask(
      () => ({ type: 'join', key, ...wanted }),
      ({ name, claim }) => ({ name, claim }),
    )

  /** The gateway refuses a join that stood. @param {import('../errors.js').KeycastError} refusal */
  function refuse(refusal) {
    error = refusal
    // Loops throw what ended the subscription.
    room.become({ error: room.end ? room.state.error : error, joinedAs: undefined })
    // A name that is another's stays so; a right may come back, and a place become free.
    if (error.code === 'name_taken') return end()
    alarm.set(renew, error.retryAfterMs ?? backoffMs(environment.random, refusals++))
  }

  /** Tells a new session this client's name. */
  function renew() {
    const wanted = standing
    // A call that a loss interrupted is made again by itself.
    if (!wanted || !isOpen() || isRenewing) return
    isRenewing = true
    alarm.clear()
    inTurn(async () => {
      // Another join, a leave, or a loss may have come before it.
      if (standing !== wanted || !isOpen()) return
      const { name } = await ask(wanted)
      if (standing !== wanted) return
      refusals = 0
      room.become({ joinedAs: name, error: room.state.error === error ? undefined : room.state.error })
    })
      .finally(() => {
        isRenewing = false
      })
      .catch(failure => {
        if (standing !== wanted) return
        if (failure.retryAfterMs === undefined || failure.code === 'capacity') refuse(failure)
        else alarm.set(renew, failure.retryAfterMs)
      })
  }

  function leave() {
    end()
    return inTurn(async () => {
      // A join that was under way may stand by now.
      end()
      // A session that is gone is in no room.
      if (!isOpen()) return
      await calls.ask(
        () => ({ type: 'leave', key }),
        () => {},
      )
    })
  }

  return {
    error: () => error,
    stands: () => standing !== undefined,
    /** Whether a join or a leave is under way. */
    isBusy: () => turn !== undefined,
    /** Whether it was refused, and waits for its next try. */
    isWaiting: alarm.isSet,

    /**
     * The first join has a claim already: if its answer is lost with the connection, the name is held for a while.
     *
     * @param {string} name @param {string} [given]
     */
    async join(name, given) {
      const mine = given ?? claim ?? randomText()
      // One that the gateway refuses must not come with the joins that follow.
      if (claimGrammar.test(mine)) claim = mine
      return inTurn(async () => {
        check(key)
        standing = await ask({ name, claim: mine })
        // The room's last handle may have been closed meanwhile.
        if (room.handles === 0) leave().catch(() => {})
        else room.become({ joinedAs: standing.name })
        return standing
      })
    },
    leave,
    renew,
    refuse,
    /** The session is gone. */
    lost: alarm.clear,
  }
}
