// Accounts: the sessions of one user, or else of one address, share limits. Without them 20 connections would buy 20
// times the allowance of one.
import { createPayers, type World } from '@keycast/service'
import type { Peer } from '../access/client-address.ts'
import type { Paying } from '../topics/values/payer-choice.ts'
import { fullBucket, fullBuckets, ratesOf, refill, type SharedAllowance } from './rate-limit.ts'
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
   * What limits are counted by, here and at nodes and journals: a user, or else the address that stands for one client.
   *
   * @returns another object each time
   */
  function of(user: string | undefined, { address, isNamed }: Peer): Paying {
    const counted = isNamed && sessionsPerAddressMax > 0 ? address : undefined
    return { account: accountOf(user, counted), payer: payers({ user, address: counted }) }
  }

  function accountOf(user: string | undefined, address: string | undefined): Account | undefined {
    if (user !== undefined) return find(`user ${user}`, limitsOfUser)
    return address === undefined ? undefined : find(`address ${address}`, limitsOfAddress)
  }

  function find(name: string, limits: ReturnType<typeof limitsOf>) {
    const known = accounts.get(name)
    if (known) return known
    const refusalAllowance = fullBucket(limits.rates.requests, now())
    const account = { name, sessions: 0, keys: 0, ...limits, ...fullBuckets(limits.rates, now()), refusalAllowance }
    accounts.set(name, account)
    idle.add(account)
    return account
  }

  /** Counts a session under an account, and under no other any more. */
  function move(session: Session, account: Account | undefined) {
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
  }

  return {
    of,

    /** Whether it may have one more session. @param keys that this is subscribed to */
    hasRoom: (account: Account | undefined, keys = 0) =>
      account === undefined ||
      (account.sessions < account.sessionsMax &&
        (keys === 0 || account.keys + keys <= account.keysMax) &&
        refill(account.refusalAllowance, account.rates.requests, now()).left > 0),

    /** A session begins, or has a user from now on. */
    enter(session: Session, user: string | undefined) {
      const { account, payer } = of(user, session)
      session.payer = payer
      move(session, account)
    },

    /** A session ended. */
    leave: (session: Session) => move(session, undefined),

    /** Drops unused accounts with a full allowance. Dropped earlier, they would come back with a full one at once. */
    sweep() {
      const nowMs = now()
      for (const account of idle) {
        const { requestAllowance, refusalAllowance, keyAllowance, rates } = account
        // A key for which requests wait: doors/wait/waited-keys.ts.
        if (account.keys > 0) continue
        if (refill(requestAllowance, rates.requests, nowMs).left < rates.requests.max) continue
        if (refill(refusalAllowance, rates.requests, nowMs).left < rates.requests.max) continue
        if (refill(keyAllowance, rates.keys, nowMs).left < rates.keys.max) continue
        idle.delete(account)
        accounts.delete(account.name)
      }
    },

    size: () => accounts.size,
  }
}
