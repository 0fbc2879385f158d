// A room's members as this gateway knows them, and the frames for them, each made once for all sessions.
import { encode } from '@keycast/protocol'
import { textFrame } from '../transport/frames.ts'

/**
 * @typedef {import('@keycast/protocol').Member} Member
 * @typedef {import('../sessions/session.ts').Session} Session
 *
 * `members` is `undefined` where they are only counted. `frame`: the whole list, once somebody is to be sent it.
 * @typedef {object} MemberList
 * @property {string} key
 * @property {boolean} isKnown whether the journal has sent any members yet
 * @property {number} rev
 * @property {number} count
 * @property {Map<string, Member> | undefined} members by id
 * @property {Buffer | undefined} frame
 * @property {MembersWatch[]} watches
 *
 * A session that is told who is in a room.
 * @typedef {object} MembersWatch
 * @property {Session} session
 * @property {MemberList} list
 * @property {number} index in the list's watches
 * @property {number} due MEMBERS of due.ts where it is to be sent the whole list, else 0
 */

/** @param {string} key @returns {MemberList} */
export const createMemberList = key => ({
  key,
  isKnown: false,
  rev: 0,
  count: 0,
  members: undefined,
  frame: undefined,
  watches: [],
})

/** @param {MemberList} list @param {{ rev: number, count: number, members?: Member[] }} said */
export function replaceMembers(list, { rev, count, members }) {
  list.isKnown = true
  list.rev = rev
  list.count = count
  list.members = members && new Map(members.map(member => [member.id, member]))
  list.frame = undefined
}

/**
 * @param {MemberList} list
 * @param {{ rev: number, count: number, joined?: Member[], left?: Member[] }} said a change that follows the list's
 *   `rev`
 * @returns {Buffer} the frame of the change
 */
export function changeMembers(list, { rev, count, joined, left }) {
  const { key, members } = list
  list.rev = rev
  list.count = count
  list.frame = undefined
  for (const { id } of left ?? []) members?.delete(id)
  for (const member of joined ?? []) members?.set(member.id, member)
  return textFrame(encode({ type: 'presence', key, rev, count, joined, left })).frame
}

/** @param {MemberList} list */
export function wholeFrame(list) {
  const { key, rev, count } = list
  if (list.frame) return list.frame
  const members = list.members && [...list.members.values()]
  list.frame = textFrame(encode({ type: 'members', key, rev, count, members })).frame
  return list.frame
}
