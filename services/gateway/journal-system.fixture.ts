// For tests: journals that share a log, gateways, and a backend that is told, in one process, each of which may stand still,
// die, lose messages, or not reach the log.
import { createHub, createRoomsBackbone, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { type JournalNamespace, withReserved } from '@keycast/service'
import { createRandom } from '../../test/support/random.js'
import { createJournal } from '../journal/journal.ts'
import { issuers } from './access/test-tokens.ts'
import { createTestApp } from './doors/http/test-support.ts'
import { STARTS_AT } from './kernel.fixture.ts'
import { createProcess, type Process } from './process.fixture.ts'
import { createSharedLog } from './shared-log.fixture.ts'
import { createTestGateway, noMetrics } from './test-support.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
export const ROOMS = ['told:1', 'told:2', 'quiet:1']
export const KEYS = ['price:1', 'price:2', 'price:3']
export const PUBLISH_MS = 3_000
export const HAND_OVER_MS = 5_000
export const GATEWAYS = 2
/** A read of the log takes no longer. */
const READ_MS = 1_500

export const modes = {
  nothing: { journals: ['n1'], faults: [] },
  log: { journals: ['n1', 'n2'], faults: ['log'] },
  network: { journals: ['n1', 'n2'], faults: ['log', 'losses', 'routes'] },
  processes: { journals: ['n1', 'n2'], faults: ['stalls', 'deaths', 'routes'] },
  everything: { journals: ['n1', 'n2'], faults: ['log', 'losses', 'routes', 'stalls', 'deaths'] },
}
export type Mode = keyof typeof modes

export interface Person {
  name: string
  sub: string | undefined
  token: { text: string; issuedAt: number; jti: string } | undefined
}

export type Revocation = { jti: string } | { sub: string; before: number }

export const covers = (revocation: Revocation, { sub, token }: Person) =>
  token !== undefined &&
  ('jti' in revocation ? revocation.jti === token.jti : revocation.sub === sub && token.issuedAt < revocation.before)

export async function setUp(seed: number, mode: Mode) {
  const { integer, pick, bytes } = createRandom(seed)
  const network = createMemoryNetwork()
  const { now } = network
  const world = {
    ...network.world,
    random: () => integer(1_000_000) / 1_000_000,
    randomBytes: bytes,
    wallNow: () => Math.floor(STARTS_AT + now()),
  }
  const log = createSharedLog({ world, after: network.after, integer, pick })
  const amiss: string[] = []
  const wrong = (what: string) => void (amiss.length < 10 && amiss.push(`at ${now()} ${what}`))
  const history = () => ({
    messages: pick([1, 2, 5, 100]),
    ageMs: pick([5, 1_000, 60_000]),
    bytes: pick([300, 1_000, 1e6]),
  })
  const rooms: Record<string, any> = Object.fromEntries(
    ['told', 'quiet'].map(name => [
      name,
      {
        name,
        source: 'journal',
        history: history(),
        bytesMax: 1_000,
        publish: 'client',
        members: 'named',
        names: 'any',
        notify:
          name === 'told'
            ? { url: 'http://backend', secretFiles: [], timeoutMs: 1_000, messages: true, members: true }
            : undefined,
      },
    ]),
  )
  const price: any = {
    name: 'price',
    source: 'pushed',
    maxAgeMs: 1_000,
    refreshMs: 0,
    timeoutMs: 2_000,
    bytesMax: 2_000,
  }
  const namespaces = withReserved({ get: name => rooms[name] as JournalNamespace, names: Object.keys(rooms) })
  const pushed: any = { get: (name: string) => (name === 'price' ? price : undefined), names: ['price'] }
  const names = modes[mode].journals
  const backend = createBackend({ world, wrong, network, integer, pick, log })
  const journals = new Map<string, { process: Process; journal: ReturnType<typeof createJournal>; levels: Levels }>()

  /** Lets time pass until it is over. @returns whether it went well */
  async function over(what: Promise<unknown>): Promise<boolean> {
    let isOver: boolean | undefined
    void what.then(
      () => (isOver = true),
      () => (isOver = false),
    )
    for (let waits = 0; isOver === undefined && waits < 600; waits++) await network.pass(100)
    return isOver === true
  }

  /** One that cannot read its log ends, and is started again. */
  async function startJournal(name: string): Promise<void> {
    const process = createProcess(network, world)
    const levels: Levels = new Map()
    const hub = createHub({
      ...process.world,
      codec: roomsCodec,
      bind: from =>
        network.bindOf(name)({
          request: parts => process.run(() => from.request(parts)),
          beat: (part, routingId) => process.run(() => from.beat(part, routingId)),
        }),
      log: silent,
    })
    const journal = createJournal({
      ...process.world,
      namespaces,
      pushed,
      hub,
      log: log.of(process),
      metrics: { ...noMetrics, read: (level: string, _: string, value: any) => void levels.set(level, value) } as any,
      report: silent,
      post: backend.postOf(process),
    })
    if (!(await over(journal.start()))) {
      process.die()
      return startJournal(name)
    }
    journals.set(name, { process, journal, levels })
  }

  async function startGateway(number: number) {
    const process = createProcess(network, world)
    const levels: Levels = new Map()
    const state = { list: (_: string[]) => {} }
    const test = createTestGateway({
      world: process.world,
      rooms,
      pushed: { price },
      policy: { tokens: issuers },
      settings: { publishMs: PUBLISH_MS, tailBytesMax: pick([1_000, 20_000, 2 ** 20]), requestsPerSecondMax: 1e6 },
      metrics: { ...noMetrics, read: (level, _, value) => void levels.set(level, value as () => unknown) },
      journal: {
        backbone: (events: any) =>
          createRoomsBackbone({
            ...process.world,
            nodeSource: {
              async start(found) {
                state.list = each => process.run(() => found(each))
                found(names)
              },
              stop() {},
            },
            dialOf: name => message => network.dialOf(name)(parts => process.run(() => message(parts))),
            log: silent,
            events,
          }),
      } as any,
    })
    const { gateway } = test
    const app = createTestApp({ ...process.world, ...gateway })
    await over(gateway.start())
    await app.ready()
    return {
      gateway,
      app,
      process,
      levels,
      number,
      list: (each: string[]) => state.list(each),
      revoked: [] as Revocation[],
    }
  }

  for (const name of names) await startJournal(name)
  const gateways: Awaited<ReturnType<typeof startGateway>>[] = []
  for (let number = 0; number < GATEWAYS; number++) gateways.push(await startGateway(number))

  return {
    ...network,
    world,
    integer,
    pick,
    log,
    amiss,
    wrong,
    rooms,
    history,
    names,
    backend,
    journals,
    gateways,
    startJournal,
    over,
    replace: async (number: number) => {
      gateways[number] = await startGateway(number)
    },
    /** For so long a gateway may not have heard that a message was deleted. */
    deletedMs: mode === 'nothing' ? 4_000 : Number.POSITIVE_INFINITY,
    /** All that were made. */
    revocations: [] as Revocation[],
    /** Texts that may not be kept: published with a token that was revoked. */
    barred: new Set<string>(),
    /** When each text was published for the first time, and last. */
    published: new Map<string, { firstAt: number; lastAt: number }>(),
  }
}

export type Levels = Map<string, () => unknown>
export type System = Awaited<ReturnType<typeof setUp>>
export type Gateway = System['gateways'][number]

/** What a backend is told: it takes it, or is away. */
function createBackend({
  world,
  wrong,
  network,
  integer,
  pick,
  log,
}: Pick<System, 'world' | 'wrong' | 'integer' | 'pick' | 'log'> & { network: ReturnType<typeof createMemoryNetwork> }) {
  /** Seqs that it has taken, by room; and the last one that it was told for the first time. */
  const told = new Map<string, Set<number>>()
  const lastNew = new Map<string, number>()
  const members = new Map<string, any>()
  const state = { fails: 0 }
  /** When those who asked for it were told that each was deleted. */
  const gone = new Map<string, number>()
  const sleep = (ms: number) => new Promise<void>(resolve => network.after(ms, resolve))

  function hear(text: string) {
    const { key, messages, members: states } = JSON.parse(text)
    for (const each of states ?? []) {
      // Of another journal it says nothing about who is there now.
      if (each.count > 0 || members.get(each.key)?.epoch === each.epoch) members.set(each.key, each)
    }
    if (!messages) return
    const of = told.get(key) ?? new Set()
    told.set(key, of)
    for (const { seq, data, deletes } of messages) {
      const kept = log.messages.get(`${key} ${seq}`)
      if (!kept) wrong(`the backend is told of ${key} ${seq}, never kept`)
      else if (!deletes && JSON.stringify(data) !== kept.data) wrong(`the backend is told ${data} for ${kept.data}`)
      if (of.has(seq)) continue
      if (seq < (lastNew.get(key) ?? 0)) wrong(`the backend is told of ${key} ${seq} after ${lastNew.get(key)}`)
      lastNew.set(key, Math.max(seq, lastNew.get(key) ?? 0))
      of.add(seq)
    }
  }

  return {
    told,
    members,
    gone,
    state,
    postOf(process: Process) {
      const post = async (_: unknown, text: string) => {
        for (const { data } of JSON.parse(text).messages ?? []) {
          const goneAt = gone.get(JSON.stringify(data)) ?? Number.POSITIVE_INFINITY
          if (world.now() > goneAt + READ_MS) wrong(`the backend is told of ${data}, deleted at ${goneAt}`)
        }
        await sleep(pick([1, 20, 300]))
        const isTaken = integer(100) >= state.fails
        if (isTaken && !process.isDead) hear(text)
        await sleep(pick([1, 20]))
        const outcome = isTaken && integer(100) >= state.fails ? { kind: 'taken' } : { kind: 'failed', why: 'away' }
        return new Promise<any>(resolve => process.run(() => resolve(outcome)))
      }
      return Object.assign(post, { close() {} }) as any
    },
  }
}
