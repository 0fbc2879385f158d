// The members of a room, through real processes. Members of all gateways are seen by all, and nobody who comes back in
// time is seen to leave, whatever process is killed.
import { randomBytes } from 'node:crypto'
import { atEnd } from '../support/cleanup.ts'
import { eventually, pause } from '../support/deadline.ts'
import { joinRooms } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'
import { startValkey } from '../support/valkey.ts'

const start = (options?: Parameters<typeof startRooms>[0]) =>
  startRooms({
    namespaces: { room: { members: 'named', names: 'unique' } },
    access: { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } },
    ...options,
  })

/** For the tests that kill at most a gateway they start themselves. */
const shared = await start({ gateways: 2 })

let rooms = 0

/** A room for each test, so that none sees another's members. */
function newRoom() {
  rooms += 1
  const room = `room:${rooms}`
  return {
    room,
    watch: (url: string) => watch(url, room),
    join: (url: string, name: string, claim?: string) => join(url, room, name, claim),
  }
}

/** A client that keeps the members as the protocol's page says, and notes who was ever seen to leave. */
async function watch(url: string, room: string) {
  const client = await joinRooms(url)
  let read = 0
  let rev = Number.NaN
  const members = new Map<string, any>()
  const left: string[] = []
  await client.subscribe({ key: room, presence: true })

  function note() {
    for (; read < client.received.length; read++) {
      const message = client.received[read]
      if (message.type === 'members') {
        const now = new Set(message.members.map(({ id }: any) => id))
        for (const [id, { name }] of members) if (!now.has(id)) left.push(name)
        members.clear()
        for (const member of message.members) members.set(member.id, member)
      } else if (message.type === 'presence') {
        expect(message.rev).toBe(rev + 1)
        for (const { id, name } of message.left) {
          left.push(name)
          members.delete(id)
        }
        for (const member of message.joined) members.set(member.id, member)
      } else continue
      rev = message.rev
      expect(members.size).toBe(message.count)
    }
    return [...members.values()].map(({ name, tabs }) => (tabs === 1 ? name : `${name} ${tabs}`)).sort()
  }
  return {
    ...client,
    left,
    names: note,
    until: (...names: string[]) =>
      client.until(() => note().join() === names.join(), `${names.join(', ') || 'nobody'} being there`),
  }
}

async function join(url: string, room: string, name: string, claim?: string) {
  const client = await joinRooms(url)
  const joined = await client.request({ type: 'join', key: room, name, claim })
  expect(joined).toMatchObject({ type: 'joined', key: room, name })
  return { ...client, claim: joined.claim }
}

// Beside each other: each waits for the most part.

test.concurrent('members are seen through every gateway, and are gone at once where they leave', async () => {
  const { room, watch, join } = newRoom()
  const { gateways } = shared
  const [one, two] = await Promise.all(gateways.map(({ url }) => watch(url)))
  const ann = await join(gateways[0].url, 'Ann')
  const bob = await join(gateways[1].url, 'Bob')
  const second = await join(gateways[1].url, 'Ann', ann.claim)
  for (const each of [one, two]) await each.until('Ann 2', 'Bob')
  second.socket.close(1000)
  for (const each of [one, two]) await each.until('Ann', 'Bob')
  expect(await bob.request({ type: 'join', key: room, name: 'Ann' })).toMatchObject({ code: 'name_taken' })
  await bob.request({ type: 'leave', key: room })
  ann.socket.close()
  for (const each of [one, two]) await each.until()
  expect(one.left.sort()).toEqual(['Ann', 'Bob'])
})

test.concurrent('one whose connection broke is kept for 10 s, and was never gone where it comes back', async () => {
  const { watch, join } = newRoom()
  const { gateways } = shared
  const watcher = await watch(gateways[1].url)
  const ann = await join(gateways[0].url, 'Ann')
  const bob = await join(gateways[0].url, 'Bob')
  await watcher.until('Ann', 'Bob')
  const brokeAt = performance.now()
  for (const { socket } of [ann, bob]) socket.terminate()
  await pause(2_000)
  expect(watcher.names()).toEqual(['Ann', 'Bob'])
  await join(gateways[1].url, 'Ann', ann.claim)
  await watcher.until('Ann')
  expect(performance.now() - brokeAt).toBeGreaterThan(9_900)
  expect(watcher.left).toEqual(['Bob'])
})

test.concurrent('a gateway is killed: who comes back within 10 s was never gone, and the others leave together', async () => {
  const { watch, join } = newRoom()
  const doomed = await shared.startGateway()
  const [other] = shared.gateways
  const watcher = await watch(other.url)
  const names = Array.from({ length: 10 }, (_, n) => `Guest ${n}`)
  const guests = await Promise.all(names.map(name => join(doomed.url, name)))
  await watcher.until(...names)
  // Before: a busy machine may take longer to start it than a member may be away.
  const third = await shared.startGateway()
  const killedAt = performance.now()
  await doomed.process.kill()
  const back = guests.slice(0, 5)
  // Each through another gateway; the node has not noticed the loss yet, or just has.
  await Promise.all(back.map(({ claim }, n) => join((n % 2 === 0 ? third : other).url, names[n], claim)))
  await watcher.until(...names.slice(0, 5))
  expect(performance.now() - killedAt).toBeGreaterThan(9_000)
  expect(watcher.left.sort()).toEqual(names.slice(5))
  expect(watcher.all('presence').at(-1).left).toHaveLength(5)
})

test.concurrent('the journal is killed and starts again: nobody is seen to leave, and who left meanwhile is gone', async () => {
  const { watch, join } = newRoom()
  const { journal, gateways } = await start({ gateways: 2 })
  const watcher = await watch(gateways[1].url)
  const ann = await join(gateways[0].url, 'Ann')
  await join(gateways[0].url, 'Bob')
  await join(gateways[1].url, 'Cal')
  await watcher.until('Ann', 'Bob', 'Cal')
  await journal.process().kill()
  ann.socket.close(1000)
  await eventually(
    async () => (await gateways[0].metric('keycast_gateway_journal_nodes_alive')) === 0,
    'the journal being missed',
  )
  expect(watcher.names()).toEqual(['Ann', 'Bob', 'Cal'])
  await journal.restart()
  await watcher.until('Bob', 'Cal')
  expect(watcher.left).toEqual(['Ann'])
  await join(gateways[1].url, 'Ann')
  await watcher.until('Ann', 'Bob', 'Cal')
})

test.concurrent('the journal stands still: joins say so, and go on when it does', async () => {
  const { room, watch, join } = newRoom()
  const { journal, gateways } = await start()
  const watcher = await watch(gateways[0].url)
  const ann = await join(gateways[0].url, 'Ann')
  await watcher.until('Ann')
  journal.process().signal('SIGSTOP')
  const bob = await joinRooms(gateways[0].url)
  // Of its own, as the protocol's page advises: the journal may yet take the join whose answer was lost.
  const bobJoins = { type: 'join', key: room, name: 'Bob', claim: randomBytes(16).toString('base64url') }
  expect(await bob.request(bobJoins)).toMatchObject({
    type: 'error',
    code: 'journal_unavailable',
    retryAfterMs: 1_000,
  })
  journal.process().signal('SIGCONT')
  await eventually(async () => {
    const { type } = await bob.request(bobJoins)
    return type === 'joined'
  }, 'the join')
  await watcher.until('Ann', 'Bob')
  expect(watcher.left).toEqual([])
  expect(ann.received.filter(({ type }) => type === 'error')).toEqual([])
})

test.concurrent('a room moves to another journal and back with its members there, and nobody is seen to leave', async () => {
  const { room, watch, join } = newRoom()
  const valkey = await startValkey()
  atEnd(() => valkey.remove())
  const journalEnv = { JOURNAL_LOG: 'valkey', VALKEY_URL: valkey.url }
  const { gateways, journals } = await start({ gateways: 2, journals: 2, journalEnv })
  const ownerOf = async (gateway: (typeof gateways)[0]) =>
    JSON.parse(String((await gateway.call(`/v1/rooms/${room}`)).body)).owner.node
  const first = await ownerOf(gateways[0])
  const owner = journals.find(({ node }) => node === first) as (typeof journals)[0]
  const watchers = await Promise.all(gateways.map(({ url }) => watch(url)))
  await join(gateways[0].url, 'Ann')
  await join(gateways[1].url, 'Bob')
  for (const watcher of watchers) await watcher.until('Ann', 'Bob')

  const moved = async (isMoved: (node: string) => boolean) => {
    for (const gateway of gateways) {
      await eventually(async () => isMoved(await ownerOf(gateway)), 'the room having moved at every gateway')
    }
  }
  owner.process().signal('SIGKILL')
  await owner.process().exited
  await moved(node => node !== first)
  await join(gateways[0].url, 'Cid')
  for (const watcher of watchers) await watcher.until('Ann', 'Bob', 'Cid')

  await owner.restart()
  await moved(node => node === first)
  const dan = await join(gateways[1].url, 'Dan')
  for (const watcher of watchers) await watcher.until('Ann', 'Bob', 'Cid', 'Dan')
  for (const watcher of watchers) expect(watcher.left).toEqual([])

  await dan.request({ type: 'leave', key: room })
  for (const watcher of watchers) await watcher.until('Ann', 'Bob', 'Cid')
  for (const watcher of watchers) expect(watcher.left).toEqual(['Dan'])
})
