// A journal, or two on one log, and three gateways in one process. Members join, rename, leave and come back by another
// gateway, while connections break, messages get lost, and processes stand still, die and come back. Whoever watches a
// room is told changes that follow each other. Nobody is seen to leave who comes back in time, nor told that a name is
// taken which nobody has. In the end all see who is there, and nothing is left of those who are gone.
import { createHash } from 'node:crypto'
import { createHub, createRoomsBackbone, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { type JournalNamespace, withReserved } from '@keycast/service'
import { createRandom } from '../../test/support/random.js'
import { createJournal } from '../journal/journal.ts'
import { createMemoryLog } from '../journal/log/memory/memory.ts'
import { createRights } from './access/rights.ts'
import { readRule } from './access/rule.ts'
import { createProcess, type Process } from './process.fixture.ts'
import { createTestGateway, noMetrics } from './test-support.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
const rule = (written: object) => readRule(written, { user: false, strict: true }).rule
const { grants } = createRights({ anonymous: rule({ read: ['*:**'], join: ['*:**'] }), everyone: rule({}) }).anonymous

const ROOMS = ['unique:1', 'named:1', 'counted:1']
const NAMES = ['Ann', 'Bob', 'Cal']
const GATEWAYS = 3

const history = { messages: 5, ageMs: 60_000, bytes: 1_000 }
const of = (members: string, names: string) => ({
  source: 'journal',
  history,
  bytesMax: 100,
  publish: 'client',
  members,
  names,
})
const rules: Record<string, any> = {
  unique: of('named', 'unique'),
  named: of('named', 'any'),
  counted: of('counted', 'unique'),
}

/** What may go wrong. `lagMs`: after which a watcher has heard of whoever left. */
const modes = {
  nothing: { lagMs: 600 },
  stalls: { lagMs: 6_000 },
  losses: { lagMs: 8_000 },
  deaths: { lagMs: 6_000 },
  /** Of journals, too: who is seen to leave depends on which of them forgot whom. */
  everything: { lagMs: Number.POSITIVE_INFINITY },
}
type Mode = keyof typeof modes

/** `until`: it may be a member for it. */
interface Asked {
  name: string
  at: number
  until: number
}

/** Someone who joins rooms from many tabs. `asked`: for which names, by room. */
interface Person {
  user: string | undefined
  claim: string | undefined
  asked: Map<string, Asked[]>
  idIn: (room: string) => string
}

function createPerson(number: number): Person {
  const user = number % 2 === 0 ? `user${number}` : undefined
  const claim = user === undefined ? `claim-of-somebody-000${number}` : undefined
  const identity = user === undefined ? `claim ${claim}` : `user ${user}`
  const idIn = (room: string) => createHash('sha256').update(`${room} ${identity}`).digest('base64url').slice(0, 12)
  return { user, claim, asked: new Map(ROOMS.map(room => [room, []])), idIn }
}

/** The time for which others may not see a person leave a room: from when it was told that it joined, until `to`. */
interface Presence {
  id: string
  name: string
  from: number
  to: number
  /** Whether its connection broke: then the next tab of the person may take its place. */
  isBroken: boolean
}

async function setUp(seed: number, mode: Mode) {
  const { integer, pick } = createRandom(seed)
  const network = createMemoryNetwork()
  const namespaces = withReserved({ get: (name: string) => rules[name] as JournalNamespace, names: Object.keys(rules) })
  const log = createMemoryLog({ ...network.world, bytesMax: 2 ** 30 })
  const journalNames = mode === 'everything' ? ['n1', 'n2'] : ['n1']
  const amiss: string[] = []
  const presences: Presence[] = []
  const journals = new Map<string, { process: Process; levels: Map<string, () => unknown>; heard: string[] }>()

  async function startJournal(name: string) {
    const process = createProcess(network)
    const { world, run } = process
    const heard: string[] = []
    const levels = new Map<string, () => unknown>()
    const hub = createHub({
      ...world,
      codec: roomsCodec,
      bind: from =>
        network.bindOf(name)({
          request: parts =>
            run(() => {
              heard.push(parts[0].toString())
              from.request(parts)
            }),
          beat: (part, routingId) => run(() => from.beat(part, routingId)),
        }),
      log: silent,
    })
    const metrics = { ...noMetrics, read: (level: string, _: string, value: any) => void levels.set(level, value) }
    const journal = createJournal({ ...world, namespaces, hub, log, metrics: metrics as any, report: silent })
    await journal.start()
    journals.set(name, { process, levels, heard })
  }

  async function startGateway(number: number) {
    const process = createProcess(network)
    const cut = new Set<string>()
    const levels = new Map<string, () => unknown>()
    const test = createTestGateway({
      world: process.world,
      rooms: rules,
      settings: { publishMs: 3_000 },
      metrics: { ...noMetrics, read: (level, _, value) => void levels.set(level, value as () => unknown) },
      journal: {
        backbone: (events: any) =>
          createRoomsBackbone({
            ...process.world,
            nodeSource: { start: async found => found(journalNames), stop() {} },
            dialOf: name => message => {
              const sockets = network.dialOf(name)(parts => process.run(() => cut.has(name) || message(parts)))
              return {
                ...sockets,
                request: async parts => cut.has(name) || sockets.request(parts),
                beat: part => cut.has(name) || sockets.beat(part),
              }
            },
            log: silent,
            events,
          }),
      } as any,
    })
    const starting = test.gateway.start()
    await network.pass(4_000)
    await starting
    return { ...test, process, cut, levels, number }
  }

  for (const name of journalNames) await startJournal(name)
  const gateways = []
  for (let number = 0; number < GATEWAYS; number++) gateways.push(await startGateway(number))
  const system = {
    ...network,
    persons: Array.from({ length: 4 }, (_, number) => createPerson(number)),
    lagMs: modes[mode].lagMs,
    integer,
    pick,
    amiss,
    presences,
    journals,
    journalNames,
    gateways,
    startJournal,
    /** In place of one that is dead. */
    async replace(number: number) {
      gateways[number] = await startGateway(number)
    },
  }
  return system
}

type System = Awaited<ReturnType<typeof setUp>>
type Gateway = System['gateways'][number]

/** A connection of a person, who joins rooms, or is told of members, or both. */
async function openTab(system: System, person: Person, gateway: Gateway) {
  const { now, amiss, presences, lagMs } = system
  const { user, claim, idIn } = person
  const verified = user === undefined ? undefined : ({ user, rights: { grants, user }, expiresAtMs: 1e15 } as any)
  const client = await gateway.connect('', '', { peer: { address: '127.0.0.1', isNamed: false }, verified })
  /** The rooms that it was told it has joined. */
  const joined = new Map<string, { presence: Presence }>()
  const asked = new Map<number, Asked & { room: string }>()
  const views = new Map<string, { rev: number; count: number; members: Map<string, any> | undefined } | undefined>()
  let requests = 0
  let isOpen = true
  let stuckAt = 0

  const send = (message: object) => gateway.process.run(() => client.send(message))

  function end(room: string, graceMs: number) {
    for (const ask of asked.values()) if (ask.room === room) ask.until = Math.min(ask.until, now() + graceMs)
    const standing = joined.get(room)
    joined.delete(room)
    if (!standing) return
    standing.presence.to = now() + graceMs
    standing.presence.isBroken = graceMs > 0
  }

  /** A tab of the same person may come: it takes the place of one whose connection broke. */
  function takePlace(room: string) {
    for (const each of presences) if (each.id === idIn(room) && each.isBroken) each.to = Math.min(each.to, now())
  }

  function join(room: string, name: string) {
    const id = ++requests
    const ask = { room, name, at: now(), until: Number.POSITIVE_INFINITY }
    asked.set(id, ask)
    person.asked.get(room)?.push(ask)
    takePlace(room)
    send({ type: 'join', id, key: room, name, claim })
  }

  function hear(frame: any) {
    const { type, key, id } = frame
    const say = (what: string) => amiss.push(`at ${now()} ${what}: ${JSON.stringify(frame)}`)
    if (type === 'joined') {
      const ask = asked.get(id)
      if (ask?.room !== key) say('joined, not asked')
      if (ask && ask.until < Number.POSITIVE_INFINITY) return // it has just left
      const standing = joined.get(key)
      if (standing) standing.presence.name = frame.name
      else {
        const presence = { id: idIn(key), name: frame.name, from: now(), to: Number.POSITIVE_INFINITY, isBroken: false }
        presences.push(presence)
        joined.set(key, { presence })
      }
    } else if (type === 'error') {
      if (id === undefined && frame.code === 'name_taken') {
        if (lagMs < Number.POSITIVE_INFINITY) say('lost its name')
        if (!joined.has(key)) say('lost what it had not')
        end(key, 0)
      } else if (!['name_taken', 'journal_unavailable', 'too_many_waiting', 'bad_message'].includes(frame.code))
        say('an error')
      const ask = asked.get(id)
      if (!ask) return
      // Nobody knows of one that was not answered in time.
      ask.until = Math.min(ask.until, frame.code === 'name_taken' ? now() : now() + 10_000)
      if (frame.code === 'name_taken') hearTaken(ask, say)
    } else if (type === 'members' || type === 'presence') hearMembers(frame, say)
  }

  /** A name is somebody else's, and not one that the person itself has. */
  function hearTaken({ room, name, at }: Asked & { room: string }, say: (what: string) => void) {
    if (lagMs === Number.POSITIVE_INFINITY) return
    const own = presences.find(
      each => each.id === idIn(room) && each.name === name && each.from < at && each.to > now(),
    )
    const hasOther = person.asked.get(room)?.some(ask => ask.name !== name && own && ask.at > own.from - lagMs)
    if (own && !hasOther) say(`its own name, ${JSON.stringify(own)}`)
    const mayHave = (other: Person) => {
      const asks = other.asked.get(room) ?? []
      // A member goes on under the name that came last, whatever becomes of that tab.
      return asks.some(ask => ask.name === name) && asks.some(({ until }) => until > at - lagMs)
    }
    if (!system.persons.some(other => other !== person && mayHave(other))) say('taken by nobody')
  }

  function hearMembers({ type, key, rev, count, members, joined: came, left }: any, say: (what: string) => void) {
    const view = views.get(key)
    if (!views.has(key)) return // it has just unsubscribed
    const before = view?.members
    let after: Map<string, any> | undefined
    if (type === 'members') after = members && new Map(members.map((member: any) => [member.id, member]))
    else {
      if (view?.rev !== rev - 1) say(`a hole after ${view?.rev}`)
      after = came && new Map(before)
      for (const { id } of left ?? []) if (!after?.delete(id)) say(`${id} left who was not there`)
      for (const member of came ?? []) {
        if (JSON.stringify(after?.get(member.id)) === JSON.stringify(member)) say(`${member.id} came who was there`)
        after?.set(member.id, member)
      }
    }
    if (after && after.size !== count) say('miscounted')
    if (after && key.startsWith('unique') && new Set([...after.values()].map(({ name }) => name)).size < after.size)
      say('a name twice')
    for (const id of before?.keys() ?? []) {
      if (!after || after.has(id)) continue
      const why = presences.find(each => each.id === id && each.from < now() - lagMs && each.to > now())
      if (why) say(`${id} was seen to leave, who is there ${JSON.stringify(why)}`)
    }
    views.set(key, { rev, count, members: after })
  }

  return {
    person,
    gateway,
    joined,
    views,
    join,
    read() {
      if (gateway.process.isDead || !isOpen) return
      client.connection.emit('pong')
      if (client.connection.closed) amiss.push(`closed: ${client.connection.closed.reason}`)
      for (const frame of client.connection.read()) if (typeof frame === 'object') hear(frame)
    },
    leave(room: string) {
      end(room, 0)
      send({ type: 'leave', id: ++requests, key: room })
    },
    watch(room: string) {
      views.set(room, undefined)
      send({ type: 'subscribe', id: ++requests, keys: [{ key: room, presence: true }] })
    },
    unwatch(room: string) {
      views.delete(room)
      send({ type: 'unsubscribe', id: ++requests, keys: [room] })
    },
    /** It reads nothing for a while. */
    stick() {
      client.connection.stuck = true
      stuckAt = now()
    },
    /** Long before the gateway gives it up. */
    unstick(afterMs: number) {
      if (client.connection.stuck && now() - stuckAt >= afterMs) client.connection.drain()
    },
    /** @param code 1000: it leaves; 1006: its connection broke */
    close(code: 1000 | 1006) {
      isOpen = false
      for (const room of ROOMS) end(room, code === 1006 ? 10_000 : 0)
      views.clear()
      gateway.process.run(() => client.connection.emit('close', code, Buffer.alloc(0)))
    },
    /** Its gateway died. */
    lose() {
      isOpen = false
      for (const room of ROOMS) end(room, 10_000)
      views.clear()
    },
    get isOpen() {
      return isOpen
    },
  }
}

type Tab = Awaited<ReturnType<typeof openTab>>

const seeds: Record<Mode, number[]> = {
  nothing: [1],
  stalls: [2, 3],
  losses: [0],
  deaths: [1],
  everything: [1, 2],
}
const cases = Object.entries(seeds).flatMap(([mode, each]) => each.map(seed => [mode as Mode, seed] as const))

test.each(cases)(
  'members, and what goes wrong is %s, seed %i',
  async (mode, seed) => {
    const system = await setUp(seed, mode)
    const { integer, pick, settle, chance, amiss, journals, journalNames, gateways, startJournal, now } = system
    let tabs: Tab[] = []
    let lossShare = 0
    chance.loses = () => integer(1_000) < lossShare

    /** Processes that stand still, until then. */
    let standing: { process: Process; until: number }[] = []
    const pass = async (ms: number) => {
      const end = now() + ms
      for (const { process, until } of standing) {
        if (until > end) return system.pass(end - now())
        await system.pass(until - now())
        process.goOn(integer(2) === 0)
        standing = []
      }
      await system.pass(end - now())
    }

    const openAt = async (person: Person, free = gateways.filter(({ process }) => process.runs)) => {
      if (free.length === 0 || tabs.length > 12) return undefined
      const tab = await openTab(system, person, pick(free))
      tabs.push(tab)
      return tab
    }
    /** One for each gateway, in all rooms. */
    const watchers: Tab[] = []
    const watchAt = async (number: number) => {
      watchers[number] = await openTab(system, createPerson(8), gateways[number])
      for (const room of ROOMS) watchers[number].watch(room)
    }
    for (let number = 0; number < GATEWAYS; number++) await watchAt(number)
    const withJoined = () => tabs.filter(({ joined }) => joined.size > 0)
    const acts: (() => unknown)[] = [
      ...Array.from(
        { length: 3 },
        () => async () => (await openAt(pick(system.persons)))?.join(pick(ROOMS), pick(NAMES)),
      ),
      ...Array.from({ length: 5 }, () => () => pick(tabs)?.join(pick(ROOMS), pick(NAMES))),
      () => pick(withJoined())?.leave(pick(ROOMS)),
      () => pick(tabs)?.watch(pick(ROOMS)),
      () => pick(tabs)?.unwatch(pick(ROOMS)),
      () => pick([...tabs, ...watchers]).stick(),
      () => pick(tabs)?.close(1000),
      () => pick(tabs)?.close(1006),
      ...Array.from({ length: 3 }, () => async () => {
        const tab = pick(withJoined())
        if (!tab) return
        const held = [...tab.joined].map(([room, { presence }]) => ({ room, name: presence.name }))
        tab.close(1006)
        await pass(pick([0, 0.25, 300, 5_000, 9_000.25, 9_600]))
        const again = await openAt(tab.person)
        for (const { room, name } of held) again?.join(room, integer(4) === 0 ? pick(NAMES) : name)
      }),
    ]
    const stall = (process: Process) => {
      if (standing.length > 0) return
      process.stand()
      standing.push({ process, until: now() + pick([0.25, 40, 480, 510.5, 900, 2_500, 5_000]) })
    }
    const kill = async () => {
      const number = integer(GATEWAYS)
      gateways[number].process.die()
      watchers[number].lose()
      const lost = tabs.filter(({ gateway }) => gateway === gateways[number])
      tabs = tabs.filter(tab => !lost.includes(tab))
      for (const tab of lost) {
        const rooms = [...tab.joined.keys()]
        tab.lose()
        const again = integer(2) === 0 ? await openAt(tab.person) : undefined
        for (const room of rooms) again?.join(room, pick(NAMES))
      }
      await system.replace(number)
      await watchAt(number)
    }
    const restart = async () => {
      const name = pick(journalNames)
      journals.get(name)?.process.die()
      await pass(pick([0.25, 500, 3_000, 9_000]))
      await startJournal(name)
    }
    const faults: Record<Mode, (() => unknown)[]> = {
      nothing: [],
      stalls: [() => stall(pick([...journals.values()]).process), () => stall(pick(gateways).process)],
      losses: [() => (lossShare = pick([0, 2, 20]))],
      deaths: [kill],
      everything: [],
    }
    faults.everything = [
      ...faults.stalls,
      () => (lossShare = pick([0, 0, 2, 60])),
      kill,
      restart,
      () => pick(gateways).cut.add(pick(journalNames)),
      () => pick(gateways).cut.clear(),
      () => pick(gateways).cut.clear(),
    ]

    for (let step = 0; step < 300 && amiss.length === 0; step++) {
      const isFault = faults[mode].length > 0 && integer(12) === 0
      await pick(isFault ? faults[mode] : acts)()
      tabs = tabs.filter(({ isOpen }) => isOpen)
      await pick([settle, () => pass(pick([0, 0.25, 0.5, 1, 19.75, 100, 300]))])()
      if (integer(30) === 0) await pass(pick([1_000, 4_000.5, 12_000]))
      for (const tab of [...watchers, ...tabs]) {
        tab.unstick(pick([500, 4_000]))
        if (integer(3) > 0) tab.read()
      }
    }
    lossShare = 0
    for (const { cut, process } of gateways) {
      cut.clear()
      process.goOn(true)
    }
    for (const { process } of journals.values()) process.goOn(true)
    for (let second = 0; second < 60 && amiss.length === 0; second++) {
      await pass(1_000)
      for (const tab of [...watchers, ...tabs]) {
        tab.unstick(0)
        tab.read()
      }
    }

    for (const room of ROOMS) {
      const there = new Map<string, number>()
      for (const { joined, person } of tabs)
        if (joined.has(room)) there.set(person.idIn(room), (there.get(person.idIn(room)) ?? 0) + 1)
      for (const { views } of [...watchers, ...tabs]) {
        const view = views.get(room)
        if (!views.has(room)) continue
        if (view?.count !== there.size) amiss.push(`${room}: ${view?.count} of ${there.size} members`)
        for (const { id, tabs: seen } of view?.members?.values() ?? [])
          if (seen !== there.get(id)) amiss.push(`${room}: ${id} has ${there.get(id)} tabs, not ${seen}`)
      }
    }
    expect(amiss.slice(0, 5)).toEqual([])

    for (const tab of [...watchers, ...tabs]) tab.close(pick([1000, 1006]))
    await pass(30_000)
    const levelsOf = (levels: Map<string, () => unknown>, names: string[]) => names.map(name => levels.get(name)?.())
    for (const { levels } of journals.values()) expect(levelsOf(levels, ['members', 'member_rooms'])).toEqual([0, 0])
    for (const { levels, process } of gateways)
      if (!process.isDead)
        expect(levelsOf(levels, ['joins', 'watched_member_rooms', 'watched_rooms', 'subscriptions'])).toEqual([
          0, 0, 0, 0,
        ])
    // Nor has a gateway anything left to say.
    for (const name of journalNames) {
      journals.get(name)?.process.die()
      await startJournal(name)
    }
    await pass(15_000)
    for (const { heard } of journals.values())
      expect(heard.filter(each => each.includes(' join ') || each.includes(' members'))).toEqual([])
    for (const { gateway, process } of gateways) if (!process.isDead) await gateway.stop()
  },
  120_000,
)
