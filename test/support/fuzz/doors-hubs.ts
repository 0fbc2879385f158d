// Doors: what a gateway says to a fetcher or a journal. The nodes are whole; the sockets, the log's disk and the workers
// are stand-ins.
import { createHub, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { realWorld } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import fc from 'fast-check'
import type { Bind, FromGateways } from '../../../packages/backbone/hub/hub.ts'
import { encodeMessage, encodeRequest } from '../../../packages/backbone/wire/envelope.ts'
import { valuesCodec } from '../../../packages/backbone/wire/values-codec.ts'
import { authorizeQuestions, createAuthorize } from '../../../services/fetcher/primary/authorize/authorize.ts'
import { createPrimary } from '../../../services/fetcher/primary/primary.ts'
import { createQuestions } from '../../../services/fetcher/primary/questions/questions.ts'
import { createRulings, rulingQuestions } from '../../../services/fetcher/primary/rulings/rulings.ts'
import { createInTurns } from '../../../services/fetcher/primary/timing/in-turns.ts'
import { createTimerWheel } from '../../../services/fetcher/primary/timing/timer-wheel.ts'
import type { Pool } from '../../../services/fetcher/primary/workers/leases.ts'
import { createNamespaces } from '../../../services/gateway/test-support.ts'
import { createJournal } from '../../../services/journal/journal.ts'
import { createMemoryLog } from '../../../services/journal/log/memory/memory.ts'
import { type Absurd, absurdParts, type Named } from './absurd.ts'
import type { AnyDoor } from './judge.ts'
import { LINK, NUMBER, toFetcher, toJournal } from './messages.ts'

const anything: any = new Proxy(() => anything, { get: (_, name) => (name === 'then' ? undefined : anything) })
const silent = { debug() {}, info() {}, warn() {}, error() {} } as never

/** The sockets of a node: gateways speak into them, and what it says to each is kept until it is read. */
function createFakeSockets() {
  let from: FromGateways | undefined
  const said = new Map<string, Buffer[][]>()
  const bind: Bind = async events => {
    from = events
    return {
      send(routingId, parts) {
        const name = routingId.toString()
        said.set(name, [...(said.get(name) ?? []).slice(-100), parts])
      },
      hasReadAll: async () => true,
      async close() {},
    }
  }

  /** A gateway's end of a link. */
  function connect(name: string, wire: string) {
    const routingId = Buffer.from(name)
    let incarnation = 0
    let number = 0
    const link = () => `${name}-${incarnation}`
    const peer = {
      /** Begins a link anew, as after a loss. */
      introduce() {
        incarnation++
        number = 0
        said.delete(name)
        from?.beat(encodeMessage({ type: 'beat', link: link(), wire, number: 0, taken: 0 }), routingId)
      },
      /** Says a message as this link's next one, where the places for that are still in it. */
      say({ parts: [head = Buffer.alloc(0), ...rest] }: Pick<Absurd, 'parts'>, isBeat: boolean) {
        const text = head.toString().replaceAll(LINK, link())
        const own = text.replace(`"number":${NUMBER}`, `"number":${isBeat ? number : number + 1}`)
        if (own !== text && !isBeat) number++
        const part = own === head.toString() ? head : Buffer.from(own)
        if (isBeat) from?.beat(part, routingId)
        else from?.request([part, ...rest])
      },
      /** The JSON of what the node said since. */
      heard(): any[] {
        const heads = (said.get(name) ?? []).map(([head]) => JSON.parse(head.toString()))
        said.delete(name)
        return heads
      },
    }
    peer.introduce()
    return peer
  }
  return { bind, connect }
}

type Sockets = ReturnType<typeof createFakeSockets>
type Peer = ReturnType<Sockets['connect']>
type Network = ReturnType<typeof createMemoryNetwork>

interface World {
  network: Network
  stranger: Peer
  /** A gateway that is well: asks for something, and throws where it is not answered. */
  bystander: () => Promise<void>
}

async function startJournal(): Promise<World> {
  const network = createMemoryNetwork()
  const { world, now } = network
  const sockets = createFakeSockets()
  const hub = createHub({ codec: roomsCodec, bind: sockets.bind, ...world, wallNow: now, log: silent })
  const { journal: namespaces } = createNamespaces({}, { room: { members: 'named', names: 'unique' } })
  const log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 24 })
  const metrics = createMetrics({ service: 'fuzz' })
  const journal = createJournal({ namespaces, hub, log, metrics, report: silent, ...world })
  await journal.start()
  const well = sockets.connect('well', roomsCodec.wire)
  let count = 0
  return {
    network,
    stranger: sockets.connect('stranger', roomsCodec.wire),
    async bystander() {
      well.introduce()
      const command = {
        type: 'publish' as const,
        room: 'room:by',
        messageId: `bystander-${String(++count).padStart(9, '0')}`,
        from: 'by',
        data: Buffer.from('1'),
      }
      const encoded = roomsCodec.encodeCommand?.(command) ?? { head: {}, parts: [] }
      well.say(
        { parts: encodeRequest(LINK, NUMBER, { type: 'command', commands: [{ id: 'b', encoded, leftMs: 5_000 }] }) },
        false,
      )
      await network.pass(1_000)
      const results = well.heard().flatMap(({ results = [] }) => results)
      if (!results.some(({ id, result }: { id: string; result: { seq?: number } }) => id === 'b' && result.seq)) {
        throw new Error(`the bystander's publish came to ${JSON.stringify(results)}`)
      }
    },
  }
}

async function startFetcher(): Promise<World> {
  const network = createMemoryNetwork()
  const { world, now, every } = network
  const sockets = createFakeSockets()
  const hub = createHub({ codec: valuesCodec, bind: sockets.bind, ...world, wallNow: now, log: silent })
  const authorize = {
    urlFor: (id: string) => `http://127.0.0.1/may/${id}`,
    origin: 'http://127.0.0.1',
    pattern: 'http://127.0.0.1/{id}',
    method: 'HEAD',
    keepMs: 60_000,
    keepRefusedMs: 60_000,
  } as const
  const urlFor = () => 'http://127.0.0.1/ask'
  const ask = {
    urlFor,
    origin: 'http://127.0.0.1',
    pattern: 'http://127.0.0.1/ask',
    timeoutMs: 2_000,
    otherwise: 'refuse',
    headers: {},
  } as const
  const { all, fetched, journal } = createNamespaces(
    { conversation: { authorize }, own: { isPerUser: true } },
    { room: { ask } },
  )
  const wheel = createTimerWheel({ now, every })
  const leased: Parameters<Pool['lease']>[] = []
  const pool: Pool = { hasCredit: () => leased.length < 100, lease: (...given: any) => void leased.push(given) }
  const primary = createPrimary({
    namespaces: fetched,
    pool,
    markDue: hub.tell,
    wheel,
    metrics: anything,
    tokens: { authorizationOf: () => undefined, refused() {} },
    log: silent,
    changes: new Map(),
    post: async () => ({ kind: 'taken' }),
    settings: { inFlightMax: 64, cacheBytesMax: 2 ** 24, waitsMax: 0 },
    ...world,
    random: Math.random,
    wallNow: now,
    now,
  })
  const inTurns = createInTurns({ wheel, now })
  const questions = createQuestions({
    kind: authorizeQuestions(all),
    pool,
    cap: 64,
    inTurns,
    metrics: anything,
    failureLog: { failed() {}, succeeded() {}, troubles: new Map() },
    now,
    after: world.after,
  })
  const authorizing = createAuthorize({
    namespaces: all,
    questions,
    tellDecision: hub.tellResult,
    logNobody() {},
    metrics: anything,
    now,
    random: Math.random,
  })
  const messageQuestions = createQuestions({
    kind: rulingQuestions(journal),
    pool,
    cap: 64,
    inTurns,
    metrics: anything,
    failureLog: { failed() {}, succeeded() {}, troubles: new Map() },
    now,
    after: world.after,
  })
  const rulings = createRulings({
    namespaces: journal,
    questions: messageQuestions,
    tellRuling: hub.tellResult,
    logNothing() {},
    metrics: anything,
    now,
  })
  await hub.start({
    ...primary.hubEvents,
    onCommand(link, id, command) {
      if (command.type === 'authorize') authorizing.onCommand(link, id, command)
      else if (command.type === 'ask') rulings.onCommand(link, id, command)
      else hub.tellResult(link, id, primary.handOver(command))
    },
  })

  /** Workers that are fast: every lease ends with a value, or with an admission. */
  function work() {
    const content = { version: `v${now()}`, contentType: 'application/json', format: 'json' } as const
    for (const [holder, what, { statusOf }] of leased.splice(0)) {
      const value = { kind: 'value', status: 200, store: true, ...content } as const
      holder.ended(what, statusOf ? { kind: 'status', status: 200 } : value, Buffer.from('{}'))
    }
    primary.fetches.startAll()
    questions.startAll()
    messageQuestions.startAll()
  }
  every(100, work)

  const well = sockets.connect('well', valuesCodec.wire)
  return {
    network,
    stranger: sockets.connect('stranger', valuesCodec.wire),
    async bystander() {
      well.introduce()
      const wants = [{ key: 'conversation:by', position: undefined }]
      well.say({ parts: encodeRequest(LINK, NUMBER, { type: 'get', wants }) }, false)
      await network.pass(1_000)
      const answers = well.heard().flatMap(({ answers = [] }) => answers)
      if (!answers.some(({ type }: { type: string }) => type === 'value')) {
        throw new Error(`the bystander's get came to ${JSON.stringify(answers)}`)
      }
    },
  }
}

interface Said extends Pick<Absurd, 'parts'> {
  isBeat: boolean
}

function said(valid: Named<Buffer[]>[], isBeat: boolean): fc.Arbitrary<Said> {
  const right = fc.constantFrom(...valid).map(([, parts]) => ({ parts }))
  return fc
    .oneof(
      { weight: 2, arbitrary: right },
      { weight: 4, arbitrary: absurdParts(valid) as fc.Arbitrary<Pick<Absurd, 'parts'>> },
    )
    .map(({ parts }) => ({ parts, isBeat }))
}

function door(name: string, start: () => Promise<World>, { requests, beats }: typeof toFetcher): AnyDoor {
  let world: World | undefined
  const message = fc.oneof({ weight: 5, arbitrary: said(requests, false) }, { weight: 1, arbitrary: said(beats, true) })
  return {
    name,
    inputs: fc.array(message, { minLength: 1, maxLength: 10 }),
    async take(messages: Said[]) {
      world ??= await start()
      try {
        const { stranger, network, bystander } = world
        stranger.introduce()
        for (const each of messages) {
          stranger.say(each, each.isBeat)
          // A hub asks a link to begin anew after a loss.
          if (stranger.heard().some(({ type }) => type === 'resync')) stranger.introduce()
        }
        await network.settle()
        await bystander()
      } catch (error) {
        world = undefined
        throw error
      }
    },
  }
}

export const hubDoors: AnyDoor[] = [
  door('a fetcher with an absurd gateway', startFetcher, toFetcher),
  door('a journal with an absurd gateway', startJournal, toJournal),
]
