// What stays: bytes held, keys watched, members. An account may hold so many times what is still free, and so may each that
// it lies in (dynamic thresholds; Choudhury and Hahne, 1998): one that is alone may hold much, and whatever any of them
// does, the others find room.
import { ALL_GUESTS, accountsOf, type Kind, type Payer } from './payer.ts'

/**
 * An account may hold this many times what is free. Alone in an empty pool a user comes to a ninth of it, an address to
 * half, a network to two thirds. All guests together come to a quarter; one guest's address to a thirteenth.
 */
const WEIGHTS: Readonly<Record<Kind, number>> = { u: 1 / 8, a: 1, n: 2, A: 1 / 12, N: 1 / 6, g: 1 / 3 }

/** What is said to one who may hold no more keys. */
export const SHARE_TAKEN = 'this user, address or network holds as much as it may: unsubscribe from other keys first'

/**
 * How many times what is free an account may hold. A kind of a newer release has no bound here, nor has the account of all
 * guests whose addresses are not counted: it is what all guests are.
 */
export const weightOf = (account: string) =>
  account === ALL_GUESTS ? Number.POSITIVE_INFINITY : (WEIGHTS[account[0] as Kind] ?? Number.POSITIVE_INFINITY)

interface Account {
  name: string
  weight: number
  held: number
}

/** The one who pays for something in stock. `accounts`: outermost first. */
export interface Holder {
  readonly payer: Payer
  readonly accounts: readonly Account[]
  held: number
}

export type Stock = ReturnType<typeof createStock>

/** @param free how much of the pool is free now */
export function createStock({ free }: { free: () => number }) {
  const holders = new Map<Payer, Holder>()
  const accounts = new Map<string, Account>()

  const accountOf = (name: string): Account => accounts.get(name) ?? { name, weight: weightOf(name), held: 0 }

  const holderOf = (payer: Payer): Holder =>
    holders.get(payer) ?? { payer, accounts: accountsOf(payer).map(accountOf), held: 0 }

  /**
   * Of the accounts of a payer the outermost that may not hold so much more.
   *
   * @param payer `undefined`: nobody is counted, as with a backend's own use
   */
  function fullOf(payer: Payer | undefined, amount: number): string | undefined {
    if (payer === undefined) return undefined
    const left = free()
    return accountsOf(payer).find(name => (accounts.get(name)?.held ?? 0) + amount > left * weightOf(name))
  }

  /** Whether so much more may be held. */
  const hasRoom = (payer: Payer | undefined, amount: number) => fullOf(payer, amount) === undefined

  /**
   * Whether a payer that takes something over would hold more than it could if it were alone.
   *
   * @param from whom; what both are in holds no more than before
   * @param pool how much there is in all
   */
  const isPast = (payer: Payer, amount: number, from: Holder, pool: number) =>
    accountsOf(payer).some(name => {
      if (from.accounts.some(account => account.name === name)) return false
      const weight = weightOf(name)
      return (accounts.get(name)?.held ?? 0) + amount > (pool * weight) / (1 + weight)
    })

  /** @param amount to be added to what is held */
  function change(holder: Holder, amount: number) {
    holder.held += amount
    if (holder.held === 0) holders.delete(holder.payer)
    for (const account of holder.accounts) {
      account.held += amount
      if (account.held === 0) accounts.delete(account.name)
    }
  }

  return {
    fullOf,
    hasRoom,
    isPast,
    change,

    /** Charges a payer, whether there is room or not. @param amount more than 0 */
    charge(payer: Payer | undefined, amount: number): Holder | undefined {
      if (payer === undefined) return undefined
      const holder = holderOf(payer)
      holders.set(payer, holder)
      for (const account of holder.accounts) accounts.set(account.name, account)
      change(holder, amount)
      return holder
    },

    /** How much the innermost account of a payer holds: it is the least loaded that is to pay. */
    loadOf: (payer: Payer) => holderOf(payer).accounts.at(-1)?.held ?? 0,

    /** The same string for as long as the payer holds something: there may be a million references to it. */
    shared: (payer: Payer | undefined) => (payer === undefined ? undefined : holderOf(payer).payer),

    size: () => accounts.size,
  }
}
