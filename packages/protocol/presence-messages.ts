// The messages about members of a room: a client's requests to join and leave, and the news of members that it is sent.
import { bad, readKey } from './fields.ts'
import type { RequestId } from './messages.ts'
import { readMemberName } from './names.ts'

/** `name` in its normal form. `claim`: what an anonymous member is known by, its own or as `joined` gave it. */
export interface Join {
  type: 'join'
  id?: RequestId
  key: string
  name: string
  claim?: string
}

export interface Leave {
  type: 'leave'
  id?: RequestId
  key: string
}

/** `claim`: for an anonymous member, the secret by which it is known again. */
export interface Joined {
  type: 'joined'
  id?: RequestId
  key: string
  name: string
  claim?: string
}

/**
 * A user in a room. `id` is the same for all tabs of the user, and another in each room; `user` is missing where it is
 * an anonymous one.
 */
export interface Member {
  id: string
  user?: string
  name: string
  tabs: number
}

/** Who is there as of `rev`. `members` is missing where they are only counted. */
export interface Members {
  type: 'members'
  key: string
  rev: number
  count: number
  members?: Member[]
}

/**
 * What changed since `rev` − 1. The lists are missing where members are only counted. A member in `joined` came, or has
 * another name or number of tabs.
 */
export interface Presence {
  type: 'presence'
  key: string
  rev: number
  count: number
  joined?: Member[]
  left?: Member[]
}

/** The secret by which an anonymous member is recognized: 128 bits in base64url. */
const claimGrammar = /^[A-Za-z0-9_-]{22}$/

export const isClaim = (value: unknown): value is string => typeof value === 'string' && claimGrammar.test(value)

export function readJoin({ key, name: written, claim }: Record<string, unknown>, id?: RequestId): Join {
  if (typeof written !== 'string') throw bad('"name" must be a string', id)
  const { name, problem } = readMemberName(written)
  if (problem !== undefined) throw bad(problem, id)
  if (claim !== undefined && !isClaim(claim)) {
    throw bad('"claim" must be 22 characters of A-Z a-z 0-9 _ -', id)
  }
  return { type: 'join', id, key: readKey(key, id), name, claim }
}
