// Presence without a journal, for unit tests of gateways. Every change is told at once, and a member whose connection
// broke stays until the test says that the time is over.
import type { Problem } from '@keycast/protocol'
import type { PresenceBackbone, PresenceEvents } from '../gateway/rooms/presence.ts'
import type { Member } from '../wire/members-codec.ts'

interface Tab {
  identity: string
  name: string
  isGone: boolean
  onLost: (problem: Problem) => void
}

export function createMemoryPresence({ isAway, isNamed }: { isAway: () => boolean; isNamed: boolean }) {
  const rooms = new Map<string, { rev: number; tabs: Map<string, Tab> }>()
  const gateways = new Set<{ events: PresenceEvents; watched: Set<string> }>()
  let nextTab = 0

  function roomOf(name: string) {
    const room = rooms.get(name) ?? { rev: 0, tabs: new Map() }
    rooms.set(name, room)
    return room
  }

  function membersIn(room: string): Map<string, Member> {
    const members = new Map<string, Member>()
    for (const { identity, name } of roomOf(room).tabs.values()) {
      const tabs = (members.get(identity)?.tabs ?? 0) + 1
      const [kind, who] = identity.split(' ')
      members.set(identity, { id: `id-${who}`, ...(kind === 'user' && { user: who }), name, tabs })
    }
    return members
  }

  function said(room: string) {
    const members = membersIn(room)
    return isNamed ? { count: members.size, members: [...members.values()] } : { count: members.size }
  }

  /** Tells the effect of the change. */
  function changing(name: string, change: () => void) {
    const before = membersIn(name)
    change()
    const after = membersIn(name)
    const joined = []
    const left = []
    for (const [identity, member] of after) {
      const { name: was, tabs } = before.get(identity) ?? {}
      if (was !== member.name || tabs !== member.tabs) joined.push(member)
    }
    for (const [identity, member] of before) if (!after.has(identity)) left.push(member)
    if (joined.length + left.length === 0) return
    const rev = ++roomOf(name).rev
    const lists = isNamed ? { joined, left } : {}
    queueMicrotask(() => {
      for (const { events, watched } of gateways) {
        if (watched.has(name)) events.onPresence?.(name, { rev, count: after.size, ...lists })
      }
    })
  }

  const away: Problem = {
    code: 'journal_unavailable',
    retryAfterMs: 1_000,
  }

  /** @returns as one gateway has it */
  function backbone(events: PresenceEvents): PresenceBackbone & { stop: () => void } {
    const gateway = { events, watched: new Set() as Set<string> }
    gateways.add(gateway)
    return {
      join({ room, user, name, claim }, { onLost }) {
        const tab = `${room} join ${++nextTab}`
        const known = user === '' ? (claim ?? `claim-of-${nextTab}`.padEnd(22, '-')) : undefined
        const identity = user === '' ? `claim ${known}` : `user ${user}`
        const { tabs } = roomOf(room)
        const isTaken = [...tabs.values()].some(each => each.name === name && each.identity !== identity)
        if (isAway()) return { tab, joined: Promise.resolve(away) }
        if (isTaken) return { tab, joined: Promise.resolve({ code: 'name_taken' }) }
        changing(room, () => {
          const ghost = [...tabs].find(([, each]) => each.identity === identity && each.isGone)
          if (ghost) tabs.delete(ghost[0])
          for (const each of tabs.values()) if (each.identity === identity) each.name = name
          tabs.set(tab, { identity, name, isGone: false, onLost })
        })
        return { tab, joined: Promise.resolve({ name, claim: known }) }
      },
      leave(tab, leaving) {
        const room = tab.split(' ')[0]
        const known = roomOf(room).tabs.get(tab)
        if (known && leaving === 'later') known.isGone = true
        else if (known) changing(room, () => roomOf(room).tabs.delete(tab))
      },
      watchMembers(room) {
        if (gateway.watched.has(room)) return
        gateway.watched.add(room)
        queueMicrotask(() => events.onMembers?.(room, { rev: roomOf(room).rev, ...said(room) }))
      },
      unwatchMembers: room => void gateway.watched.delete(room),
      membersOf: async room => (isAway() ? away : said(room)),
      stop: () => void gateways.delete(gateway),
    }
  }

  return {
    backbone,
    /** Members whose connection broke leave. @param name of the room */
    endGhosts(name: string) {
      const { tabs } = roomOf(name)
      changing(name, () => {
        for (const [tab, { isGone }] of tabs) if (isGone) tabs.delete(tab)
      })
    },
    /** The journal lost its memory, and gave names and places to somebody else. @param name of the room */
    refuseAll(name: string, code: 'name_taken' | 'capacity' = 'name_taken') {
      const { tabs } = roomOf(name)
      const lost = [...tabs.values()]
      changing(name, () => tabs.clear())
      for (const { onLost } of lost) onLost({ code })
    },
  }
}
