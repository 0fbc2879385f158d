// Accounts: the sessions of one user, or else of one address, share limits. Without them 20 connections would buy 20
// times the allowance of one.
import { keyCountOf } from './session.js'

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {ReturnType<typeof createAccounts>} Accounts
 *
 * @typedef {object} Account
 * @property {string} name
 * @property {number} shares how many sessions' allowance it has
 * @property {number} sessions
 * @property {number} sessionsMax
 * @property {number} keys subscriptions of all its sessions
 * @property {number} keysMax
 * @property {number} tokens requests that its sessions together may send now
 * @property {number} keyTokens keys that they may subscribe to now
 * @property {number} refilledAtMs
 */

/** A user's tabs and devices. */
const USER_SHARES = 4

/** The people of an office behind one address, of whom few are busy at a time. */
const ADDRESS_SHARES = 10

/**
 * @param {object} deps
 * @param {number} deps.sessionsPerUserMax
 * @param {number} deps.sessionsPerAddressMax 0: addresses are not counted
 * @param {number} deps.requestsPerSecondMax of one session
 * @param {number} deps.keysPerSessionMax
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createAccounts({
  sessionsPerUserMax,
  sessionsPerAddressMax,
  requestsPerSecondMax,
  keysPerSessionMax,
  now,
}) {
  /** @type {Map<string, Account>} */
  const accounts = new Map()
  /** Those without a session, which are dropped once they have their full allowance again. @type {Set<Account>} */
  const idle = new Set()
  const keyTokensMax = Math.max(requestsPerSecondMax, keysPerSessionMax)

  /**
   * The account that a limit is counted by.
   *
   * @param {string | undefined} user
   * @param {import('../access/identify.js').Origin} origin
   * @returns {Account | undefined} `undefined`: neither a user nor an address that stands for one client
   */
  function of(user, { address, isNamed }) {
    if (user !== undefined) return find(`user ${user}`, USER_SHARES, sessionsPerUserMax)
    return isNamed && sessionsPerAddressMax > 0
      ? find(`address ${address}`, ADDRESS_SHARES, sessionsPerAddressMax)
      : undefined
  }

  /** @param {string} name @param {number} shares @param {number} sessionsMax */
  function find(name, shares, sessionsMax) {
    const known = accounts.get(name)
    if (known) return known
    const account = {
      name,
      shares,
      sessions: 0,
      sessionsMax,
      keys: 0,
      keysMax: shares * keysPerSessionMax,
      tokens: shares * requestsPerSecondMax,
      keyTokens: shares * keyTokensMax,
      refilledAtMs: now(),
    }
    accounts.set(name, account)
    idle.add(account)
    return account
  }

  /** @param {Account} account */
  function refill(account) {
    const nowMs = now()
    const { shares } = account
    const more = ((nowMs - account.refilledAtMs) * shares * requestsPerSecondMax) / 1_000
    account.tokens = Math.min(account.tokens + more, shares * requestsPerSecondMax)
    account.keyTokens = Math.min(account.keyTokens + more, shares * keyTokensMax)
    account.refilledAtMs = nowMs
  }

  /** @param {Account} account @param {number} debt */
  function waitMs({ shares }, debt) {
    return Math.max(1, Math.ceil((debt * 1_000) / (shares * requestsPerSecondMax)))
  }

  return {
    of,

    /** Whether one more session fits. @param {Account | undefined} account */
    hasRoom: account => account === undefined || account.sessions < account.sessionsMax,

    /**
     * Counts a session under an account, and under no other any more.
     *
     * @param {Session} session
     * @param {Account | undefined} account
     */
    move(session, account) {
      const former = session.account
      if (former === account) return
      session.account = account
      const keys = keyCountOf(session)
      if (former) {
        former.sessions--
        former.keys -= keys
        if (former.sessions === 0) idle.add(former)
      }
      if (account) {
        account.sessions++
        account.keys += keys
        idle.delete(account)
      }
    },

    /**
     * Takes what a request costs, or nothing where it is too much: no session pays for what another had refused.
     *
     * @param {Account | undefined} account
     * @param {number} tokens
     * @returns {number} 0, or how long to wait, in milliseconds
     */
    charge(account, tokens) {
      if (!account) return 0
      refill(account)
      // As large as a message may be, it is served when the bucket is full.
      if (account.tokens < Math.min(tokens, account.shares * requestsPerSecondMax)) {
        return waitMs(account, tokens - account.tokens)
      }
      account.tokens -= tokens
      return 0
    },

    /** How long to wait before more keys are subscribed to, in milliseconds. @param {Account | undefined} account */
    keysWaitMs(account) {
      if (!account) return 0
      refill(account)
      return account.keyTokens > 0 ? 0 : waitMs(account, 1 - account.keyTokens)
    },

    /** @param {Account | undefined} account @param {number} tokens */
    chargeKeys(account, tokens) {
      if (account) account.keyTokens -= tokens
    },

    /** Drops accounts that nobody uses: at once they would come back with a full allowance. */
    sweep() {
      for (const account of idle) {
        refill(account)
        const { shares } = account
        if (account.tokens < shares * requestsPerSecondMax || account.keyTokens < shares * keyTokensMax) continue
        idle.delete(account)
        accounts.delete(account.name)
      }
    },

    size: () => accounts.size,
  }
}
