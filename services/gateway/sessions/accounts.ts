// Accounts: the sessions of one user, or else of one address, share limits. Without them 20 connections would buy 20
// times the allowance of one.
import { createPayers, type Payer, type World } from '@keycast/service'
import type { Peer } from '../access/client-address.ts'
import { fullBuckets, ratesOf, refill, type SharedAllowance } from './rate-limit.ts'
import type { Session } from './session.ts'

export interface Account extends SharedAllowance {
  /** `user USER` or `address ADDRESS`. */
  name: string
  sessions: number
  sessionsMax: number
  /** Subscriptions of all its sessions, and keys that its requests wait for. */
  keys: number
  keysMax: number
}

/** A user's tabs and devices. */
const USER_SHARES = 4

/** The people of an office behind one address, of whom few are busy at a time. */
const ADDRESS_SHARES = 10

interface Deps extends Pick<World, 'now'> {
  sessionsPerUserMax: number
  /** 0: addresses are not counted. */
  sessionsPerAddressMax: number
  /** Of one session. */
  requestsPerSecondMax: number
  keysPerSessionMax: number
  /** Names accounts to nodes and journals: all gateways have the same. */
  accountsSecret: string
  /** Whether anybody has a token by now. */
  hasUsers: () => boolean
}

export function createAccounts({
  sessionsPerUserMax,
  sessionsPerAddressMax,
  requestsPerSecondMax,
  keysPerSessionMax,
  accountsSecret,
  hasUsers,
  now,
}: Deps) {
  const accounts = new Map<string, Account>()
  /** Those without a session, which are dropped once they have their full allowance again. */
  const idle = new Set<Account>()
  const payers = createPayers({ secret: accountsSecret, hasUsers })
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
    const account = { name, sessions: 0, keys: 0, ...limits, ...fullBuckets(limits.rates, now()) }
    accounts.set(name, account)
    idle.add(account)
    return account
  }

  return {
    of,

    /** Whom nodes and journals charge for what is used; `undefined`: nobody. */
    payerOf: (user: string | undefined, { address, isNamed }: Peer): Payer | undefined =>
      payers({ user, address: isNamed && sessionsPerAddressMax > 0 ? address : undefined }),

    /** Whether one more session fits. @param keys that it is subscribed to */
    hasRoom: (account: Account | undefined, keys = 0) =>
      account === undefined ||
      (account.sessions < account.sessionsMax && (keys === 0 || account.keys + keys <= account.keysMax)),

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

    /** Drops unused accounts with a full allowance. Dropped earlier, they would come back with a full one at once. */
    sweep() {
      const nowMs = now()
      for (const account of idle) {
        const { requestAllowance, keyAllowance, rates } = account
        // A key for which requests wait: doors/wait/waited-keys.ts.
        if (account.keys > 0) continue
        if (refill(requestAllowance, rates.requests, nowMs).left < rates.requests.max) continue
        if (refill(keyAllowance, rates.keys, nowMs).left < rates.keys.max) continue
        idle.delete(account)
        accounts.delete(account.name)
      }
    },

    size: () => accounts.size,
  }
}
