// Accounts: the sessions of one user, or else of one address, share limits. Without them 20 connections would buy 20
// times the allowance of one.
import { fullBucket, ratesOf, refill, waitMsFor } from './bucket.ts'
import { keyCountOf } from './session.ts'

/**
 * @typedef {import('./session.ts').Session} Session
 * @typedef {ReturnType<typeof createAccounts>} Accounts
 *
 * @typedef {object} Account
 * @property {string} name `user USER` or `address ADDRESS`
 * @property {number} sessions
 * @property {number} sessionsMax
 * @property {number} keys subscriptions of all its sessions
 * @property {number} keysMax
 * @property {ReturnType<typeof ratesOf>} rates at which the next two refill: those of some sessions together
 * @property {import('./bucket.ts').Bucket} requestAllowance of all its sessions together, as the next
 * @property {import('./bucket.ts').Bucket} keyAllowance
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
  const limitsOfUser = limitsOf(USER_SHARES, sessionsPerUserMax)
  const limitsOfAddress = limitsOf(ADDRESS_SHARES, sessionsPerAddressMax)

  /**
   * @param {number} shares the number of sessions whose allowance the account has @param {number} sessionsMax
   */
  function limitsOf(shares, sessionsMax) {
    const rates = ratesOf({ requestsPerSecondMax, keysPerSessionMax }, shares)
    return { sessionsMax, keysMax: shares * keysPerSessionMax, rates }
  }

  /**
   * The account that a limit is counted by.
   *
   * @param {string | undefined} user
   * @param {import('../access/identify.ts').Peer} peer
   * @returns {Account | undefined} `undefined`: neither a user nor an address that stands for one client
   */
  function of(user, { address, isNamed }) {
    if (user !== undefined) return find(`user ${user}`, limitsOfUser)
    return isNamed && sessionsPerAddressMax > 0 ? find(`address ${address}`, limitsOfAddress) : undefined
  }

  /** @param {string} name @param {ReturnType<typeof limitsOf>} limits */
  function find(name, limits) {
    const known = accounts.get(name)
    if (known) return known
    const nowMs = now()
    const account = {
      name,
      sessions: 0,
      keys: 0,
      ...limits,
      requestAllowance: fullBucket(limits.rates.requests, nowMs),
      keyAllowance: fullBucket(limits.rates.keys, nowMs),
    }
    accounts.set(name, account)
    idle.add(account)
    return account
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
     * Charges a request's price, or nothing if it is too much: no session pays for another session's refused request.
     *
     * @param {Account | undefined} account
     * @param {number} requests the number of requests that it counts as
     * @returns {number} 0, or the time to wait, in milliseconds
     */
    charge(account, requests) {
      if (!account) return 0
      const rate = account.rates.requests
      const allowance = refill(account.requestAllowance, rate, now())
      // As large as a message may be, it is served when the bucket is full.
      if (allowance.left < Math.min(requests, rate.max)) return waitMsFor(requests - allowance.left, rate)
      allowance.left -= requests
      return 0
    },

    /** The wait until more keys may be subscribed to, in milliseconds. @param {Account | undefined} account */
    keysWaitMs(account) {
      if (!account) return 0
      const { left } = refill(account.keyAllowance, account.rates.keys, now())
      return left > 0 ? 0 : waitMsFor(1 - left, account.rates.keys)
    },

    /** @param {Account | undefined} account @param {number} keys */
    chargeKeys(account, keys) {
      if (account) account.keyAllowance.left -= keys
    },

    /** Drops unused accounts with a full allowance. Dropped earlier, they would come back with a full one at once. */
    sweep() {
      const nowMs = now()
      for (const account of idle) {
        const { requestAllowance, keyAllowance, rates } = account
        if (refill(requestAllowance, rates.requests, nowMs).left < rates.requests.max) continue
        if (refill(keyAllowance, rates.keys, nowMs).left < rates.keys.max) continue
        idle.delete(account)
        accounts.delete(account.name)
      }
    },

    size: () => accounts.size,
  }
}
