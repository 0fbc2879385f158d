// The payer of a key that this gateway wants, at the fetcher and in the cache here: one of those who want it, and of many
// one who holds little. So nobody fills their share by being the first at pages that everybody opens.
import type { Payer } from '@keycast/service'
import type { Account } from '../../sessions/accounts.ts'
import type { Entry } from './cache.ts'

/** For whom a key is wanted: a session, or the sender of an HTTP request. */
export interface Paying {
  readonly payer: Payer | undefined
  readonly account: Account | undefined
}

type MayPay = (entry: Entry, paying: Paying) => boolean

/** Whoever holds no more than so many keys goes on to pay: a payer that changed costs a message to the node. */
const KEYS_FREE = 100

/** Of a key that thousands watch so many are looked at when the one who paid has left, and more where none of them may pay. */
const LOOKED_AT = 16
const LOOKED_AT_MAX = 256

const loadOf = ({ account }: Paying) => account?.keys ?? 0

/**
 * For a get one of those who wait for it, or who named a later version, for anybody may invent one: whoever watches the key
 * may have asked in vain for a long time.
 */
export const payerOf = (entry: Entry | undefined, type: 'watch' | 'get') =>
  (type === 'get' ? (entry?.waiters[0] ?? firstOf(entry?.lag)) : undefined)?.payer ?? entry?.paying?.payer

const firstOf = (lag: Entry['lag']) => lag?.waiting.keys().next().value?.session

/**
 * One more wants a key.
 *
 * @param mayPay whether a payer may be charged for it
 * @returns whether another pays from now on
 */
export function share(entry: Entry, another: Paying, mayPay: MayPay): boolean {
  const { paying } = entry
  if (paying && (loadOf(paying) <= KEYS_FREE + 2 * loadOf(another) || !mayPay(entry, another))) return false
  entry.paying = another
  return paying !== undefined && paying.payer !== another.payer
}

/** Of many who watch a key, those who may be looked at when the one who paid has left. */
export const candidates = ({ subscriptions }: Entry) => subscriptions.slice(0, LOOKED_AT_MAX)

/** @returns the one of them who holds least and may pay for the key */
export function leastLoaded(entry: Entry, mayPay: MayPay): Paying | undefined {
  let least: Paying | undefined
  for (const [index, { session }] of candidates(entry).entries()) {
    if (least && index >= LOOKED_AT) break
    if ((!least || loadOf(session) < loadOf(least)) && mayPay(entry, session)) least = session
  }
  return least
}
