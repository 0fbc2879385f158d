// The accounts of one user at one address, as gateways name them to nodes and journals. A name does not tell whose it is,
// and is the same at every gateway.
import { createHmac } from 'node:crypto'
import { createRecent } from '../collections/recent.ts'

/**
 * The accounts that a use counts for, outermost first, each the letter of its kind and a keyed hash: of a user
 * `nXXXXXXXXXXX.aXXXXXXXXXXX.uXXXXXXXXXXX`, of a guest `g.NXXXXXXXXXXX.AXXXXXXXXXXX`.
 */
export type Payer = string

/**
 * Kinds of accounts: a user, an address (an IPv6 /64), a network (an IPv6 /48); a guest's address and network, where
 * users have tokens; all guests.
 */
export type Kind = 'u' | 'a' | 'n' | 'A' | 'N' | 'g'

/** Who uses something. `address`: as limits count it; `undefined` for a proxy that names no client. */
export interface User {
  user: string | undefined
  address: string | undefined
}

/** The bytes of a hash that are used: enough that no two accounts of a deployment have one name. */
const HASH_BYTES = 8

/** Names that are remembered, since making one takes some microseconds. */
const REMEMBERED_MAX = 10_000

/** Above every payer that a gateway writes. */
const PAYER_CHARACTERS_MAX = 64

interface Options {
  /** Known to all gateways, and to no client. */
  secret: string
  /** Whether there are users by now. Where nobody has a token, there is nobody to keep anything for. */
  hasUsers: () => boolean
}

/** The account of all guests whose addresses are not counted. */
export const ALL_GUESTS = 'A'

export function createPayers({ secret, hasUsers }: Options) {
  const remembered = createRecent<string, Payer>(REMEMBERED_MAX)

  const nameOf = (kind: Kind, text: string) =>
    kind + createHmac('sha256', secret).update(`${kind} ${text}`).digest().subarray(0, HASH_BYTES).toString('base64url')

  function make({ user, address }: User): Payer | undefined {
    const isGuest = hasUsers() && user === undefined
    const names = isGuest ? ['g'] : []
    const network = address === undefined ? undefined : networkOf(address)
    if (network !== undefined) names.push(nameOf(isGuest ? 'N' : 'n', network))
    if (address !== undefined) names.push(nameOf(isGuest ? 'A' : 'a', address))
    // No lane that holds items has lanes in it.
    else if (isGuest) names.push(ALL_GUESTS)
    if (user !== undefined) names.push(nameOf('u', user))
    return names.length === 0 ? undefined : names.join('.')
  }

  /** @returns `undefined`: there is neither a user nor an address to count by */
  return function payerOf(use: User): Payer | undefined {
    if (use.user === undefined && use.address === undefined && !hasUsers()) return undefined
    const text = `${use.address ?? ''} ${use.user ?? ''} ${use.user === undefined && hasUsers()}`
    const known = remembered.use(text)
    if (known !== undefined) return known
    const payer = make(use)
    if (payer !== undefined) remembered.set(text, payer)
    return payer
  }
}

/** The /48 that a /64 is in, which is what one customer of a provider is given. IPv4 has none. */
const networkOf = (address: string) =>
  address.endsWith('::/64') ? `${address.split(':').slice(0, 3).join(':')}::/48` : undefined

const payerGrammar = /^[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)*$/

/** Whether a peer may have meant it as one. A newer release may have other kinds of accounts. */
export const isPayer = (value: unknown): value is Payer =>
  typeof value === 'string' && value.length <= PAYER_CHARACTERS_MAX && payerGrammar.test(value)

/** @returns the names of its accounts, outermost first: lanes of a fair queue */
export const accountsOf = (payer: Payer): string[] => payer.split('.')
