// The members of rooms, on the wire. A join is a watch with a key of its own, whose payload names the user; the members
// of a room are a watch whose position counts their changes. So both are state, which links repeat after a loss.
import { excerpt } from '@keycast/protocol'
import { WireError } from './codec.ts'

/**
 * The payload of a join. `user` is empty for an anonymous user, who is recognized by the `claim`. `leaving`: it is
 * over. `now`: the member left. `later`: the connection broke, so the member stays for a while and may come back
 * elsewhere. The same holds if the watch just ends: then another node has the room.
 * @typedef {{ user: string, name: string, claim: string | undefined, leaving: Leaving | undefined }} Join
 * @typedef {'now' | 'later'} Leaving
 *
 * A user in a room. `id` is the same for all tabs of the user, and another in each room; `user` is missing where it is an
 * anonymous one.
 * @typedef {{ id: string, user?: string, name: string, tabs: number }} Member
 *
 * The join stands, under this name.
 * @typedef {{ type: 'joined', key: string, name: string }} JoinedAnswer
 *
 * The node knows that the join is over.
 * @typedef {{ type: 'left', key: string }} LeftAnswer
 *
 * Who is there as of `rev`. `members` is missing where they are only counted.
 * @typedef {{ type: 'members', key: string, epoch: string, rev: number, count: number, members?: Member[] }} MembersAnswer
 *
 * What changed from `rev` − 1 on. The lists are missing where members are only counted. A member in `joined` came, or has
 * another name or number of tabs than before.
 * @typedef {{ type: 'presence', key: string, epoch: string, rev: number, count: number, joined?: Member[],
 *   left?: Member[] }} PresenceAnswer
 *
 * @typedef {JoinedAnswer | LeftAnswer | MembersAnswer | PresenceAnswer} PresenceAnswers
 */

const keyGrammar = /^(\S+) (?:members|join (\S+))$/

/** The key of a room's members. @param {string} room */
export const membersKey = room => `${room} members`

/** The key of a join. @param {string} room @param {string} tab names it among all joins of all gateways */
export const joinKey = (room, tab) => `${room} join ${tab}`

/** The room that a key is about: each room, with all keys about it, has one node. @param {string} key */
export function roomOf(key) {
  const end = key.indexOf(' ')
  return end === -1 ? key : key.slice(0, end)
}

/**
 * @param {string} key
 * @returns {{ room: string, tab: string | undefined } | undefined} `tab` is missing in the key of the members;
 *   `undefined` if it is neither
 */
export function readPresenceKey(key) {
  if (!key.includes(' ')) return undefined // most keys
  const [, room, tab] = keyGrammar.exec(key) ?? []
  return room === undefined ? undefined : { room, tab }
}

/** @param {any} payload @returns {Join} */
export function readJoin({ user, name, claim, leaving }) {
  const isText = typeof user === 'string' && typeof name === 'string'
  if (!isText || (claim !== undefined && typeof claim !== 'string')) throw new WireError('a join is incomplete')
  if (leaving === undefined) return { user, name, claim, leaving }
  return { user, name, claim, leaving: leaving === 'now' ? leaving : 'later' }
}

/**
 * The bytes of lists, encoded once: each change of a room goes to many links.
 *
 * @type {WeakMap<object, Buffer>}
 */
const encodedLists = new WeakMap()

/** @param {PresenceAnswers} answer @returns {import('./codec.ts').Encoded} */
export function encodePresence(answer) {
  if (answer.type === 'joined' || answer.type === 'left') return { head: answer, parts: [] }
  const { type, key, epoch, rev, count } = answer
  const lists = answer.type === 'members' ? answer.members : answer.joined && [answer.joined, answer.left]
  const head = { type, key, epoch, rev, count }
  if (!lists) return { head, parts: [] }
  const bytes = encodedLists.get(answer) ?? Buffer.from(JSON.stringify(lists))
  encodedLists.set(answer, bytes)
  return { head, parts: [bytes] }
}

/** @param {any} head @param {Buffer[]} parts @returns {PresenceAnswers} */
export function decodePresence({ type, key, epoch, rev, count, name }, parts) {
  if (type === 'joined') {
    if (typeof name !== 'string') throw new WireError(`the name of ${excerpt(key)} is missing`)
    return { type, key, name }
  }
  if (type === 'left') return { type, key }
  if (typeof epoch !== 'string' || !isCount(rev) || !isCount(count))
    throw new WireError(`the ${type} of ${excerpt(key)} is incomplete`)
  const said = { key, epoch, rev, count }
  const lists = parts.length === 0 ? undefined : parse(parts[0])
  if (type === 'members') return { type, ...said, ...(lists && { members: readMembers(lists) }) }
  return { type, ...said, ...(lists && { joined: readMembers(lists[0]), left: readMembers(lists[1]) }) }
}

/** @param {Buffer} part */
function parse(part) {
  try {
    return JSON.parse(part.toString())
  } catch {
    throw new WireError('a list of members is not JSON')
  }
}

/** @param {unknown} list @returns {Member[]} */
function readMembers(list) {
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

/** @param {unknown} value @returns {value is number} */
const isCount = value => Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0
