// Gateways that join users to rooms of a journal, on the in-process network. Everybody is told of every member,
// whatever the network swallows, and a user who comes back is never seen to leave.
import { createHub, createRoomsBackbone, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { errorCodes, USER_CHARACTERS_MAX } from '@keycast/protocol'
import { realWorld } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import { randomNumbers } from '../../../test/support/random.js'
import { createJournal } from '../journal.ts'
import { createMemoryLog } from '../log/memory/memory.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

const DEADLINE = { deadlineMs: 5_000, onLost() {} }

async function setup({ members = 'named', names = 'unique' }: { members?: string; names?: string } = {}) {
  const network = createMemoryNetwork()
  const room = {
    history: { messages: 9, ageMs: 1e9, bytes: 1e9 },
    bytesMax: 1_000,
    members,
    names,
  } as any
  const namespaces = { get: (name: string) => (name === 'room' ? room : undefined), names: ['room'] }

  async function startJournal() {
    const hub = createHub({ codec: roomsCodec, bind: network.bindOf('n1'), log: silent, ...network })
    const { registry, ...makers } = createMetrics({ service: 'journal' })
    const log = createMemoryLog({ ...realWorld, bytesMax: 1e9 })
    const journal = createJournal({
      namespaces,
      hub,
      log,
      metrics: makers as any,
      report: silent,
      ...network,
    })
    await journal.start()
    return { journal, hub, registry }
  }

  async function startGateway() {
    let isDead = false
    /** The gateway's messages about each room, and its own state after them. */
    const told: any[] = []
    const views = new Map<string, { rev: number; count: number; members: Map<string, any> | undefined }>()
    const backbone = createRoomsBackbone({
      ...network,
      // A process that was killed sends nothing more and reads nothing.
      dialOf: name => message => {
        const sockets = network.dialOf(name)(parts => isDead || message(parts))
        return { ...sockets, beat: part => isDead || sockets.beat(part) }
      },
      nodeSource: { start: async found => found(['n1']), stop() {} },
      log: silent,
      events: {
        onHead() {},
        onMessages() {},
        onGap() {},
        onFailed() {},
        onMembers(room, said) {
          told.push({ type: 'members', ...said })
          const list = said.members?.map(member => [member.id, member] as const)
          views.set(room, { rev: said.rev, count: said.count, members: list && new Map(list) })
        },
        onPresence(room, said) {
          told.push({ type: 'presence', ...said })
          const view = views.get(room)
          if (view?.rev !== said.rev - 1) throw new Error(`a hole before ${said.rev}`)
          view.rev = said.rev
          view.count = said.count
          for (const { id } of said.left ?? []) view.members?.delete(id)
          for (const member of said.joined ?? []) view.members?.set(member.id, member)
        },
      },
    })
    await backbone.start()
    await network.settle()

    const join = (
      user: string,
      {
        room = 'room:1',
        name = user,
        claim,
        options = DEADLINE,
      }: { room?: string; name?: string; claim?: string; options?: any } = {},
    ) => backbone.join({ room, user, name, claim }, options)
    return {
      backbone,
      told,
      join,
      kill: () => {
        isDead = true
      },
      /** Names and tabs, in order. */
      names: (room = 'room:1') =>
        [...(views.get(room)?.members?.values() ?? [])].map(({ name, tabs }) => `${name} ${tabs}`).sort(),
      count: (room = 'room:1') => views.get(room)?.count,
      view: (room = 'room:1') => views.get(room),
    }
  }
  return { network, ...(await startJournal()), startJournal, startGateway, ...(await startGateway()) }
}

test('a join is answered, and everybody who watches is told within 100 ms', async () => {
  const { network, backbone, join, told, names } = await setup()
  backbone.watchMembers('room:1')
  await network.settle()
  expect(told).toEqual([{ type: 'members', rev: 0, count: 0, members: [] }])
  const { joined } = join('ann', { name: 'Zoe\u0308' })
  await network.settle()
  expect(await joined).toEqual({ name: 'Zo\u00eb', claim: undefined })
  await network.pass(140)
  expect(told.slice(1)).toMatchObject([{ type: 'presence', rev: 1, count: 1, left: [] }])
  expect(told[1].joined).toEqual([{ id: expect.any(String), user: 'ann', name: 'Zo\u00eb', tabs: 1 }])
  expect(names()).toEqual(['Zo\u00eb 1'])
})

test('one gateway sees the members of another', async () => {
  const { network, startGateway, join } = await setup()
  const other = await startGateway()
  other.backbone.watchMembers('room:1')
  join('ann')
  other.join('bob')
  await network.settle()
  await network.pass(140)
  expect(other.names()).toEqual(['ann 1', 'bob 1'])
})

test('a member who leaves is gone with the next batch', async () => {
  const { network, backbone, join, names } = await setup()
  backbone.watchMembers('room:1')
  const { tab } = join('ann')
  await network.pass(300)
  backbone.leave(tab, 'now')
  await network.settle()
  await network.pass(140)
  expect(names()).toEqual([])
})

test('a member whose connection broke is gone after 10 s, and was never gone where it comes back', async () => {
  const { network, backbone, startGateway, join, names, told } = await setup()
  const other = await startGateway()
  backbone.watchMembers('room:1')
  const [ann, bob] = [join('ann'), join('bob')]
  await network.pass(300)
  for (const { tab } of [ann, bob]) backbone.leave(tab, 'later')
  await network.pass(9_000)
  expect(names()).toEqual(['ann 1', 'bob 1'])
  const before = told.length
  other.join('bob')
  await network.pass(1_500)
  expect(names()).toEqual(['bob 1'])
  expect(told.slice(before)).toMatchObject([{ joined: [], left: [{ name: 'ann' }] }])
  await network.pass(20_000)
  expect(names()).toEqual(['bob 1'])
})

test('the members of a gateway that was killed are gone within 15 s, all at once', async () => {
  const { network, backbone, startGateway, names, told } = await setup()
  const other = await startGateway()
  backbone.watchMembers('room:1')
  for (let n = 0; n < 100; n++) other.join(`user ${n}`)
  await network.pass(500)
  expect(names()).toHaveLength(100)
  other.kill()
  const before = told.length
  await network.pass(10_000)
  expect(told).toHaveLength(before)
  await network.pass(5_000)
  expect(names()).toEqual([])
  expect(told).toHaveLength(before + 1)
})

test('the members of a gateway that was killed were never gone where they come back within 10 s', async () => {
  const { network, backbone, startGateway, names, told } = await setup()
  const [other, third] = [await startGateway(), await startGateway()]
  backbone.watchMembers('room:1')
  for (let n = 0; n < 100; n++) other.join(`user ${n}`)
  await network.pass(500)
  const before = told.length
  other.kill()
  await network.pass(9_900)
  for (let n = 0; n < 100; n++) third.join(`user ${n}`)
  await network.pass(20_000)
  expect(told).toHaveLength(before)
  expect(names()).toHaveLength(100)
})

test('one who comes back before the loss was noticed is two tabs until it is', async () => {
  const { network, backbone, startGateway, names } = await setup()
  const [other, third] = [await startGateway(), await startGateway()]
  backbone.watchMembers('room:1')
  other.join('ann')
  await network.pass(500)
  other.kill()
  third.join('ann')
  await network.pass(500)
  expect(names()).toEqual(['ann 2'])
  await network.pass(15_000)
  expect(names()).toEqual(['ann 1'])
})

test('a name is taken until its ghost is gone, but not for its owner', async () => {
  const { network, backbone, startGateway, join } = await setup()
  const other = await startGateway()
  const { tab, joined } = join('', { name: 'Ann' })
  await network.settle()
  const { claim } = (await joined) as any
  expect(claim).toMatch(/^[\w-]{22}$/)
  backbone.leave(tab, 'later')
  await network.settle()
  const taken = other.join('bob', { name: 'Ann' }).joined
  const back = other.join('', { name: 'Ann', claim }).joined
  await network.settle()
  expect(await taken).toMatchObject({ code: 'name_taken', message: errorCodes.name_taken })
  expect(await back).toEqual({ name: 'Ann', claim })
})

test.each([5, 20])(
  'while one message in %i is lost, all see the same members in the end',
  async each => {
    const { network, backbone, startGateway, join, view, names, told } = await setup()
    const random = randomNumbers(each)
    const other = await startGateway()
    for (const { watchMembers } of [backbone, other.backbone]) watchMembers('room:1')
    await network.settle()
    network.chance.loses = () => random() * each < 1
    const tabs = []
    for (let n = 0; n < 60; n++) {
      const options = { deadlineMs: 60_000, onLost() {} }
      tabs.push((n % 2 === 0 ? join : other.join)(`user ${n}`, { options }))
      await network.pass(300)
    }
    await network.pass(10_000)
    // A gateway that is cut off for longer than ghosts are kept loses its members for a while.
    if (each > 5) expect(told.flatMap(({ left = [] }) => left)).toEqual([])
    for (const { tab } of tabs.slice(0, 20)) {
      backbone.leave(tab, 'now')
      other.backbone.leave(tab, 'now')
      await network.pass(300)
    }
    network.chance.loses = () => false
    await network.pass(20_000)
    expect(names()).toHaveLength(40)
    expect(other.view()).toEqual(view())
  },
  30_000,
)

test('when the journal starts anew nobody is seen to leave, and who left meanwhile is gone', async () => {
  const { network, backbone, startGateway, startJournal, journal, join, names, told } = await setup()
  const other = await startGateway()
  backbone.watchMembers('room:1')
  const { tab } = join('ann')
  join('bob')
  other.join('cal')
  await network.pass(500)
  await journal.stop()
  await network.pass(10_000)
  backbone.leave(tab, 'now')
  expect(names()).toEqual(['ann 1', 'bob 1', 'cal 1'])
  const before = told.length
  await startJournal()
  await network.pass(10_000)
  expect(names()).toEqual(['bob 1', 'cal 1'])
  expect(told.slice(before)).toMatchObject([{ type: 'members', count: 2 }])
})

test('a journal that stood still waits for those who could not come back meanwhile', async () => {
  const { network, backbone, startGateway, join, names } = await setup()
  const other = await startGateway()
  other.backbone.watchMembers('room:1')
  const { tab } = join('ann')
  await network.pass(500)
  backbone.leave(tab, 'later')
  await network.pass(2_000)
  await network.freeze(60_000)
  await network.pass(5_000)
  expect(other.names()).toEqual(['ann 1'])
  expect(names()).toEqual([])
  await network.pass(5_000)
  expect(other.names()).toEqual([])
})

test('1,000 members who join within a second cost each gateway at most 12 changes, and a stream of counts', async () => {
  const { network, backbone, join, told, count } = await setup()
  backbone.watchMembers('room:1')
  await network.settle()
  for (let n = 0; n < 1_000; n++) {
    join(`user ${n}`)
    if (n % 20 === 19) await network.pass(20)
  }
  await network.pass(2_000)
  expect(count()).toBe(1_000)
  expect(told.length).toBeLessThanOrEqual(12)
  expect(told.at(-1)).toEqual({ type: 'presence', rev: expect.any(Number), count: 1_000 })
})

test('a large room is told more seldom, and the first change after a rest as soon as any', async () => {
  const { network, backbone, join, told } = await setup()
  backbone.watchMembers('room:1')
  for (let n = 0; n < 2_000; n++) join(`user ${n}`)
  await network.pass(5_000)
  let before = told.length
  join('first')
  await network.settle()
  await network.pass(140)
  expect(told).toHaveLength(before + 1)
  before = told.length
  for (let n = 0; n < 30; n++) {
    join(`late ${n}`)
    await network.pass(100)
  }
  expect(told.length - before).toBeLessThanOrEqual(4)
})

test('the members are told on request, also of a room nobody watches', async () => {
  const { network, backbone, join } = await setup()
  join('ann')
  await network.pass(300)
  const reads = [backbone.membersOf('room:1', DEADLINE), backbone.membersOf('room:1', DEADLINE)]
  const other = backbone.membersOf('room:2', DEADLINE)
  const none = backbone.membersOf('else:2', DEADLINE)
  await network.settle()
  for (const read of reads) expect(await read).toMatchObject({ count: 1, members: [{ name: 'ann' }] })
  expect(await other).toEqual({ count: 0, members: [] })
  expect(await none).toMatchObject({ code: 'bad_message' })
})

test('a room that is watched is told on request as well, and its changes go on', async () => {
  const { network, backbone, join, names, told } = await setup()
  backbone.watchMembers('room:1')
  await network.pass(300)
  join('ann')
  const read = backbone.membersOf('room:1', DEADLINE)
  await network.pass(300)
  expect(await read).toMatchObject({ count: 0 })
  expect(names()).toEqual(['ann 1'])
  expect(told).toHaveLength(2)
})

test('while the journal is away a join ends at its deadline, and is not done later', async () => {
  const { network, backbone, startJournal, journal, join } = await setup()
  await journal.stop()
  await network.settle()
  const { joined } = join('ann')
  const read = backbone.membersOf('room:1', DEADLINE)
  await network.pass(6_000)
  expect(await joined).toMatchObject({ code: 'journal_unavailable', retryAfterMs: 1_000 })
  expect(await read).toMatchObject({ code: 'journal_unavailable' })
  const { hub } = await startJournal()
  await network.pass(6_000)
  expect(hub.stats().links).toBe(1)
  const later = backbone.membersOf('room:1', DEADLINE)
  await network.settle()
  expect(await later).toMatchObject({ count: 0 })
})

test('a journal that takes a join too late shows no member who was refused, nor keeps the name', async () => {
  const { network, backbone, join, names } = await setup()
  backbone.watchMembers('room:1')
  await network.settle()
  network.readMs.set('n1', 1_500)
  const { joined } = join('ann', { options: { deadlineMs: 1_000, onLost() {} } })
  await network.pass(1_400)
  expect(await joined).toMatchObject({ code: 'journal_unavailable' })
  await network.pass(2_000)
  network.readMs.clear()
  expect(names()).toEqual([])
  const other = join('bob', { name: 'ann' }).joined
  await network.pass(2_000)
  expect(await other).toMatchObject({ name: 'ann' })
})

test.each([
  ['bad_message', { user: 'ann', name: '' }],
  ['bad_message', { user: 'ann', name: 'An\u0000n' }],
  ['bad_message', { user: 'ann', name: '\u202Ennа' }],
  ['bad_message', { user: 'ann', name: 'a'.repeat(65) }],
  ['bad_message', { user: 'a'.repeat(USER_CHARACTERS_MAX + 1), name: 'ann' }],
  ['bad_message', { user: 'ann\n', name: 'ann' }],
  ['bad_message', { user: '', name: 'ann', claim: 'of my own' }],
  ['unknown_namespace', { user: 'ann', name: 'ann', room: 'else:1' }],
])('%s answers %j', async (code, { user, ...options }) => {
  const { network, join } = await setup()
  const { joined } = join(user, options)
  await network.settle()
  expect(await joined).toMatchObject({ code })
})

test('every user that a token can name may join', async () => {
  const { network, join } = await setup()
  const { joined } = join('a'.repeat(USER_CHARACTERS_MAX), { name: 'Ann' })
  await network.settle()
  expect(await joined).toMatchObject({ name: 'Ann' })
})

test('a namespace without members refuses joins, and one that counts tells a number', async () => {
  const none = await setup({ members: 'none' })
  const { joined } = none.join('ann')
  await none.network.settle()
  expect(await joined).toMatchObject({ code: 'bad_message', message: 'the namespace has no members' })

  const counted = await setup({ members: 'counted', names: 'any' })
  counted.backbone.watchMembers('room:1')
  counted.join('ann', { name: 'Ann' })
  counted.join('bob', { name: 'Ann' })
  await counted.network.pass(300)
  expect(counted.told.at(-1)).toEqual({ type: 'presence', rev: 1, count: 2 })
})

test('10,000 joins of strangers are taken and forgotten again', async () => {
  const { network, backbone, join, registry, told } = await setup()
  const levels = async () =>
    [...(await registry.metrics()).matchAll(/^keycast_journal_member(?:s|_rooms) (\d+)$/gm)].map(([, n]) => Number(n))
  backbone.watchMembers('room:1')
  const tabs = Array.from({ length: 10_000 }, (_, n) => join('', { name: `guest ${n}` }).tab)
  await network.pass(1_500)
  expect(await levels()).toEqual([10_000, 1])
  for (const tab of tabs) backbone.leave(tab, 'now')
  backbone.unwatchMembers('room:1')
  await network.pass(1_500)
  expect(await levels()).toEqual([0, 0])
  expect(told.length).toBeLessThan(20)
})
