// A room's members as this gateway knows them, and the frames for them, each made once for all sessions.
import { encode, type Member } from '@keycast/protocol'
import { textFrame } from '../../../transport/frames.ts'
import type { RoomSubscription } from '../room.ts'
import type { Place } from '../room-places.ts'

/** `members` is `undefined` where they are only counted. `frame`: the whole list, once somebody is to be sent it. */
export interface MemberList {
  key: string
  /** Whether the journal has sent any members yet. */
  isKnown: boolean
  rev: number
  count: number
  /** By id. */
  members: Map<string, Member> | undefined
  frame: Buffer | undefined
  /** That are told of them. */
  subscriptions: RoomSubscription[]
  /** Whom it counts for. */
  place: Place
}

export const createMemberList = (key: string, place: Place): MemberList => ({
  key,
  isKnown: false,
  rev: 0,
  count: 0,
  members: undefined,
  frame: undefined,
  subscriptions: [],
  place,
})

export function replaceMembers(
  list: MemberList,
  { rev, count, members }: { rev: number; count: number; members?: Member[] },
) {
  list.isKnown = true
  list.rev = rev
  list.count = count
  list.members = members && new Map(members.map(member => [member.id, member]))
  list.frame = undefined
}

/**
 * @param said a change that follows the list's `rev`
 * @returns the frame of the change
 */
export function changeMembers(
  list: MemberList,
  { rev, count, joined, left }: { rev: number; count: number; joined?: Member[]; left?: Member[] },
): Buffer {
  const { key, members } = list
  list.rev = rev
  list.count = count
  list.frame = undefined
  for (const { id } of left ?? []) members?.delete(id)
  for (const member of joined ?? []) members?.set(member.id, member)
  return textFrame(encode({ type: 'presence', key, rev, count, joined, left })).frame
}

export function wholeFrame(list: MemberList) {
  const { key, rev, count } = list
  if (list.frame) return list.frame
  const members = list.members && [...list.members.values()]
  list.frame = textFrame(encode({ type: 'members', key, rev, count, members })).frame
  return list.frame
}
