// The members of rooms, on the wire. A join is a watch with a key of its own, whose payload names the user; the members
// of a room are a watch whose position counts their changes. So both are state, which links repeat after a loss.
import type { Member } from '@keycast/protocol'
import { type Encoded, incomplete, isCount, parseJson, type Sent, WireError } from './codec.ts'
import { readPushedKey } from './pushed-codec.ts'

/**
 * The payload of a join. `user` is empty for an anonymous user, who is recognized by the `claim`. `leaving`: it is
 * over. `now`: the member left. `later`: the connection broke, so the member stays for a while and may come back
 * elsewhere. The same holds if the watch just ends: then another node has the room.
 */
export interface Join {
  user: string
  name: string
  claim: string | undefined
  leaving: Leaving | undefined
}

export type Leaving = 'now' | 'later'

export type { Member }

/** The join stands, under this name. */
interface JoinedAnswer {
  type: 'joined'
  key: string
  name: string
}

/** The node knows that the join is over. */
interface LeftAnswer {
  type: 'left'
  key: string
}

/** Who is there as of `rev`. `members` is missing where they are only counted. */
export interface MembersAnswer {
  type: 'members'
  key: string
  epoch: string
  rev: number
  count: number
  members?: Member[]
}

/**
 * What changed from `rev` − 1 on. The lists are missing where members are only counted. A member in `joined` came, or
 * has another name or number of tabs than before.
 */
export interface PresenceAnswer {
  type: 'presence'
  key: string
  epoch: string
  rev: number
  count: number
  joined?: Member[]
  left?: Member[]
}

export type PresenceAnswers = JoinedAnswer | LeftAnswer | MembersAnswer | PresenceAnswer

const keyGrammar = /^(\S+) (?:members|join (\S+))$/

/** The key of a room's members. */
export const membersKey = (room: string) => `${room} members`

/** The key of a join. @param tab names it among all joins of all gateways */
export const joinKey = (room: string, tab: string) => `${room} join ${tab}`

/** The room that a key is about: each room, with all keys about it, has one node. */
export function roomOf(key: string) {
  const end = key.indexOf(' ')
  return end === -1 ? key : key.slice(0, end)
}

/** @returns `tab` is missing in the key of the members; `undefined` if it is neither */
export function readPresenceKey(key: string): { room: string; tab: string | undefined } | undefined {
  // Most keys; or one of a value, whose id may have spaces.
  if (!key.includes(' ') || readPushedKey(key) !== undefined) return undefined
  const [, room, tab] = keyGrammar.exec(key) ?? []
  return room === undefined ? undefined : { room, tab }
}

export function readJoin({ user, name, claim, leaving }: Sent): Join {
  const isText = typeof user === 'string' && typeof name === 'string'
  if (!isText || (claim !== undefined && typeof claim !== 'string')) throw new WireError('a join is incomplete')
  if (leaving === undefined) return { user, name, claim, leaving }
  return { user, name, claim, leaving: leaving === 'now' ? leaving : 'later' }
}

/** The bytes of lists, encoded once: each change of a room goes to many links. */
const encodedLists = new WeakMap<object, Buffer>()

export function encodePresence(answer: PresenceAnswers): Encoded {
  if (answer.type === 'joined' || answer.type === 'left') return { head: answer, parts: [] }
  const { type, key, epoch, rev, count } = answer
  const lists = answer.type === 'members' ? answer.members : answer.joined && [answer.joined, answer.left]
  const head = { type, key, epoch, rev, count }
  if (!lists) return { head, parts: [] }
  const bytes = encodedLists.get(answer) ?? Buffer.from(JSON.stringify(lists))
  encodedLists.set(answer, bytes)
  return { head, parts: [bytes] }
}

export function decodePresence(head: Sent, parts: Buffer[]): PresenceAnswers {
  const { type, key, epoch, rev, count, name } = head
  if (type === 'joined') return typeof name === 'string' ? { type, key, name } : incomplete(head)
  if (type === 'left') return { type, key }
  if (typeof epoch !== 'string' || !isCount(rev) || !isCount(count)) return incomplete(head)
  const said = { key, epoch, rev, count }
  const lists = parts.length === 0 ? undefined : parseJson(parts[0])
  if (type === 'members') return { type, ...said, ...(lists && { members: readMembers(lists) }) }
  return { type, ...said, ...(lists && { joined: readMembers(lists[0]), left: readMembers(lists[1]) }) }
}

function readMembers(list: unknown): Member[] {
  if (!Array.isArray(list)) throw new WireError('members come with no list')
  return list.map(member => {
    const { id, user, name, tabs } = member ?? {}
    const hasUser = user === undefined || typeof user === 'string'
    if (typeof id !== 'string' || !hasUser || typeof name !== 'string' || !isCount(tabs)) {
      throw new WireError('a member is incomplete')
    }
    return user === undefined ? { id, name, tabs } : { id, user, name, tabs }
  })
}
