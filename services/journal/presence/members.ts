// The members of one room: users with a name and a number of tabs, whose changes are told in numbered batches. Knows
// neither links nor time.
import { createHash } from 'node:crypto'
import type { MembersAnswer, PresenceAnswer, Member as Shown } from '@keycast/backbone'

/**
 * A user who is known by the token's `sub`, or by the claim of an anonymous one. `shown`: what was last told;
 * `undefined` where nothing was.
 */
interface Member {
  identity: string
  id: string
  user: string
  name: string
  tabs: Set<AnyTab>
  shown: Shown | undefined
}

/** One connection of a member to the room. */
export interface AnyTab {
  member: Member | undefined
  name: string
}

/** A longer list is of no use to a reader, and costs each of them its whole length. */
const LISTED_MAX = 250

/**
 * A room is listed again at so few members. If the two bounds were one, each member that comes or goes at it would send
 * the list to everybody.
 */
const LISTED_AGAIN_MAX = 200

/** Tabs per member: the first one that is over is found by walking over them. */
const MEMBER_TABS_MAX = 100

/** Changes kept for links that are a little behind. A link that is further behind is sent all members anew. */
const RECENT_MAX = 16
const RECENT_MEMBERS_MAX = 500

interface Options<Tab extends AnyTab> {
  room: string
  /** Of its members on the wire. */
  key: string
  /** No other room, and no later incarnation of this one, has it. */
  epoch: string
  /** Otherwise members are only counted. */
  isNamed: boolean
  /** Whether a name belongs to one member at a time. */
  isUnique: boolean
  /** Whether the tab's connection broke: the member's next one replaces it. */
  isGhost: (tab: Tab) => boolean
}

export function createMembers<Tab extends AnyTab>({ room, key, epoch, isNamed, isUnique, isGhost }: Options<Tab>) {
  /** By identity. */
  const members = new Map<string, Member>()
  const names = new Map<string, Member>()
  /** Members who may have changed since the last batch. */
  const changed = new Set<Member>()
  let count = 0 // as it was last told
  let rev = 0
  let isListed = isNamed
  /** The changes up to `rev`, without a hole. */
  let recent: PresenceAnswer[] = []
  let whole: MembersAnswer | undefined

  /**
   * @param tab which may be in the room already
   * @returns `refusal`: the tab is as it was. `replaced`: a ghost of the same member, which has left
   */
  function join(
    tab: Tab,
    { user, name, claim }: { user: string; name: string; claim: string | undefined },
  ): { refusal?: 'name_taken' | 'capacity'; replaced?: Tab } {
    const identity = user === '' ? `claim ${claim}` : `user ${user}`
    const member = members.get(identity) ?? {
      identity,
      id: idOf(identity),
      user,
      name,
      tabs: new Set(),
      shown: undefined,
    }
    // A tab that says again what it said before must not undo a name that another tab gave since.
    if (tab.member === member && tab.name === name) return {}
    if (isUnique && (names.get(name) ?? member) !== member) return { refusal: 'name_taken' }
    const isNew = tab.member !== member
    const replaced = isNew ? ghostOf(member) : undefined
    if (isNew && !replaced && member.tabs.size >= MEMBER_TABS_MAX) return { refusal: 'capacity' }
    if (replaced) leave(replaced)
    if (isNew) leave(tab)
    freeName(member)
    if (isUnique) names.set(name, member)
    member.name = name
    member.tabs.add(tab)
    members.set(identity, member)
    changed.add(member)
    tab.member = member
    tab.name = name
    return { replaced }
  }

  function ghostOf({ tabs }: Member) {
    for (const tab of tabs as Set<Tab>) if (isGhost(tab)) return tab
    return undefined
  }

  function leave(tab: AnyTab) {
    const { member } = tab
    if (!member) return
    tab.member = undefined
    member.tabs.delete(tab)
    changed.add(member)
    if (member.tabs.size === 0) freeName(member)
  }

  function freeName(member: Member) {
    if (names.get(member.name) === member) names.delete(member.name)
  }

  /** The same for all tabs of a user, and nothing by which a claim could be guessed. */
  const idOf = (identity: string) => createHash('sha256').update(`${room} ${identity}`).digest('base64url').slice(0, 12)

  /** Turns the changes into the next `rev`. @returns whether there is something to tell */
  function publish(): boolean {
    const { joined, left, came } = takeChanges()
    const wasListed = isListed
    const countBefore = count
    count += came - left.length
    isListed = isNamed && count <= (wasListed ? LISTED_MAX : LISTED_AGAIN_MAX)
    const isToBeTold = isListed ? joined.length + left.length > 0 || !wasListed : count !== countBefore || wasListed
    if (!isToBeTold) return false
    rev++
    whole = undefined
    if (isListed !== wasListed)
      recent = [] // changes are no use here: links drop their list, or are sent one
    else keep({ type: 'presence', key, epoch, rev, count, ...(isListed && { joined, left }) })
    return true
  }

  function takeChanges() {
    const joined = []
    const left = []
    let came = 0
    for (const member of changed) {
      const { identity, id, user, name, tabs, shown } = member
      if (tabs.size === 0) {
        if (shown) left.push(shown)
        if (members.get(identity) === member) members.delete(identity)
        continue
      }
      if (shown?.name === name && shown.tabs === tabs.size) continue
      if (!shown) came++
      member.shown = { id, ...(user !== '' && { user }), name, tabs: tabs.size }
      joined.push(member.shown)
    }
    changed.clear()
    return { joined, left, came }
  }

  function keep(change: PresenceAnswer) {
    recent.push(change)
    let size = 0
    let first = recent.length
    while (first > 0 && recent.length - first < RECENT_MAX) {
      const { joined, left } = recent[first - 1]
      size += (joined?.length ?? 0) + (left?.length ?? 0)
      if (size > RECENT_MEMBERS_MAX && first < recent.length) break
      first--
    }
    if (first > 0) recent = recent.slice(first)
  }

  /** The news after a position: the changes since, or all members if those changes are gone. */
  function after(position: { epoch: string; seq: number } | undefined): (MembersAnswer | PresenceAnswer)[] {
    const behind = position?.epoch === epoch ? rev - position.seq : -1
    return behind < 0 || behind > recent.length ? [everybody()] : recent.slice(recent.length - behind)
  }

  /** @returns as it was last told */
  function everybody(): MembersAnswer {
    if (whole) return whole
    whole = { type: 'members', key, epoch, rev, count }
    if (isListed) whole.members = [...members.values()].flatMap(({ shown }) => shown ?? [])
    return whole
  }

  return {
    join,
    leave,
    publish,
    after,
    everybody,
    /** Nobody is there, and nobody is still to be told as gone. */
    get isEmpty() {
      return members.size === 0
    },
    get tabs() {
      let tabs = 0
      for (const member of members.values()) tabs += member.tabs.size
      return tabs
    },
    isAt: (position: { epoch: string; seq: number } | undefined) => position?.epoch === epoch && position.seq === rev,
    get position() {
      return { epoch, seq: rev }
    },
    /** As it was last told. */
    get count() {
      return count
    },
  }
}
