// Accounts: the sessions of one user, or else of one address, share limits. Without them 20 connections would buy 20
// times the allowance of one.
import type { Peer } from '../access/identify.ts'
import { type Bucket, fullBucket, ratesOf, refill, waitMsFor } from './bucket.ts'
import type { Session } from './session.ts'

export type Accounts = ReturnType<typeof createAccounts>

export interface Account {
  /** `user USER` or `address ADDRESS`. */
  name: string
  sessions: number
  sessionsMax: number
  /** Subscriptions of all its sessions. */
  keys: number
  keysMax: number
  /** At which the next two refill: those of some sessions together. */
  rates: ReturnType<typeof ratesOf>
  /** Of all its sessions together, as the next. */
  requestAllowance: Bucket
  keyAllowance: Bucket
}

/** A user's tabs and devices. */
const USER_SHARES = 4

/** The people of an office behind one address, of whom few are busy at a time. */
const ADDRESS_SHARES = 10

interface Deps {
  sessionsPerUserMax: number
  /** 0: addresses are not counted. */
  sessionsPerAddressMax: number
  /** Of one session. */
  requestsPerSecondMax: number
  keysPerSessionMax: number
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createAccounts({
  sessionsPerUserMax,
  sessionsPerAddressMax,
  requestsPerSecondMax,
  keysPerSessionMax,
  now,
}: Deps) {
  const accounts = new Map<string, Account>()
  /** Those without a session, which are dropped once they have their full allowance again. */
  const idle = new Set<Account>()
  const limitsOfUser = limitsOf(USER_SHARES, sessionsPerUserMax)
  const limitsOfAddress = limitsOf(ADDRESS_SHARES, sessionsPerAddressMax)

  /** @param shares the number of sessions whose allowance the account has */
  function limitsOf(shares: number, sessionsMax: number) {
    const rates = ratesOf({ requestsPerSecondMax, keysPerSessionMax }, shares)
    return { sessionsMax, keysMax: shares * keysPerSessionMax, rates }
  }

  /**
   * The account that a limit is counted by.
   *
   * @returns `undefined`: neither a user nor an address that stands for one client
   */
  function of(user: string | undefined, { address, isNamed }: Peer): Account | undefined {
    if (user !== undefined) return find(`user ${user}`, limitsOfUser)
    return isNamed && sessionsPerAddressMax > 0 ? find(`address ${address}`, limitsOfAddress) : undefined
  }

  function find(name: string, limits: ReturnType<typeof limitsOf>) {
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

    /** Whether one more session fits. */
    hasRoom: (account: Account | undefined) => account === undefined || account.sessions < account.sessionsMax,

    /** Counts a session under an account, and under no other any more. */
    move(session: Session, account: Account | undefined) {
      const former = session.account
      if (former === account) return
      session.account = account
      const keys = session.subscriptions.size
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
     * @param requests the number of requests that it counts as
     * @returns 0, or the time to wait, in milliseconds
     */
    charge(account: Account | undefined, requests: number): number {
      if (!account) return 0
      const rate = account.rates.requests
      const allowance = refill(account.requestAllowance, rate, now())
      // As large as a message may be, it is served when the bucket is full.
      if (allowance.left < Math.min(requests, rate.max)) return waitMsFor(requests - allowance.left, rate)
      allowance.left -= requests
      return 0
    },

    /** The wait until more keys may be subscribed to, in milliseconds. */
    keysWaitMs(account: Account | undefined) {
      if (!account) return 0
      const { left } = refill(account.keyAllowance, account.rates.keys, now())
      return left > 0 ? 0 : waitMsFor(1 - left, account.rates.keys)
    },

    chargeKeys(account: Account | undefined, keys: number) {
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
