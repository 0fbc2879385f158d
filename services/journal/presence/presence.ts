// The members of all rooms: takes joins and leaves from links, keeps members whose connection broke for a while, and
// tells the links that watch a room's members of changes, in batches.
import {
  type RoomAnswer as Answer,
  type Join,
  type Leaving,
  type MembersAnswer,
  membersKey,
  type RoomErrorCode,
  readPresenceKey,
} from '@keycast/backbone'
import { isClaim, isUser, type Position, readMemberName } from '@keycast/protocol'
import {
  createAwakeClock,
  createStock,
  createTurns,
  type Every,
  type Holder,
  type JournalNamespace,
  type Payer,
} from '@keycast/service'
import { failed } from '../problems.ts'
import { type Batched, createBatches } from './batches.ts'
import { createGhosts } from './ghosts.ts'
import { type AnyTab, createMembers } from './members.ts'

/**
 * A link watches a room's members. `position`: how far it was sent them. `isHeld`: its gateway was told the members by
 * another incarnation; see {@link SETTLE_MS}.
 */
interface Watch {
  position: Position | undefined
  isHeld: boolean
}

/** `isElsewhere`: since somebody last joined here, gateways ask another journal for it. */
interface Room extends Batched {
  name: string
  key: string
  members: ReturnType<typeof createMembers<Tab>>
  watches: Map<string, Watch>
  settledAt: number
  isElsewhere: boolean
}

/** `link`: that says it; a lost one where its gateway said that the connection broke. `holder`: of its place. */
type Tab = AnyTab & { key: string; room: Room; link: Saying; holder: Holder | undefined }

type Saying = Pick<Link, 'tabs' | 'isLost'>

/**
 * What one link said. `watches` and `gets` by key. `answers`: to joins, and refusals, which it is still to be sent.
 */
interface Link {
  id: string
  tabs: Map<string, Tab>
  watches: Map<string, Room>
  gets: Set<string>
  answers: Map<string, Answer>
  isLost: boolean
}

interface Wanted {
  key: string
  position: Position | undefined
  payload?: Join
  payer?: Payer
}

type Rules = Pick<JournalNamespace, 'members' | 'names'>

/** Precision of all times here. */
const TICK_MS = 20

/**
 * Gateways that had a room's members of an earlier node must repeat their joins within this time. Until then they are
 * told nothing: the members not yet repeated would be seen to leave and come back. Gateways look for nodes each 5 s.
 */
const SETTLE_MS = 6_000

const SHARE_TAKEN = 'this user, address or network has joined as many rooms as it may: leave some first'

/** Tabs in all rooms: some 150 MiB. */
const TABS_MAX = 200_000

const NOTHING: { answers: Answer[]; more: boolean } = Object.freeze({ answers: [], more: false })

interface Deps {
  /** `undefined` if it names no room. */
  rulesOf: (room: string) => Rules | undefined
  tell: (link: string, key: string) => void
  /**
   * The members of a room, as they are told, changed; or they came back from another journal, which may have told of
   * them. `everybody`: as they are told when it is called; `undefined` where that is another journal's by then.
   */
  onChanged?: (room: string, everybody: () => MembersAnswer | undefined) => void
  counts: { joined: (result: 'joined' | 'share' | RoomErrorCode) => void; told: () => void }
  now: () => number
  every: Every
  turn: (run: () => void) => void
  randomBytes: (size: number) => Buffer
  tabsMax?: number
}

export function createPresence({
  rulesOf,
  tell,
  onChanged = () => {},
  counts,
  now,
  every,
  turn,
  randomBytes,
  tabsMax = TABS_MAX,
}: Deps) {
  const incarnation = randomBytes(9).toString('base64url')
  let nextRoom = 0
  const links = new Map<string, Link>()
  const rooms = new Map<string, Room>()
  /** By key of the join, ghosts included. */
  const tabs = new Map<string, Tab>()
  /** Places for tabs, by who takes them. */
  const places = createStock({ free: () => tabsMax - tabs.size })
  const awake = createAwakeClock({ periodMs: TICK_MS, every, now })
  const ghosts: ReturnType<typeof createGhosts<Tab>> = createGhosts(awake.now)
  const batches: ReturnType<typeof createBatches<Room>> = createBatches<Room>(now)
  const turns = createTurns({ now, turn, step })
  let isTicking = false

  /** Runs the clock while anything waits for it. */
  function tickWhileNeeded() {
    const isNeeded = batches.size + ghosts.size > 0
    if (isNeeded === isTicking) return
    isTicking = isNeeded
    if (isNeeded) awake.start(turns.start)
    else awake.stop()
  }

  /** @returns whether there may be more to do now */
  function step(): boolean {
    const ghost = ghosts.takeDue()
    const room = ghost ? undefined : batches.takeDue()
    if (ghost) forget(ghost)
    else if (room) publish(room)
    else tickWhileNeeded()
    return ghost !== undefined || room !== undefined
  }

  const isGhost = ({ link }: Tab) => link.isLost

  function publish(room: Room) {
    if (room.members.publish()) {
      counts.told()
      onChanged(room.name, () => everybodyIn(room))
    }
    for (const [link, watch] of room.watches) {
      if (watch.isHeld && now() >= room.settledAt) watch.isHeld = false
      if (watch.isHeld) schedule(room, room.settledAt)
      else if (!room.members.isAt(watch.position)) tell(link, room.key)
    }
    forgetRoomIfIdle(room)
  }

  const everybodyIn = ({ isElsewhere, members }: Room) => (isElsewhere ? undefined : members.everybody())

  function schedule(room: Room, at?: number) {
    batches.schedule(room, at)
    tickWhileNeeded()
  }

  function linkOf(id: string) {
    const link: Link = links.get(id) ?? {
      id,
      tabs: new Map(),
      watches: new Map(),
      gets: new Set(),
      answers: new Map(),
      isLost: false,
    }
    links.set(id, link)
    return link
  }

  function roomOf(name: string, { members, names }: Rules) {
    const known = rooms.get(name)
    if (known) return known
    const key = membersKey(name)
    const epoch = `${incarnation}.${++nextRoom}`
    const isNamed = members === 'named'
    const room: Room = {
      name,
      key,
      members: createMembers({ room: name, key, epoch, isNamed, isUnique: names === 'unique', isGhost }),
      watches: new Map(),
      batchAt: undefined,
      toldAt: Number.NEGATIVE_INFINITY,
      settledAt: now() + SETTLE_MS,
      isElsewhere: false,
    }
    rooms.set(name, room)
    return room
  }

  function forgetRoomIfIdle(room: Room) {
    if (room.watches.size > 0 || !room.members.isEmpty) return
    rooms.delete(room.name)
    batches.forget(room)
  }

  function onWatch(id: string, want: Wanted) {
    const link = linkOf(id)
    const { room, tab } = readPresenceKey(want.key) as { room: string; tab?: string }
    const rules = rulesOf(room)
    if (!rules) return answer(link, want.key, 'unknown_namespace')
    if (rules.members === 'none') return answer(link, want.key, 'bad_message', 'the namespace has no members')
    if (tab === undefined) watch(link, want, roomOf(room, rules))
    else if (!want.payload) answer(link, want.key, 'bad_message')
    else if (want.payload.leaving) leave(link, want.key, want.payload.leaving)
    else join(link, want.key, want.payload, want.payer, roomOf(room, rules))
  }

  function watch(link: Link, { key, position }: { key: string; position: Position | undefined }, room: Room) {
    const isOfOther = position !== undefined && position.epoch !== room.members.position.epoch
    const isHeld = isOfOther && now() < room.settledAt
    link.watches.set(key, room)
    room.watches.set(link.id, { position, isHeld })
    if (isHeld) schedule(room, room.settledAt)
    else tell(link.id, key)
  }

  function join(link: Link, key: string, said: Join, payer: Payer | undefined, room: Room) {
    const { name, problem } = nameOf(said)
    if (problem !== undefined) return refuse(link, key, room, 'bad_message', problem)
    const known = tabs.get(key)
    if (!known && tabs.size >= tabsMax) return refuse(link, key, room, 'capacity')
    if (!known && !places.hasRoom(payer, 1)) return refuse(link, key, room, 'share', SHARE_TAKEN)
    const tab: Tab = known ?? { key, room, link, member: undefined, name: '', holder: undefined }
    const { refusal, replaced } = room.members.join(tab, { ...said, name })
    if (refusal) return refuse(link, key, room, refusal)
    if (replaced) forget(replaced)
    const isBack = room.isElsewhere || (known && isGhost(known))
    room.isElsewhere = false
    if (isBack) onChanged(room.name, () => everybodyIn(room))
    if (!known) tab.holder = places.charge(payer, 1)
    move(tab, link)
    tabs.set(key, tab)
    counts.joined('joined')
    link.answers.set(key, { type: 'joined', key, name })
    tell(link.id, key)
    schedule(room)
  }

  /** @param reason `share`: there is room, but not for this payer */
  function refuse(link: Link, key: string, room: Room, reason: RoomErrorCode | 'share', message?: string) {
    counts.joined(reason)
    answer(link, key, reason === 'share' ? 'capacity' : reason, message)
    forgetRoomIfIdle(room)
  }

  function answer(link: Link, key: string, code: RoomErrorCode, message?: string) {
    link.answers.set(key, failed(key, code, message))
    tell(link.id, key)
  }

  function leave(link: Link, key: string, leaving: Leaving) {
    const tab = tabs.get(key)
    if (tab && leaving === 'now') forget(tab)
    else if (tab) startGrace(tab)
    link.answers.set(key, { type: 'left', key })
    tell(link.id, key)
  }

  /** Keeps a tab whose connection broke for a while, so that its user may come back unnoticed. */
  function startGrace(tab: Tab) {
    if (isGhost(tab)) return
    const lost: Saying = { tabs: new Map(), isLost: true }
    move(tab, lost)
    ghosts.add(lost.tabs.values())
    tickWhileNeeded()
  }

  function move(tab: Tab, link: Saying) {
    tab.link.tabs.delete(tab.key)
    tab.link = link
    link.tabs.set(tab.key, tab)
  }

  function forget(tab: Tab) {
    const { key, room } = tab
    room.members.leave(tab)
    tab.link.tabs.delete(key)
    tabs.delete(key)
    if (tab.holder) places.change(tab.holder, -1)
    schedule(room)
  }

  /** @param hasLeft nobody asks another journal instead */
  function onUnwatch(id: string, key: string, hasLeft: boolean) {
    const link = links.get(id)
    link?.answers.delete(key)
    const tab = tabs.get(key)
    // If not, another link has it now.
    if (tab && tab.link === link) {
      startGrace(tab)
      if (!hasLeft) tab.room.isElsewhere = true
    }
    const room = link?.watches.get(key)
    if (!room) return
    link?.watches.delete(key)
    room.watches.delete(id)
    forgetRoomIfIdle(room)
  }

  function onGet(id: string, { key }: { key: string }) {
    linkOf(id).gets.add(key)
    tell(id, key)
  }

  const onCancelGet = (id: string, key: string) => links.get(id)?.gets.delete(key)

  /** Its tabs are ghosts from now on. */
  function onLinkLost(id: string) {
    const link = links.get(id)
    if (!link) return undefined
    links.delete(id)
    link.isLost = true
    ghosts.add(link.tabs.values())
    tickWhileNeeded()
    return endWatches(link)
  }

  function* endWatches({ id, watches }: Link) {
    for (const room of watches.values()) {
      room.watches.delete(id)
      forgetRoomIfIdle(room)
      yield
    }
  }

  function answersFor(id: string, key: string) {
    const link = links.get(id)
    if (!link) return NOTHING
    const answers: Answer[] = []
    if (link.gets.delete(key)) answers.push(answerToGet(key))
    const said = link.answers.get(key)
    if (said && link.answers.delete(key)) answers.push(said)
    const room = link.watches.get(key)
    const watch = room?.watches.get(id)
    if (room && watch && !watch.isHeld) {
      answers.push(...room.members.after(watch.position))
      watch.position = room.members.position
    }
    return { answers, more: false }
  }

  function answerToGet(key: string): Answer {
    const { room: name, tab } = readPresenceKey(key) as { room: string; tab?: string }
    const rules = rulesOf(name)
    if (tab !== undefined || !rules || rules.members === 'none') {
      return failed(key, 'bad_message', 'there are no members to tell of')
    }
    const nobody = rules.members === 'named' ? { members: [] } : {}
    return rooms.get(name)?.members.everybody() ?? { type: 'members', key, epoch: '-', rev: 0, count: 0, ...nobody }
  }

  return {
    onWatch,
    onUnwatch,
    onGet,
    onCancelGet,
    onLinkLost,
    answersFor,
    /** Ends the clock. */
    stop: () => awake.stop(),
    /** The number of members of a room, for an operator. */
    countsOf(name: string) {
      const { count = 0, tabs = 0 } = rooms.get(name)?.members ?? {}
      return { count, tabs }
    },
    /** Rooms that have members now. */
    *occupied(): Iterable<[room: string, everybody: () => MembersAnswer | undefined]> {
      for (const room of rooms.values()) if (room.members.count > 0) yield [room.name, () => everybodyIn(room)]
    },
    /** `tabs`: joins that stand, and ghosts. */
    stats: () => ({ tabs: tabs.size, rooms: rooms.size }),
  }
}

function nameOf({ user, name, claim }: Join): ReturnType<typeof readMemberName> {
  if (user !== '' && !isUser(user)) return { problem: 'the user is too long, or has a control character' }
  if (user === '' && !isClaim(claim)) {
    return { problem: 'the claim does not have 22 characters of A-Z a-z 0-9 _ -' }
  }
  return readMemberName(name)
}
