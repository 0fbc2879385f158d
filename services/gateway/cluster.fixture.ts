// For tests: fetcher nodes with their workers, gateways and backends in one process, on the clocks of kernel.fixture.ts. All is
// what runs in services but sockets, processes and the backend.
import type { HandedOver } from '@keycast/backbone'
import { createLiveNamespaces, type ReadNamespaces } from '@keycast/service'
import { createValuesBackbone } from '../../packages/backbone/gateway/values/values-backbone.ts'
import { createHub, type FromGateways } from '../../packages/backbone/hub/hub.ts'
import { valuesCodec } from '../../packages/backbone/wire/values-codec.ts'
import { authorizeQuestions, createAuthorize } from '../fetcher/primary/authorize/authorize.ts'
import { createChanges } from '../fetcher/primary/changes/changes.ts'
import type { StreamOptions } from '../fetcher/primary/changes/event-stream.ts'
import { createPrimary } from '../fetcher/primary/primary.ts'
import { createQuestions } from '../fetcher/primary/questions/questions.ts'
import { createInTurns } from '../fetcher/primary/timing/in-turns.ts'
import { createTimerWheel } from '../fetcher/primary/timing/timer-wheel.ts'
import { createWorkers } from '../fetcher/primary/workers/workers.ts'
import { createAsker } from '../fetcher/worker/ask.ts'
import { createDeltas } from '../fetcher/worker/deltas.ts'
import type { Exchange } from '../fetcher/worker/http/exchange.ts'
import { createPuller } from '../fetcher/worker/pull.ts'
import { startWorker } from '../fetcher/worker/worker.ts'
import { batchPerTurn, decodeFromWorker, decodeLeases, encodeWork } from '../fetcher/worker-messages.ts'
import type { Kernel, Process } from './kernel.fixture.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
const ignoring: any = new Proxy({}, { get: () => () => {} })

/** What a backend is asked. `isOver`: nobody waits for its answer any more. */
export interface Asked {
  node: string
  worker: Process
  method: string
  url: string
  headers: Record<string, string>
  atMs: number
  isOver: () => boolean
  answer: (afterMs: number, status: number, headers: Record<string, string>, body: string) => void
  cut: (afterMs: number) => void
}

/** How a network carries between two: `hold` until it is mended, or `drop`. */
interface Channel {
  lastMs: number
  mode: 'ok' | 'hold' | 'drop'
  held: (() => void)[]
  latencyMs: number
}

export interface Cluster {
  kernel: Kernel
  random: () => number
  channels: Map<string, Channel>
  nodes: Map<string, Node>
  /** A backend's answer to a request, which reached it now. */
  onAsked: (asked: Asked) => void
  /** A node opens a stream of changes. */
  openStream: (node: Process, options: StreamOptions) => () => void
  /** keycast.yaml, as a node that starts reads it. */
  file: () => ReadNamespaces
}

export interface Node {
  process: Process
  name: string
  primary: ReturnType<typeof createPrimary>
  /** `processes`: those that run. */
  workers: { all: ReturnType<typeof createWorkers>; processes: Set<Process & { kill: () => void }> }
  takeOver: (next: ReadNamespaces) => void
  bound?: { from: FromGateways; sockets: Map<string, (parts: Buffer[]) => void>; unread: number }
}

function channelOf(cluster: Cluster, name: string): Channel {
  const known = cluster.channels.get(name)
  if (known) return known
  const channel: Channel = { lastMs: 0, mode: 'ok', held: [], latencyMs: 0.2 + cluster.random() * 2 }
  cluster.channels.set(name, channel)
  return channel
}

/** Carries something from one process to another, in order. */
function carry(
  cluster: Cluster,
  name: string,
  from: Process,
  to: () => Process | undefined,
  run: () => void,
  arrived = () => {},
) {
  const { kernel, random } = cluster
  const channel = channelOf(cluster, name)
  if (channel.mode === 'drop') return
  const sentAt = from.world.now()
  const deliver = () => {
    const process = to()
    if (!process?.isAlive) return
    channel.lastMs = Math.max(channel.lastMs + 0.0001, sentAt + channel.latencyMs * (0.5 + random()), kernel.now())
    arrived()
    kernel.schedule(process, channel.lastMs, run)
  }
  if (channel.mode === 'hold') channel.held.push(deliver)
  else deliver()
}

export function mend(cluster: Cluster, names: Iterable<string>) {
  for (const name of names) {
    const channel = channelOf(cluster, name)
    channel.mode = 'ok'
    for (const deliver of channel.held.splice(0)) deliver()
  }
}

/** Until they are mended nothing gets through. */
export function cut(cluster: Cluster, names: string[], mode: 'hold' | 'drop') {
  for (const name of names) channelOf(cluster, name).mode = mode
}

/** The channels of a gateway and a node. */
export const between = (gateway: string, node: string) => [
  `${gateway}>${node} requests`,
  `${gateway}>${node} beats`,
  `${node}>${gateway} answers`,
]

let sockets = 0

const dialOf =
  (cluster: Cluster, gateway: string, from: Process) => (name: string) => (message: (parts: Buffer[]) => void) => {
    const routingId = Buffer.from(`socket-${++sockets}`)
    let isOpen = true
    const node = () => cluster.nodes.get(name)
    const at = () => node()?.process
    return {
      async request(parts: Buffer[]) {
        let target: Node['bound']
        const arrived = () => {
          target = node()?.bound
          if (target) target.unread++
        }
        carry(
          cluster,
          `${gateway}>${name} requests`,
          from,
          at,
          () => {
            if (!target || node()?.bound !== target) return
            target.unread--
            target.from.request(parts)
          },
          arrived,
        )
        return true
      },
      beat(part: Buffer) {
        carry(cluster, `${gateway}>${name} beats`, from, at, () => {
          const bound = node()?.bound
          bound?.sockets.set(routingId.toString(), answer =>
            carry(
              cluster,
              `${name}>${gateway} answers`,
              node()?.process as Process,
              () => from,
              () => isOpen && message(answer),
            ),
          )
          bound?.from.beat(part, routingId)
        })
      },
      close() {
        isOpen = false
        carry(
          cluster,
          `${gateway}>${name} beats`,
          from,
          at,
          () => void node()?.bound?.sockets.delete(routingId.toString()),
        )
      },
    }
  }

/** @returns as createBackbone of a gateway */
export const backboneOf =
  (cluster: Cluster, gateway: string, process: Process, found: (found: (names: string[]) => void) => void) =>
  (events: any) =>
    createValuesBackbone({
      ...process.world,
      nodeSource: {
        async start(each) {
          found(each)
        },
        stop() {},
      },
      dialOf: dialOf(cluster, gateway, process) as any,
      events,
      log: silent,
    })

const CREDIT = 2_000

export async function startNode(
  cluster: Cluster,
  name: string,
  { workers: count = 2, inFlightMax = 8, deltaBytesMax = 0, cacheBytesMax = 2 ** 26 } = {},
): Promise<Node> {
  const { kernel, random } = cluster
  const process = kernel.create(name)
  const { world } = process
  const live = createLiveNamespaces(cluster.file())
  const { fetched: namespaces } = live
  const wheel = createTimerWheel(world)
  const node = { process, name } as Node
  const bind = async (from: FromGateways) => {
    const bound = { from, sockets: new Map(), unread: 0 }
    node.bound = bound
    return {
      hasReadAll: async () => bound.unread === 0,
      send(routingId: Buffer, parts: Buffer[], failed: () => void) {
        const deliver = bound.sockets.get(routingId.toString())
        if (deliver) deliver(parts)
        else queueMicrotask(failed)
      },
      async close() {},
    }
  }
  const hub = createHub({ codec: valuesCodec, bind, ...world, log: silent })
  const workers = createWorkers({
    count,
    wheel,
    metrics: ignoring,
    log: silent,
    readThread: () => undefined,
    ...world,
  })
  const changes = createChanges({
    namespaces,
    tokens: { authorizationOf: () => undefined, refused() {} },
    markDue: hub.tell,
    metrics: { event() {}, opened() {} } as any,
    log: silent,
    openStream: options => cluster.openStream(process, options),
    ...world,
  })
  const primary = createPrimary({
    changes,
    namespaces,
    pool: workers,
    markDue: hub.tell,
    wheel,
    metrics: ignoring,
    settings: { inFlightMax, cacheBytesMax, waitsMax: 1_000 },
    tokens: { authorizationOf: () => undefined, refused() {} },
    async post() {
      return { kind: 'taken' }
    },
    log: silent,
    ...world,
  })
  const questions = createQuestions({
    kind: authorizeQuestions(namespaces),
    pool: workers,
    cap: 8,
    inTurns: createInTurns({ wheel, now: world.now }),
    metrics: ignoring,
    failureLog: ignoring,
    ...world,
  })
  const authorize = createAuthorize({
    namespaces,
    questions,
    tellDecision: hub.tellResult as any,
    logNobody() {},
    metrics: ignoring,
    now: world.now,
    random,
  })
  const processes: Node['workers']['processes'] = new Set()
  Object.assign(node, { primary, workers: { all: workers, processes } })
  node.takeOver = next => {
    const changed = live.take(next)
    questions.renew()
    primary.reconfigure(changed)
  }
  let workerId = 0
  const fork = (onExit: (how: any) => void) => {
    const id = ++workerId
    const worker = Object.assign(kernel.create(`${name} worker ${id}`), { kill })
    worker.stalls = process.stalls
    processes.add(worker)
    const routingId = Buffer.from(`worker-${name}-${id}`)
    function kill() {
      if (!worker.isAlive) return
      worker.end()
      processes.delete(worker)
      kernel.schedule(process, kernel.now() + 1 + random() * 5, () => onExit({ code: null, signal: 'SIGKILL' }))
    }
    kernel.schedule(worker, kernel.now() + 5 + random() * 50, () => begin(worker, id, routingId))
    return { id, pid: undefined, disconnect: kill, kill }
  }
  const toWorker = new Map<string, (parts: Buffer[]) => void>()
  function begin(worker: Process, id: number, routingId: Buffer) {
    const up = `${worker.name} up`
    const down = `${worker.name} down`
    channelOf(cluster, up).latencyMs = channelOf(cluster, down).latencyMs = 0.1
    const openWorkSocket = (onLease: any): any => {
      toWorker.set(routingId.toString(), parts => {
        carry(
          cluster,
          down,
          process,
          () => worker,
          () => {
            for (const { message, body } of decodeLeases(parts)) onLease(message, body)
          },
        )
      })
      const batch = batchPerTurn(worker.world.turn, (sendings: any[]) => {
        const parts = encodeWork(sendings)
        carry(
          cluster,
          up,
          worker,
          () => process,
          () => {
            for (const { message, body, delta } of decodeFromWorker(parts))
              workers.onMessage(routingId, message, body, delta)
          },
        )
        for (const { taken } of sendings) taken()
      })
      return {
        send: (message: any, body: any, delta: any) =>
          new Promise<void>(taken => batch.add({ message, body, delta, taken }, undefined)),
        close() {},
      }
    }
    const connections: any = {
      send: (exchange: Exchange) =>
        new Promise((resolve, reject) => {
          let isOver = false
          const { world } = worker
          const cancel = world.after(exchange.timeoutMs, () => world.turn(() => exchange.fail('deadline')))
          const connection = {
            destroy() {
              isOver = true
            },
            release() {
              isOver = true
            },
            isBroken: false,
          }
          exchange.begin(connection, resolve as any, reject, cancel, world.hostNow)
          exchange.onRequestStart()
          const askedMs = exchange.askedAt as number
          const isGone = () => isOver || !worker.isAlive
          const asked: Asked = {
            node: name,
            worker,
            method: exchange.method,
            url: exchange.url,
            headers: exchange.headers,
            atMs: askedMs + 0.3,
            isOver: isGone,
            answer(afterMs, status, headers, body) {
              kernel.schedule(worker, kernel.now() + 0.3 + afterMs, () => {
                if (isOver) return
                exchange.onResponseStart(null, status, headers)
                if (body.length > 0) exchange.onResponseData(null, Buffer.from(body))
                exchange.onResponseEnd()
              })
            },
            cut(afterMs) {
              kernel.schedule(worker, kernel.now() + 0.3 + afterMs, () => {
                if (!isOver) exchange.onResponseError(null, Object.assign(new Error('cut'), { code: 'ECONNRESET' }))
              })
            },
          }
          // The backend never stands still.
          kernel.schedule(backend, asked.atMs, () => cluster.onAsked(asked))
        }),
    }
    startWorker({
      ...world,
      ...worker.world,
      openWorkSocket,
      puller: createPuller({ ...worker.world, connections }),
      asker: createAsker({ ...worker.world, connections }),
      deltas: createDeltas({ bytesMax: deltaBytesMax, now: worker.world.now }),
      id,
      credit: CREDIT,
      beatMs: 1_000,
      usage: () => ({ cpuMs: 0, residentBytes: 0 }),
      log: {
        error({ err }: { err: Error }) {
          throw err
        },
      } as never,
    })
  }
  const backend = kernel.create('backend')
  await kernel.within(process, () => {
    void workers
      .start(
        {
          fork: fork as any,
          send(routingId, lease, body) {
            toWorker.get(routingId.toString())?.(encodeWork([{ message: lease, body }]))
          },
        },
        () => {
          primary.fetches.startAll()
          questions.startAll()
        },
      )
      .then(() => {
        primary.viewers.start()
        return hub.start({
          ...primary.hubEvents,
          onCommand(link: string, id: string, command: any, leftMs: number, payer: any) {
            if (command.type === 'authorize') return authorize.onCommand(link, id, command, leftMs, payer)
            if (leftMs <= 0) return
            if (command.type !== 'ask') hub.tellResult(link, id, primary.handOver(command as HandedOver) as any)
          },
        } as any)
      })
  })
  cluster.nodes.set(name, node)
  return node
}

/** Its memory is gone, and its workers end. */
export function killNode(cluster: Cluster, node: Node) {
  node.process.end()
  for (const worker of node.workers.processes) worker.end()
  node.bound = undefined
  if (cluster.nodes.get(node.name) === node) cluster.nodes.delete(node.name)
}
