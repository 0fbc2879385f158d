// Clients that talk in rooms while processes are killed and stopped, and links and clients are cut or swallowed, at random
// from a seed. Every message is counted in the end.
import { startBlackhole } from './blackhole.ts'
import { createChecker } from './checker.ts'
import { eventually, pause } from './deadline.ts'
import { show } from './figures.ts'
import { startJournal } from './journal.ts'
import { notOnceIn, readHistories, startRooms } from './journal-links.ts'
import type { NamespaceSettings } from './keycast-yaml.ts'
import { createRandom } from './random.js'
import { seconds, seed } from './random-faults.ts'
import { joinRooms, type RoomClient } from './rooms.ts'
import { startSystem } from './system.ts'
import { startSwitch } from './tcp-switch.ts'
import { startToldBackend } from './told-backend.ts'

/** Each both publishes and listens. */
const CLIENTS = 50
const ROOMS = Array.from({ length: 10 }, (_, n) => `room:${n}`)
const ROOMS_PER_CLIENT = 2
const PUBLISH_EVERY_MS = 500

/** Between the end of a fault and the next one. */
const CALM_MS = 1_500

/** A link is swallowed for up to so long: past the 3 s of silence after which both ends give it up, or short of them. */
const SWALLOWED_MS = 6_000

/** A client takes its connection for dead when nothing has answered it for so long; then it opens another. */
const CLIENT_SILENT_MS = 2_000

/** Before what was not kept is sent again, and before another connection. */
const AGAIN_MS = 300

type Random = ReturnType<typeof createRandom>
type Fault = [what: string, fault: (random: Random) => Promise<unknown>]

interface FaultRunOptions {
  /** Each one's settings beside its ports. */
  journals: Record<string, string>[]
  /** Faults beside the usual ones. */
  more?: (journals: Awaited<ReturnType<typeof startJournal>>[]) => Fault[]
}

export async function startFaultRun({ journals: environments, more = () => [] }: FaultRunOptions) {
  const history = { messages: 1_000_000, bytes: '1GiB' }
  const access = { anonymous: { read: ['*:**'], publish: ['*:**'] } }
  const backend = await startToldBackend()
  const namespaces: Record<string, NamespaceSettings> = { room: { source: 'journal', history, notify: backend.notify } }
  const system = await startSystem({ namespaces, access, gateways: 0, fetchers: 0 })
  const journals = await Promise.all(environments.map(env => startJournal({ config: system.configPath, env })))
  const switches: Awaited<ReturnType<typeof startSwitch>>[] = []
  /** Of each journal: one for publications, one for deliveries. */
  const linkHoles: Awaited<ReturnType<typeof startBlackhole>>[][] = []
  const nodes: string[] = []
  for (const { node } of journals) {
    const ports = node.split(':').slice(1).map(Number)
    const pair = [await startSwitch(ports[0]), await startSwitch(ports[1])]
    const holes = [await startBlackhole(pair[0].port), await startBlackhole(pair[1].port)]
    switches.push(...pair)
    linkHoles.push(holes)
    nodes.push(`127.0.0.1:${holes[0].port}:${holes[1].port}`)
  }

  async function startGateway() {
    const { url, port, process } = await system.startGateway({ JOURNAL_NODES: nodes.join() })
    const hole = await startBlackhole(port, { isPlain: true })
    return { process, hole, url, urlThroughHole: `ws://127.0.0.1:${hole.port}/ws` }
  }
  const gateways = [await startGateway(), await startGateway()]
  const checker = createChecker()
  const random = createRandom(seed)
  const clients = Array.from({ length: CLIENTS }, (_, n) => {
    const rooms = Array.from({ length: ROOMS_PER_CLIENT }, (_, each) => ROOMS[(n + each * 3) % ROOMS.length])
    const url = () => random.pick(gateways)[n % 2 === 0 ? 'urlThroughHole' : 'url']
    return createParticipant({ name: `client-${n}`, rooms, checker, url })
  })

  const faults: Fault[] = [
    [
      'journal killed',
      async random => {
        const journal = random.pick(journals)
        journal.process().signal('SIGKILL')
        await journal.process().exited
        await pause(random.integer(1_000))
        await journal.restart()
      },
    ],
    [
      'journal stopped',
      async random => {
        const journal = random.pick(journals).process()
        journal.signal('SIGSTOP')
        await pause(200 + random.integer(4_000))
        journal.signal('SIGCONT')
      },
    ],
    [
      'gateway killed',
      async random => {
        const [gone] = gateways.splice(random.integer(gateways.length), 1)
        await gone.process.kill()
        gateways.push(await startGateway())
      },
    ],
    [
      'links cut',
      async () => {
        for (const each of switches) each.cut()
      },
    ],
    [
      'clients cut',
      async random => {
        for (const client of clients) if (random.integer(3) === 0) client.cut()
      },
    ],
    [
      'links swallowed',
      async random => {
        // One of the two, or both: requests vanish while beats pass, or the other way round, or all.
        const holes = random.pick(linkHoles)
        const which = random.pick([holes, [holes[0]], [holes[1]]])
        for (const hole of which) hole.swallow(random.pick(['hold', 'drop']))
        await pause(200 + random.integer(SWALLOWED_MS))
        for (const hole of which) hole.mend()
      },
    ],
    [
      'clients swallowed',
      async random => {
        const { hole } = random.pick(gateways)
        hole.swallow('hold')
        await pause(200 + random.integer(SWALLOWED_MS))
        hole.mend()
      },
    ],
    [
      'backend failing',
      async random => {
        const status = random.pick([undefined, 500, 429, 408])
        backend.answer(() => (status ? { status } : 'nothing'))
        await pause(200 + random.integer(3_000))
        backend.answer(() => ({}))
      },
    ],
    ...more(journals),
  ]

  return {
    /** Makes faults for as long as it is told, and judges. @returns what is wrong */
    async judge(): Promise<string[]> {
      await eventually(() => clients.every(client => client.isThere()), 'every client having a position in its rooms')
      const counts: Record<string, number> = {}
      const until = performance.now() + seconds * 1_000
      while (performance.now() < until) {
        const [what, fault] = random.pick(faults)
        counts[what] = (counts[what] ?? 0) + 1
        await fault(random)
        await pause(random.integer(CALM_MS))
      }
      for (const client of clients) client.stopPublishing()
      await eventually(() => clients.every(client => client.isSettled()), 'every publish being acknowledged', {
        deadlineMs: 60_000,
      })
      const judge = await startRooms('judge', nodes.join(), checker)
      const ids = await readHistories(judge, checker, ROOMS)
      for (const room of ROOMS) {
        const head = (await judge.history(room, { before: 1, limit: 1 }, { deadlineMs: 10_000 })) as any
        for (const client of clients) {
          await eventually(() => client.hasSeen(room, head), `${client.name} seeing ${room} to its end`)
        }
      }
      for (const client of clients) client.leave()
      const sent = clients.flatMap(client => client.sent)
      const seen = clients.reduce((sum, client) => sum + client.seen(), 0)
      show(
        `seed ${seed}, ${seconds} s: ${sent.length} messages sent, ${seen} seen by ${CLIENTS} clients, ` +
          `${sent.filter(({ isAgain }) => isAgain).length} sent again; ${JSON.stringify(counts)}`,
      )
      for (const client of clients) client.noteAcknowledged()
      const untold = () => {
        const told = new Set(ROOMS.flatMap(room => backend.told(room).map(({ messageId }) => messageId)))
        return ids.filter(id => !told.has(id))
      }
      await eventually(() => untold().length === 0, 'the backend being told of every message', { deadlineMs: 60_000 })
      show(`the backend was told in ${backend.calls()} calls`)
      const gaps = backend.gaps.map(gap => `a gap where nothing was dropped: ${JSON.stringify(gap)}`)
      const notOnce = notOnceIn(ids, sent).map(([id, count]) => `${id} is in the history ${count} times`)
      return [...notOnce, ...checker.problems(), ...backend.problems(), ...gaps].slice(0, 20)
    },
  }
}

interface ParticipantOptions {
  name: string
  rooms: string[]
  checker: ReturnType<typeof createChecker>
  /** Of a gateway. */
  url: () => string
}

/**
 * A client that is always connected to some gateway again, resumes its rooms by position, and sends again what was not
 * acknowledged.
 */
function createParticipant({ name, rooms, checker, url }: ParticipantOptions) {
  interface Sent {
    room: string
    messageId: string
    data: string
    isAgain: boolean
    result: any
  }
  const sent: Sent[] = []
  const unsettled = new Set<Sent>()
  let positions = new Map<string, { epoch: string; seq: number }>()
  let client: RoomClient | undefined
  /** By the id of the request, of this connection. */
  const underWay = new Map<number, Sent>()
  let lastId = 0
  let heardAt = 0
  let isPublishing = true
  let hasLeft = false
  let seenCount = 0
  const counting = {
    ...checker,
    saw(...[who, room, sight]: Parameters<typeof checker.saw>) {
      if (sight.type === 'message') seenCount++
      return checker.saw(who, room, sight)
    },
  }

  async function stayConnected() {
    while (!hasLeft) {
      try {
        const joined = await joinRooms(url(), { name, checker: counting, onMessage: hear })
        joined.keepNothing()
        const keys = rooms.map(key => (positions.has(key) ? { key, after: { ...positions.get(key) } } : key))
        for (const [key, position] of positions) joined.positions.set(key, position)
        positions = joined.positions
        joined.send({ type: 'subscribe', keys })
        client = joined
        underWay.clear()
        for (const each of unsettled) sendAgain(each)
        await joined.ended
      } catch {
        // A gateway that is gone: another one.
      }
      client = undefined
      await pause(AGAIN_MS)
    }
  }

  function hear(message: any) {
    heardAt = performance.now()
    onMessage(message)
  }

  /** As the library does: a connection that was swallowed is given up, and its end is not waited for. */
  function ping() {
    if (!client) return
    if (performance.now() - heardAt > CLIENT_SILENT_MS) client.socket.terminate()
    else client.send({ type: 'ping', id: 'ping' })
  }

  async function onMessage({ type, id, retryAfterMs = AGAIN_MS, ...rest }: any) {
    const publish = underWay.get(id)
    if (!publish) return
    underWay.delete(id)
    if (type === 'published') {
      publish.result = rest
      unsettled.delete(publish)
      return
    }
    const current = client
    await pause(retryAfterMs)
    if (current === client) sendAgain(publish) // else it was, with the next connection
  }

  function send(publish: Sent) {
    const { room, messageId, data } = publish
    underWay.set(++lastId, publish)
    client?.send({ type: 'publish', id: lastId, key: room, messageId, data })
  }

  function sendAgain(publish: Sent) {
    publish.isAgain = true
    send(publish)
  }

  const timer = setInterval(() => {
    ping()
    if (!isPublishing || positions.size < rooms.length) return
    const number = sent.length
    const messageId = `${name}-message-${String(number).padStart(8, '0')}`
    const room = rooms[number % rooms.length]
    const publish = { room, messageId, data: messageId, isAgain: client === undefined, result: undefined }
    sent.push(publish)
    unsettled.add(publish)
    if (client) send(publish)
  }, PUBLISH_EVERY_MS)
  stayConnected()

  return {
    name,
    sent,
    cut: () => client?.socket.terminate(),
    isThere: () => positions.size === rooms.length,
    isSettled: () => unsettled.size === 0,
    stopPublishing() {
      isPublishing = false
    },
    hasSeen(room: string, { epoch, newest }: { epoch: string; newest: number }) {
      if (!rooms.includes(room)) return true
      const position = positions.get(room)
      return position?.epoch === epoch && position.seq === newest
    },
    seen: () => seenCount,
    leave() {
      hasLeft = true
      clearInterval(timer)
      client?.socket.terminate()
    },
    noteAcknowledged() {
      for (const { room, messageId, data, result, isAgain } of sent) {
        const { epoch, seq, duplicate = false } = result
        // Sent again, it may stand behind what was sent meanwhile.
        const publisher = isAgain ? `${name} with ${messageId}` : name
        checker.acknowledged(publisher, room, { epoch, seq, duplicate, messageId, data: JSON.stringify(data) })
      }
    },
  }
}
