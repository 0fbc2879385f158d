// The session's user: asks the application for a token, sends it, and renews it before it expires.
import { backoffMs } from './backoff.js'

/**
 * A token, or a function that gives one. It is called for the first connection, before the token expires and after a
 * refusal.
 *
 * @typedef {string | (() => string | Promise<string>)} Token
 */

/** Thrown by a `token` function when the user is not signed in any more: the client closes and does not ask again. */
export class TokenRefused extends Error {}

/** A token is renewed this long before it expires, or a quarter of its time if that is shorter. */
const MARGIN_MS = 30_000

/** A function that gives nothing in this time is asked again after a wait, as one that fails. */
const ANSWER_MS = 10_000

/** A function that repeats one token must not be asked all the time. */
const RENEWAL_MIN_MS = 1_000

/**
 * @param {object} deps
 * @param {Token} deps.token
 * @param {Pick<import('../environment.js').Environment, 'now' | 'random'>} deps.environment
 * @param {import('../timers.js').Alarm} deps.alarm
 * @param {(message: object) => void} deps.send
 * @param {(user: string) => void} deps.open
 * @param {(reason: string, code: import('./codes.js').ErrorCode) => void} deps.end there will be no further token
 */
export function createAuth({ token: source, environment: { now, random }, alarm, send, open, end }) {
  const canRenew = typeof source === 'function'
  /** @type {string | undefined} */
  let token
  /**
   * The token serves other connections until this time, so an application is not asked at each loss. 0: there is none.
   */
  let renewAtMs = 0
  let wasRefused = false
  let failures = 0
  /** Counts the questions. An answer that comes after the next question, or after a loss, is late. */
  let turn = 0

  /** @param {() => void} use @param {(reason: string) => void} onFailure */
  async function obtain(use, onFailure) {
    const mine = ++turn
    try {
      if (now() >= renewAtMs) {
        const given = await (canRenew ? source() : source)
        // A late answer serves the next connection, unless that has a newer token already.
        if (turn === mine || renewAtMs === 0) {
          token = given
          renewAtMs = Infinity
        }
      }
      if (turn === mine) use()
    } catch (error) {
      if (turn !== mine) return
      if (error instanceof TokenRefused) end(error.message || 'no token', 'token_refused')
      else onFailure(`${error}`)
    }
  }

  const say = () => send({ type: 'auth', id: 'auth', token })

  function renew() {
    renewAtMs = 0
    sayNext()
  }

  /** Says the next token, also one that came late. */
  function sayNext() {
    // One that gives nothing has failed, too.
    alarm.set(again, ANSWER_MS)
    obtain(say, again)
  }

  const again = () => alarm.set(sayNext, backoffMs(random, failures++))

  function forget() {
    renewAtMs = 0
    wasRefused = false
  }

  return {
    obtain,
    say,
    forget,
    /** The page is seen again: the alarm would take its whole time anew, and the token expire before. */
    wake() {
      if (alarm.isSet() && renewAtMs < Infinity) alarm.set(renew, renewAtMs - now())
    },
    /** The session is gone, or given up. */
    lost() {
      turn += 1
      alarm.clear()
    },
    /** @param {any} message */
    receive({ type, id, key, code, message, retryAfterMs, user, expiresInMs }) {
      if (type === 'authed') {
        wasRefused = false
        failures = 0
        const goodMs = Math.max(RENEWAL_MIN_MS, expiresInMs - Math.min(MARGIN_MS, expiresInMs / 4) || 0)
        renewAtMs = now() + goodMs
        if (canRenew) alarm.set(renew, goodMs)
        open(user)
      } else if (type === 'error' && id === 'auth') {
        if (retryAfterMs !== undefined) alarm.set(say, retryAfterMs)
        else if (code !== 'token_refused' || !canRenew || wasRefused) end(message, code)
        else {
          wasRefused = true
          renew()
        }
        // An error with an id or a key is about that alone. Otherwise many keys would ask for as many tokens; and so would
        // a gateway that says it again while the next token is asked for.
      } else if (code === 'token_expired' && !id && !key && canRenew && renewAtMs) renew()
    },
  }
}
