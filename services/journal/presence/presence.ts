// The members of all rooms: takes joins and leaves from links, keeps members whose connection broke for a while, and
// tells the links that watch a room's members of changes, in batches.
import { randomBytes } from 'node:crypto'
import { membersKey, readPresenceKey } from '@keycast/backbone'
import { errorCodes, isClaim, isUser, readMemberName } from '@keycast/protocol'
import { createAwakeClock, createTurns } from '@keycast/service'
import { createGhosts } from './ghosts.ts'
import { createMembers } from './members.ts'

/**
 * @typedef {import('@keycast/backbone').RoomAnswer} Answer
 * @typedef {import('@keycast/backbone').Position} Position
 * @typedef {import('@keycast/backbone').RoomErrorCode} RoomErrorCode
 *
 * A link watches a room's members. `position`: how far it was sent them. `isHeld`: its gateway was told the members by
 * another incarnation; see {@link SETTLE_MS}.
 * @typedef {{ position: Position | undefined, isHeld: boolean }} Watch
 *
 * `batchAt`: when changes are told next; `undefined` where there are none. `toldAt`: when that was last done.
 * @typedef {{ name: string, key: string, members: ReturnType<typeof createMembers<Tab>>, watches: Map<string, Watch>, tabs: number,
 *   batchAt: number | undefined, toldAt: number, settledAt: number }} Room
 *
 * `link` is missing where its gateway said that the connection broke.
 * @typedef {import('./members.ts').AnyTab & { key: string, room: Room, link: Link | undefined }} Tab
 *
 * What one link said. `watches` and `gets` by key. `answers`: to joins, and refusals, which it is still to be sent.
 * @typedef {{ id: string, tabs: Map<string, Tab>, watches: Map<string, Room>, gets: Set<string>, answers: Map<string, Answer>,
 *   isLost: boolean }} Link
 *
 * @typedef {Pick<import('@keycast/service').JournalNamespace, 'members' | 'names'>} Rules
 */

/** Changes wait this long for others of the same room. */
const BATCH_MS = 100

/** Two batches of a room are this far apart per member: 1,000 members are told twice a second. */
const APART_MS_EACH = 0.5
const APART_MS_MAX = 1_000

/** Precision of these times. */
const TICK_MS = 20

/**
 * Gateways that had a room's members of an earlier node must repeat their joins within this time. Until then they are
 * told nothing: the members not yet repeated would be seen to leave and come back. Gateways look for nodes each 5 s.
 */
const SETTLE_MS = 6_000

/** Tabs in all rooms: some 150 MiB. */
export const TABS_MAX = 200_000

/** @type {{ answers: Answer[], more: boolean }} */
const NOTHING = Object.freeze({ answers: [], more: false })

/**
 * @param {object} deps
 * @param {(room: string) => Rules | undefined} deps.rulesOf `undefined` if it names no room
 * @param {(link: string, key: string) => void} deps.tell
 * @param {{ joined: (result: 'joined' | RoomErrorCode) => void, told: () => void }} deps.counts
 * @param {() => number} deps.now
 * @param {import('@keycast/service').Every} deps.every
 * @param {number} [deps.tabsMax]
 */
export function createPresence({ rulesOf, tell, counts, now, every, tabsMax = TABS_MAX }) {
  const incarnation = randomBytes(9).toString('base64url')
  let nextRoom = 0
  /** @type {Map<string, Link>} */
  const links = new Map()
  /** @type {Map<string, Room>} */
  const rooms = new Map()
  /** By key of the join, ghosts included. @type {Map<string, Tab>} */
  const tabs = new Map()
  const awake = createAwakeClock({ periodMs: TICK_MS, every, now })
  /** @type {ReturnType<typeof createGhosts<Tab>>} */
  const ghosts = createGhosts(awake.now)
  /** Rooms with changes to tell. @type {Set<Room>} */
  const changed = new Set()
  /** Rooms whose batch is due. @type {Room[]} */
  const due = []
  const turns = createTurns({ now, step })
  let isTicking = false

  /** Runs the clock while anything waits for it. */
  function tickWhileNeeded() {
    const isNeeded = changed.size + ghosts.size > 0
    if (isNeeded === isTicking) return
    isTicking = isNeeded
    if (isNeeded) awake.start(() => turns.start())
    else awake.stop()
  }

  /** @returns {boolean} whether there is more to do now */
  function step() {
    const ghost = ghosts.takeDue()
    if (ghost) {
      // A tab that came back is no ghost any more, or belongs to another link.
      if (isGhost(ghost)) forget(ghost)
      return true
    }
    const room = due.pop()
    if (room) {
      publish(room)
      return true
    }
    for (const each of changed) if (now() >= /** @type {number} */ (each.batchAt)) due.push(each)
    if (due.length > 0) return true
    tickWhileNeeded()
    return false
  }

  /** @param {Tab} tab */
  const isGhost = ({ link }) => !link || link.isLost

  /** @param {Room} room */
  function publish(room) {
    changed.delete(room)
    room.batchAt = undefined
    room.toldAt = now()
    if (room.members.publish()) counts.told()
    for (const [link, watch] of room.watches) {
      if (watch.isHeld && now() >= room.settledAt) watch.isHeld = false
      if (watch.isHeld) schedule(room, room.settledAt)
      else if (!room.members.isAt(watch.position)) tell(link, room.key)
    }
    forgetRoomIfIdle(room)
  }

  /** @param {Room} room @param {number} [at] */
  function schedule(room, at = batchTimeOf(room)) {
    room.batchAt = Math.min(at, room.batchAt ?? Number.POSITIVE_INFINITY)
    changed.add(room)
    tickWhileNeeded()
  }

  /** @param {Room} room */
  function batchTimeOf({ members, toldAt }) {
    const apartMs = Math.min(APART_MS_MAX, Math.max(BATCH_MS, members.count * APART_MS_EACH))
    return Math.max(now() + BATCH_MS, toldAt + apartMs)
  }

  /** @param {string} id */
  function linkOf(id) {
    /** @type {Link} */
    const link = links.get(id) ?? {
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

  /** @param {string} name @param {Rules} rules */
  function roomOf(name, { members, names }) {
    const known = rooms.get(name)
    if (known) return known
    const key = membersKey(name)
    const epoch = `${incarnation}.${++nextRoom}`
    const isNamed = members === 'named'
    /** @type {Room} */
    const room = {
      name,
      key,
      members: createMembers({ room: name, key, epoch, isNamed, isUnique: names === 'unique', isGhost }),
      watches: new Map(),
      tabs: 0,
      batchAt: undefined,
      toldAt: Number.NEGATIVE_INFINITY,
      settledAt: now() + SETTLE_MS,
    }
    rooms.set(name, room)
    return room
  }

  /** @param {Room} room */
  function forgetRoomIfIdle(room) {
    if (room.watches.size > 0 || room.tabs > 0 || !room.members.isEmpty) return
    rooms.delete(room.name)
    changed.delete(room)
  }

  /**
   * @param {string} id
   * @param {{ key: string, position: Position | undefined, payload?: import('@keycast/backbone').Join }} want
   */
  function onWatch(id, want) {
    const link = linkOf(id)
    const { room, tab } = /** @type {{ room: string, tab?: string }} */ (readPresenceKey(want.key))
    const rules = rulesOf(room)
    if (!rules) return answer(link, want.key, 'unknown_namespace')
    if (rules.members === 'none') return answer(link, want.key, 'bad_message', 'the namespace has no members')
    if (tab === undefined) watch(link, want, roomOf(room, rules))
    else if (!want.payload) answer(link, want.key, 'bad_message')
    else if (want.payload.leaving) leave(link, want.key, want.payload.leaving)
    else join(link, want.key, want.payload, roomOf(room, rules))
  }

  /** @param {Link} link @param {{ key: string, position: Position | undefined }} want @param {Room} room */
  function watch(link, { key, position }, room) {
    const isOfOther = position !== undefined && position.epoch !== room.members.position.epoch
    const isHeld = isOfOther && now() < room.settledAt
    link.watches.set(key, room)
    room.watches.set(link.id, { position, isHeld })
    if (isHeld) schedule(room, room.settledAt)
    else tell(link.id, key)
  }

  /** @param {Link} link @param {string} key @param {import('@keycast/backbone').Join} said @param {Room} room */
  function join(link, key, said, room) {
    const { name, problem } = nameOf(said)
    if (problem !== undefined) return refuse(link, key, room, 'bad_message', problem)
    const known = tabs.get(key)
    if (!known && tabs.size >= tabsMax) return refuse(link, key, room, 'capacity')
    /** @type {Tab} */
    const tab = known ?? { key, room, link, member: undefined, name: '' }
    const { refusal, replaced } = room.members.join(tab, { ...said, name })
    if (refusal) return refuse(link, key, room, refusal)
    if (replaced) forget(replaced)
    if (!known) room.tabs++
    tab.link?.tabs.delete(key)
    tab.link = link
    link.tabs.set(key, tab)
    tabs.set(key, tab)
    counts.joined('joined')
    link.answers.set(key, { type: 'joined', key, name })
    tell(link.id, key)
    schedule(room)
  }

  /** @param {Link} link @param {string} key @param {Room} room @param {RoomErrorCode} code @param {string} [message] */
  function refuse(link, key, room, code, message) {
    counts.joined(code)
    answer(link, key, code, message)
    forgetRoomIfIdle(room)
  }

  /** @param {Link} link @param {string} key @param {RoomErrorCode} code @param {string} [message] */
  function answer(link, key, code, message = errorCodes[code]) {
    link.answers.set(key, { type: 'failed', key, code, message })
    tell(link.id, key)
  }

  /** @param {Link} link @param {string} key @param {import('@keycast/backbone').Leaving} leaving */
  function leave(link, key, leaving) {
    const tab = tabs.get(key)
    if (tab && leaving === 'now') forget(tab)
    else if (tab) startGrace(tab)
    link.answers.set(key, { type: 'left', key })
    tell(link.id, key)
  }

  /** Keeps a tab whose connection broke for a while, so that its user may come back unnoticed. @param {Tab} tab */
  function startGrace(tab) {
    if (isGhost(tab)) return
    tab.link?.tabs.delete(tab.key)
    tab.link = undefined
    ghosts.add([tab].values())
    tickWhileNeeded()
  }

  /** @param {Tab} tab */
  function forget(tab) {
    const { key, room } = tab
    room.members.leave(tab)
    tab.link?.tabs.delete(key)
    tabs.delete(key)
    room.tabs--
    schedule(room)
  }

  /** @param {string} id @param {string} key */
  function onUnwatch(id, key) {
    const link = links.get(id)
    link?.answers.delete(key)
    const tab = tabs.get(key)
    if (tab && tab.link === link) startGrace(tab) // if not, another link has it now
    const room = link?.watches.get(key)
    if (!room) return
    link?.watches.delete(key)
    room.watches.delete(id)
    forgetRoomIfIdle(room)
  }

  /** @param {string} id @param {{ key: string }} want */
  function onGet(id, { key }) {
    linkOf(id).gets.add(key)
    tell(id, key)
  }

  /** @param {string} id @param {string} key */
  const onCancelGet = (id, key) => links.get(id)?.gets.delete(key)

  /** Its tabs are ghosts from now on. @param {string} id */
  function onLinkLost(id) {
    const link = links.get(id)
    if (!link) return undefined
    links.delete(id)
    link.isLost = true
    ghosts.add(link.tabs.values())
    tickWhileNeeded()
    return endWatches(link)
  }

  /** @param {Link} link */
  function* endWatches({ id, watches }) {
    for (const room of watches.values()) {
      room.watches.delete(id)
      forgetRoomIfIdle(room)
      yield
    }
  }

  /** @param {string} id @param {string} key */
  function answersFor(id, key) {
    const link = links.get(id)
    if (!link) return NOTHING
    /** @type {Answer[]} */
    const answers = []
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

  /** @param {string} key @returns {Answer} */
  function answerToGet(key) {
    const { room: name, tab } = /** @type {{ room: string, tab?: string }} */ (readPresenceKey(key))
    const rules = rulesOf(name)
    if (tab !== undefined || !rules || rules.members === 'none') {
      return { type: 'failed', key, code: 'bad_message', message: 'there are no members to tell of' }
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
    /** The number of members of a room, for an operator. @param {string} name */
    countsOf(name) {
      const room = rooms.get(name)
      return { count: room?.members.count ?? 0, tabs: room?.tabs ?? 0 }
    },
    /** `tabs`: joins that stand, and ghosts. */
    stats: () => ({ tabs: tabs.size, rooms: rooms.size }),
  }
}

/** @param {import('@keycast/backbone').Join} said @returns {ReturnType<typeof readMemberName>} */
function nameOf({ user, name, claim }) {
  if (user !== '' && !isUser(user)) return { problem: 'the user is too long, or has a control character' }
  if (user === '' && !isClaim(claim)) {
    return { problem: 'the claim does not have 22 characters of A-Z a-z 0-9 _ -' }
  }
  return readMemberName(name)
}
