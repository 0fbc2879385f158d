import { randomBytes } from 'node:crypto'
// A gateway's reading of a node's presence messages; services/journal tests both together.
import { membersKey } from '../../wire/members-codec.ts'
import { createPresenceBackbone } from './presence.ts'

const key = membersKey('room:1')

function setup() {
  let at = 0
  const ticks = new Set<() => void>()
  const said: any[] = []
  const seen: any[] = []
  const presence = createPresenceBackbone({
    router: {
      watch: key => void said.push(['watch', key]),
      unwatch: key => void said.push(['unwatch', key]),
      get: key => void said.push(['get', key]),
      cancelGet: key => void said.push(['cancelGet', key]),
      renewWatch: key => void said.push(['renew', key]),
      isAlive: () => true,
    },
    events: {
      onMembers: (_, { rev }) => seen.push(['members', rev]),
      onPresence: (_, { rev }) => seen.push(rev),
    },
    randomBytes,
    now: () => at,
    every(_, tick) {
      ticks.add(tick)
      return () => ticks.delete(tick)
    },
  })
  const lost: any[] = []
  return {
    presence,
    said,
    seen,
    lost,
    timers: () => ticks.size,
    pass(ms: number) {
      at += ms
      for (const tick of [...ticks]) tick()
    },
    say: (answer: any, isGot = false) => presence.onAnswer(answer, isGot),
    join: (user = 'ann') =>
      presence.join(
        { room: 'room:1', user, name: 'Ann', claim: undefined },
        { deadlineMs: 5_000, onLost: problem => lost.push(problem.code) },
      ),
  }
}

const members = (rev: number, epoch = 'E') => ({
  type: 'members',
  key,
  epoch,
  rev,
  count: 0,
  members: [],
})
const change = (rev: number, epoch = 'E') => ({
  type: 'presence',
  key,
  epoch,
  rev,
  count: 0,
  joined: [],
  left: [],
})

test('changes are passed on without a hole and none twice; where one is missing they are asked for from there', () => {
  const { presence, say, seen, said } = setup()
  presence.watchMembers('room:1')
  say(change(1))
  say(members(3))
  for (const rev of [4, 4, 3, 6, 7]) say(change(rev))
  expect(seen).toEqual([['members', 3], 4])
  expect(said).toEqual([
    ['watch', key],
    ['renew', key],
    ['renew', key],
  ])
  expect(presence.positionOf(key)).toEqual({ epoch: 'E', seq: 4 })
  for (const rev of [5, 6, 7, 6]) say(change(rev))
  expect(seen).toEqual([['members', 3], 4, 5, 6, 7])
})

test("another incarnation's changes wait for its members", () => {
  const { presence, say, seen } = setup()
  presence.watchMembers('room:1')
  say(members(3))
  say(change(4, 'F'))
  say(members(9, 'F'))
  say(change(10, 'F'))
  expect(seen).toEqual([['members', 3], ['members', 9], 10])
})

test('a room that is not watched any more is not told of', () => {
  const { presence, say, seen, said } = setup()
  presence.watchMembers('room:1')
  presence.watchMembers('room:1')
  presence.unwatchMembers('room:1')
  presence.unwatchMembers('room:1')
  say(members(3))
  expect(seen).toEqual([])
  expect(said.map(([what]) => what)).toEqual(['watch', 'unwatch'])
})

test('a join is said with who joins, and answered once', async () => {
  const { presence, join, say, lost, timers } = setup()
  const { tab, joined } = join()
  expect(presence.payloadOf(tab)).toEqual({ user: 'ann', name: 'Ann', claim: undefined, leaving: undefined })
  say({ type: 'joined', key: tab, name: 'Ann' })
  expect(await joined).toEqual({ name: 'Ann', claim: undefined })
  say({ type: 'joined', key: tab, name: 'Ann' })
  expect([lost, timers()]).toEqual([[], 0])
})

test('each anonymous join without a claim gets a secret of its own', () => {
  const { presence, join } = setup()
  const [one, other] = [join(''), join('')].map(({ tab }) => presence.payloadOf(tab)?.claim)
  expect(one).toMatch(/^[\w-]{22}$/)
  expect(other).not.toBe(one)
})

test('a refused join is over; one that is refused after it stood is told as lost', async () => {
  const { join, say, lost, said, presence } = setup()
  const refused = join()
  say({ type: 'failed', key: refused.tab, code: 'name_taken', message: '' })
  expect(await refused.joined).toMatchObject({ code: 'name_taken' })
  expect(lost).toEqual([])
  const { tab } = join()
  say({ type: 'joined', key: tab, name: 'Ann' })
  say({ type: 'failed', key: tab, code: 'name_taken', message: '' })
  expect(lost).toEqual(['name_taken'])
  expect(said.filter(([what]) => what === 'unwatch')).toHaveLength(2)
  expect([refused.tab, tab].map(presence.payloadOf)).toEqual([undefined, undefined])
})

test('a join without an answer ends at its deadline', async () => {
  const { presence, join, say, pass, said, timers } = setup()
  const { tab, joined } = join()
  pass(4_999)
  pass(1)
  expect(await joined).toMatchObject({ code: 'journal_unavailable' })
  // A node that stood still meanwhile is told so: it would show a member who was refused.
  expect(said.at(-1)).toEqual(['renew', tab])
  expect(presence.payloadOf(tab)).toMatchObject({ leaving: 'now' })
  say({ type: 'left', key: tab })
  expect(said.at(-1)).toEqual(['unwatch', tab])
  expect(timers()).toBe(0)
})

test.each(['now', 'later'] as const)('leaving %s is a state as well, until the node knows it', leaving => {
  const { presence, join, say, said, timers } = setup()
  const { tab } = join()
  say({ type: 'joined', key: tab, name: 'Ann' })
  presence.leave(tab, leaving)
  expect(presence.payloadOf(tab)).toMatchObject({ leaving })
  expect(said.at(-1)).toEqual(['renew', tab])
  say({ type: 'joined', key: tab, name: 'Ann' })
  expect(presence.payloadOf(tab)).toBeDefined()
  say({ type: 'left', key: tab })
  expect(said.at(-1)).toEqual(['unwatch', tab])
  expect([presence.payloadOf(tab), timers()]).toEqual([undefined, 0])
})

test('a leave that no node hears is forgotten after as long as a member is kept', () => {
  const { presence, join, say, said, pass, timers } = setup()
  const { tab } = join()
  say({ type: 'joined', key: tab, name: 'Ann' })
  presence.leave(tab, 'later')
  pass(9_900)
  expect(presence.payloadOf(tab)).toBeDefined()
  pass(100)
  expect(said.at(-1)).toEqual(['unwatch', tab])
  expect(timers()).toBe(0)
})

test('who asks for the members meanwhile shares one read, and each has a deadline', async () => {
  const { presence, say, said, pass, timers } = setup()
  const first = presence.membersOf('room:1', { deadlineMs: 100 })
  const second = presence.membersOf('room:1', { deadlineMs: 300 })
  pass(100)
  expect(await first).toMatchObject({ code: 'journal_unavailable' })
  say({ type: 'members', key, epoch: 'E', rev: 1, count: 2 }, true)
  expect(await second).toEqual({ count: 2 })
  expect(said).toEqual([['get', key]])
  const third = presence.membersOf('room:1', { deadlineMs: 100 })
  pass(100)
  expect(await third).toMatchObject({ code: 'journal_unavailable' })
  expect(timers()).toBe(0)
})

test('when it stops, all that waits ends', async () => {
  const { presence, join, timers } = setup()
  const { joined } = join()
  const read = presence.membersOf('room:1', { deadlineMs: 1_000 })
  presence.stop()
  expect(await joined).toMatchObject({ code: 'journal_unavailable' })
  expect(await read).toMatchObject({ code: 'journal_unavailable' })
  expect(timers()).toBe(0)
})
