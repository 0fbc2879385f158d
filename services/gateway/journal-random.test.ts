// Journals that share a log, two gateways, a backend that is told, and clients in one process: rooms with members whose messages
// are published, deleted, purged and trimmed, values that two backends hand over, tokens that are revoked. Meanwhile
// connections break, the log fails, messages get lost, and processes stand still, die, and hand over. All that a client is sent
// follows what it was sent before; what was deleted or revoked is gone; in the end everybody has what the log has.
import { furtherSeeds, timeoutMs } from '../../test/support/random-faults.ts'
import { createCaller, createClient, createWaiter, type Kind, type View } from './journal-clients.fixture.ts'
import {
  GATEWAYS,
  type Gateway,
  HAND_OVER_MS,
  KEYS,
  type Levels,
  type Mode,
  modes,
  type Person,
  PUBLISH_MS,
  type Revocation,
  ROOMS,
  setUp,
} from './journal-system.fixture.ts'
import type { Process } from './process.fixture.ts'
import type { KeptMessage } from './shared-log.fixture.ts'

/** A session that is gone is a member for 10 s more, and others hear of that within some seconds. */
const CALM_SECONDS = 30

const seeds: [Mode, number][] = [
  ['nothing', 1],
  ['network', 315],
  ['everything', 2],
]

test.each(seeds)('all that a journal keeps, and what goes wrong is %s, seed %i', live)

test(
  'all that a journal keeps, for as long as is asked',
  async () => {
    for (const seed of furtherSeeds()) for (const mode of Object.keys(modes) as Mode[]) await live(mode, seed)
  },
  timeoutMs,
)

async function live(mode: Mode, seed: number) {
  const system = { ...(await setUp(seed, mode)), ranks: new Map<string, number>() }
  const { integer, pick, settle, chance, log, amiss, wrong, names, journals, gateways, backend, now } = system
  const { revocations, rooms, barred, published, world } = system
  const faulty = (fault: string) => (modes[mode].faults as string[]).includes(fault)
  const persons: Person[] = ['ann', 'ann', 'bob', '', 'cal'].map((sub, at) => ({
    name: sub || `guest${at}`,
    sub: sub || undefined,
    token: undefined,
  }))
  persons[1] = persons[0]
  const kinds: Kind[] = ['json', 'stream', 'bytes', 'json', 'stream']
  const clients = persons.map((person, number) => createClient(system, number, person, kinds[number]))
  const waiters = KEYS.map(key => createWaiter(system, key))
  const callers = KEYS.flatMap(key => ['a', 'b'].map(name => createCaller(system, name, key)))
  let lossShare = 0
  chance.loses = () => integer(1_000) < lossShare
  for (const client of clients) await client.connect()

  let standing: { process: Process; until: number } | undefined
  const pass = async (ms: number) => {
    const end = now() + ms
    if (standing && standing.until <= end) {
      await system.pass(Math.max(0, standing.until - now()))
      standing.process.goOn(integer(2) === 0)
      standing = undefined
    }
    await system.pass(end - now())
  }
  /** Calls a gateway as an operator does, until that says that it is done. */
  const calling = new Set<Promise<void>>()
  function call(run: (gateway: Gateway) => Promise<boolean>) {
    const one = (async () => {
      for (;;) {
        const gateway = pick(gateways)
        const done = await new Promise<boolean>(resolve => {
          system.after(12_000, () => resolve(false))
          gateway.process.run(() => void run(gateway).then(resolve))
        })
        if (done) return
        await new Promise<void>(resolve => system.after(1_000, resolve))
      }
    })()
    calling.add(one)
    void one.then(() => calling.delete(one))
  }
  const isHeld = ({ room, seq }: KeptMessage, held: { seq: number; deleted?: true; deletes?: unknown }[]) =>
    held.some(each => each.seq === seq && !each.deleted && !each.deletes && room)

  const removing = new Set<string>()
  function remove(which: any, isMeant: (kept: KeptMessage) => boolean) {
    removing.add(which.user)
    const meant = [...log.messages.values()].filter(isMeant)
    call(async ({ gateway, process }) => {
      const outcome: any = await gateway.rooms.deleteMessages(which, { deadlineMs: 5_000 })
      if (process.isDead || outcome.messages === undefined) return false
      removing.delete(which.user)
      for (const kept of meant) {
        if (kept.data !== 'null') backend.gone.set(kept.data, now())
        if (isHeld(kept, await log.held(kept.room))) wrong(`${JSON.stringify(which)} left ${JSON.stringify(kept)}`)
      }
      return true
    })
  }

  function revoke() {
    const person = pick(persons)
    if (!person.token || !person.sub) return
    const before = world.wallNow() / 1_000 + pick([0, 0.5, 3])
    const revocation: Revocation = integer(2) === 0 ? { jti: person.token.jti } : { sub: person.sub, before }
    revocations.push(revocation)
    call(async gateway => {
      const own = clients.filter(client => client.gateway === gateway && client.isOf(revocation))
      for (const client of own) client.read()
      gateway.gateway.revoke(revocation)
      gateway.revoked.push(revocation)
      for (const client of own) {
        if (client.closedWith() === undefined) wrong(`${client.number} is not closed, and revoked`)
        client.read()
        client.revoke()
      }
      return (await gateway.gateway.shareRevocation?.(revocation)) === undefined
    })
  }

  async function endJournal(isGraceful: boolean) {
    const name = pick(names)
    const { process, journal } = journals.get(name) as NonNullable<ReturnType<typeof journals.get>>
    if (isGraceful && process.runs) {
      await system.over(journal.stop())
    }
    process.die()
    await pass(pick([0.25, 500, 3_000]))
    await system.startJournal(name)
  }

  async function endGateway() {
    const number = integer(GATEWAYS)
    const { process } = gateways[number]
    process.die()
    for (const client of clients) if (client.gateway?.process === process) client.lose()
    for (const caller of callers) caller.giveUp()
    await system.replace(number)
  }

  function stall() {
    const process = pick([...gateways, ...journals.values()]).process
    if (standing || !process.runs) return
    process.stand()
    standing = { process, until: now() + pick([0.25, 40, 480, 900, 2_500, 5_000]) }
  }

  const faults: [string, () => unknown][] = [
    ['log', () => (log.failing.reads = pick([0, 0, 3, 30]))],
    ['log', () => (log.failing.appends = pick([0, 0, 3, 30]))],
    ['log', () => (log.failing.hints = pick([0, 10, 100]))],
    ['log', () => (backend.state.fails = pick([0, 20, 100]))],
    ['losses', () => (lossShare = pick([0, 0, 2, 50]))],
    ['routes', () => pick(gateways).list([pick(names)])],
    ['routes', () => pick(gateways).list(names)],
    ['stalls', stall],
    ['stalls', stall],
    ['deaths', () => endJournal(true)],
    ['deaths', () => endJournal(false)],
    ['deaths', endGateway],
  ]
  const possible = faults.filter(([fault]) => faulty(fault)).map(([, run]) => run)

  const acts: (() => unknown)[] = [
    ...Array.from({ length: 24 }, () => () => pick(clients).act()),
    ...Array.from({ length: 6 }, () => () => pick(callers).act()),
    async () => {
      const room = pick(ROOMS)
      const { seq } = await log.memory.head(room)
      const seqs = [Math.max(1, seq - integer(3))]
      remove({ room, seqs }, kept => kept.room === room && seqs.includes(kept.seq))
    },
    () => {
      const room = pick(ROOMS)
      remove({ room }, kept => kept.room === room)
    },
    () => {
      const user = pick(['ann', 'bob'])
      // A second call waits for the same.
      if (!removing.has(user)) remove({ user }, ({ from }) => from === user)
    },
    revoke,
    () => {
      const text = JSON.stringify(`backend ${integer(1e9)}`)
      published.set(text, { firstAt: now(), lastAt: now() })
      const { process, gateway } = pick(gateways)
      process.run(
        () => void gateway.publishes.fromBackend({ key: pick(ROOMS), from: pick(['ann', 'bob']), data: text }),
      )
    },
    () => {
      if (integer(4) > 0) return
      rooms[pick(Object.keys(rooms))].history = system.history()
      for (const { process, journal } of journals.values()) process.run(() => journal.reconfigure())
    },
  ]

  async function look(share: number) {
    for (const client of clients) {
      if (integer(100) < share) client.read()
      if (client.closedWith() === undefined) continue
      client.read()
      client.disconnect(pick([client.closedWith() as number, 1006]))
      client.joined.clear()
    }
    for (const waiter of waiters) waiter.act()
  }

  for (let step = 0; step < 250 && amiss.length === 0; step++) {
    if (possible.length > 0 && integer(14) === 0) await pick(possible)()
    else await pick(acts)()
    await pick([settle, () => pass(pick([0, 0.25, 0.5, 1, 20, 100, 300]))])()
    if (integer(40) === 0) await pass(pick([1_000, 5_000, 12_000]))
    await look(60)
  }

  // From now on all is well.
  lossShare = 0
  Object.assign(log.failing, { reads: 0, appends: 0, hints: 0 })
  backend.state.fails = 0
  standing?.process.goOn(true)
  standing = undefined
  for (const { list } of gateways) list(names)
  for (let half = 0; half < 2 * CALM_SECONDS && amiss.length === 0; half++) {
    await pass(500)
    for (const client of clients) {
      client.unstick()
      if (!client.gateway && half < CALM_SECONDS) await client.connect()
    }
    await look(100)
  }
  expect([mode, seed, amiss]).toEqual([mode, seed, []])
  expect(calling.size).toBe(0)

  for (const client of clients)
    if (revocations.some(client.isOf)) wrong(`${client.number} goes on with a token that was revoked`)
  await checkMessages()
  checkValues()
  checkMembers()
  expect([mode, seed, amiss]).toEqual([mode, seed, []])

  for (const client of clients) client.disconnect(pick([1000, 1006]))
  // Requests that wait do so for 20 s, and their keys are watched for 5 s more.
  await pass(27_000)
  const levelsOf = (levels: Levels, wanted: string[]) => wanted.map(name => [name, levels.get(name)?.()])
  for (const { levels } of journals.values())
    expect(levelsOf(levels, ['members', 'member_rooms'])).toEqual([
      ['members', 0],
      ['member_rooms', 0],
    ])
  for (const { levels } of gateways)
    expect(levelsOf(levels, ['joins', 'watched_member_rooms', 'watched_rooms', 'subscriptions'])).toEqual([
      ['joins', 0],
      ['watched_member_rooms', 0],
      ['watched_rooms', 0],
      ['subscriptions', 0],
    ])
  for (const { gateway } of gateways) await system.over(gateway.stop())

  async function checkMessages() {
    const SLACK_MS = 3_500
    const seen = new Map<string, KeptMessage>()
    for (const kept of log.messages.values()) {
      const { data, at } = kept
      if (barred.has(data)) wrong(`kept after it was revoked: ${JSON.stringify(kept)}`)
      const said = published.get(data)
      if (!said) continue
      if (at > said.lastAt + PUBLISH_MS + SLACK_MS) wrong(`kept at ${at}, said last at ${said.lastAt}: ${data}`)
      const before = seen.get(data)
      if (before && at - before.at < 300_000) wrong(`kept twice: ${JSON.stringify([before, kept])}`)
      seen.set(data, kept)
    }
    for (const room of ROOMS) {
      const head = await log.memory.head(room)
      const held = new Map((await log.held(room)).map(each => [each.seq, each]))
      for (const { number, views, unanswered } of clients) {
        if (unanswered.size > 0) wrong(`${number} has no answer: ${JSON.stringify([...unanswered])}`)
        const view = views.get(room) as View
        if (!view.isAsked) continue
        if (view.seq !== head.seq) wrong(`${number} has ${room} up to ${view.seq}, not ${head.seq}`)
        for (const [seq] of view.texts) {
          const wasDeleted = log.messages.get(`${room} ${seq}`)?.deletedAt !== Number.POSITIVE_INFINITY
          if (wasDeleted && !view.deleted.has(seq)) wrong(`${number} was not told that ${room} ${seq} was deleted`)
        }
        for (const seq of view.deleted) {
          const of = held.get(seq)
          if (of && !of.deleted && !of.deletes) wrong(`${number} was told that ${room} ${seq} was deleted`)
        }
      }
    }
    for (const { room, seq, isTold, deletedAt } of log.messages.values())
      if (isTold && deletedAt === Number.POSITIVE_INFINITY && !backend.told.get(room)?.has(seq))
        wrong(`the backend was never told of ${room} ${seq}`)
  }

  function checkValues() {
    for (const key of KEYS) {
      const all = log.values.get(key) ?? []
      const latest = all.at(-1)
      for (const { number, shown, values, kind } of clients) {
        if (!values.has(key)) continue
        const { version } = shown.get(key) ?? {}
        if (version !== latest?.version) wrong(`${number} (${kind}) has ${key} ${version}, not ${latest?.version}`)
      }
      const waiter = waiters.find(each => each.key === key)
      const has = waiter?.held.edge === '' ? undefined : waiter?.held.order
      if (has !== (latest?.text === undefined ? undefined : latest.order))
        wrong(`a wait has ${key} ${has}, not ${latest?.order}`)
      for (const caller of callers.filter(each => each.key === key)) {
        let before = 0
        for (const { text, at } of all) {
          const number = text === undefined ? undefined : caller.numberOf(text)
          if (number === undefined) continue
          if (number < before) wrong(`${caller.name}'s ${key} ${number} was kept after ${before}`)
          before = number
          if (number === caller.last.number && at > caller.last.at + HAND_OVER_MS + 3_500)
            wrong(`${caller.name}'s ${key} ${number} was kept at ${at}, after ${caller.last.at}`)
        }
        if (caller.last.outcome === 'taken' && (latest?.at ?? 0) < caller.last.at)
          wrong(`${caller.name}'s last of ${key} was taken, and the latest is ${JSON.stringify(latest)}`)
      }
      const ranks = all.flatMap(({ rank }) => rank ?? [])
      if (ranks.some((rank, index) => rank < ranks[index - 1])) wrong(`${key} was kept as ${ranks}`)
    }
  }

  function checkMembers() {
    for (const room of ROOMS) {
      const there = new Map<string, number>()
      for (const { joined, person } of clients)
        if (joined.has(room)) there.set(person.name, (there.get(person.name) ?? 0) + 1)
      const expected = JSON.stringify([...there.values()].sort())
      for (const { number, views } of clients) {
        const view = views.get(room)
        if (!view?.isAsked || !view.hasPresence) continue
        const tabs = JSON.stringify([...(view.members?.by.values() ?? [])].map(each => each.tabs).sort())
        if (tabs !== expected) wrong(`${number} sees ${tabs} in ${room}, not ${expected}`)
      }
      const { count = 0 } = backend.members.get(room) ?? {}
      // Where gateways disagree about journals each tells of its own part, and one that died of nobody who left since.
      const isWhole = !faulty('routes') && !faulty('deaths')
      if (room.startsWith('told') && isWhole && count !== there.size)
        wrong(`the backend sees ${count} in ${room}, not ${there.size}`)
    }
  }
}
