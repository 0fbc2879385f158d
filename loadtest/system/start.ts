// Starts a system to load (`--start`): the services as processes on free loopback ports, or a reference program.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Signing } from '../generator/tokens.ts'
import { writeConfig } from './keycast-config.ts'
import { startEdge, startProxy, startValkey } from './other-programs.ts'
import { childrenOf } from './proc.ts'
import { createProcesses, type Processes, SystemError } from './processes.ts'
import { startRelay } from './relay.ts'
import type { Watched } from './watcher.ts'

const API_TOKEN = randomUUID()
/** Arguments of node, as `npm start` and the images give them. */
const GATEWAY = ['--max-semi-space-size=4', 'services/gateway/main.js']

/** The programs of reference/: file, name for people, path of the WebSocket, and how many processes at least share its port. */
export const references = Object.freeze({
  bare: { file: 'bare-sender', label: 'bare sender', path: '/ws', workers: 1 },
  naive: { file: 'naive', label: 'naive server', path: '/ws', workers: 1 },
  cluster: { file: 'naive', label: 'naive server, node:cluster', path: '/ws', workers: 2 },
  'socket.io': { file: 'socket-io', label: 'Socket.IO', path: '/socket.io/', workers: 1 },
  socketcluster: { file: 'socketcluster', label: 'SocketCluster', path: '/socketcluster/', workers: 1 },
  http: { file: 'http', label: 'plain HTTP server', path: '/', workers: 1 },
})

/** A gateway and a fetcher find each other within a second or two, on a machine that is not busy. */
const READY_MS = 60_000
const READY_LOOK_MS = 50

const DOCUMENT_BYTES = 1_000

/** The content that the system is to serve. */
export interface Content {
  /** 1,000 unless given. */
  documentBytes?: number
  /** The backend is the one of `reference/`, which takes little CPU time and never changes anything. */
  still?: boolean
  /** The backend is the one of `reference/` whose values are set by PUT. */
  told?: boolean
  /**
   * A cache stands before the gateways, and what the last of them hears of the fetcher can be delayed. Viewers ask over
   * HTTP.
   */
  edge?: boolean
  /** How often a document changes; never unless given. */
  changeMs?: number
  /** Of the backend. */
  latencyMs?: number
  /** How often a watched tick:… key is asked for. */
  tickMs?: number
  /** How often text:… keys are asked for; a second unless given. */
  refreshMs?: number
  /** Nodes; one unless given. */
  fetchers?: number
  /** Of gateways and fetchers. */
  settings?: Record<string, string>
  /** Documents are asked for once, and then only when told. */
  idle?: boolean
  /** A journal runs, too, and anybody may use room:…. */
  rooms?: { log: 'lmdb' | 'memory' | 'valkey' }
  /** The journal keeps values that are handed over, too: of handed:… */
  pushed?: boolean
  /** Gateways can be told to collect their garbage, so that their memory can be compared. */
  collectable?: boolean
}

type SystemKind = 'keycast' | keyof typeof references

export interface System {
  kind: SystemKind | 'given'
  /** The addresses that clients connect to. */
  urls: string[]
  /** The signing key, if clients bring tokens. */
  signing?: Signing
  /** The backend's HTTP address. */
  providerUrl?: string
  /** Says to Keycast, as a backend may, that keys have changed. */
  tellChanged?: (keys: string[]) => Promise<void>
  /** The gateways' internal listeners, and a token for all calls there. */
  calls?: { origins: string[]; apiToken: string }
  /** The nodes of a system that was started. */
  fetchers?: { metricsUrl: string; kill: () => void }[]
  /** Of the cache before the gateways. */
  edgeUrl?: string
  /** Resolves once the last gateway hears of the fetcher's answers so much later. */
  delayGateway?: (ms: number) => Promise<void>
  /** Kills a gateway, or a worker process of a reference, where there are several. */
  killGateway?: () => void
  watched: Watched[]
  /** Resolves with the name of a process that ended before `stop`. */
  died: Promise<string>
  stop: () => Promise<void>
}

export async function startSystem({
  kind,
  gateways,
  tls,
  content,
  signing,
}: {
  kind: SystemKind
  gateways: number
  tls: boolean
  content: Content
  signing?: Signing
}): Promise<System> {
  const processes = createProcesses()
  try {
    const parts =
      kind === 'keycast'
        ? await startKeycast(processes, { gateways, tls, content, signing })
        : await startReference(processes, kind, { gateways, tls, content })
    return { kind, signing, ...parts, died: processes.died, stop: processes.stop }
  } catch (error) {
    await processes.stop()
    throw error
  }
}

async function startKeycast(
  processes: Processes,
  { gateways: count, tls, content, signing }: { gateways: number; tls: boolean; content: Content; signing?: Signing },
) {
  const directory = processes.directory()
  const provider = await startBackend(processes, content)
  const providerUrl = `http://127.0.0.1:${provider.listening.port}`
  const KEYCAST_CONFIG = join(directory, 'keycast.yaml')
  writeConfig(KEYCAST_CONFIG, { providerUrl, content, signing })

  const fetcherCount = content.fetchers ?? 1
  const fetchers = await Promise.all(
    Array.from({ length: fetcherCount }, (_, number) =>
      processes.start(fetcherCount === 1 ? 'fetcher' : `fetcher ${number + 1}`, ['services/fetcher/main.js'], {
        KEYCAST_CONFIG,
        FETCHER_REQUESTS_PORT: '0',
        FETCHER_ANSWERS_PORT: '0',
        FETCHER_METRICS_PORT: '0',
        ...content.settings,
      }),
    ),
  )
  const nodes = fetchers.map(({ pid, name, listening: { requestsPort, answersPort, metricsPort } }) => ({
    pid,
    name,
    address: `127.0.0.1:${requestsPort}:${answersPort}`,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
  }))
  const relay = content.edge ? await startRelay(fetchers[0].listening.answersPort) : undefined
  const addresses = nodes.map(({ address }) => address).join()
  const delayed = relay && `127.0.0.1:${fetchers[0].listening.requestsPort}:${relay.port}`
  const journal = content.rooms && (await startJournal(processes, { ...content.rooms, KEYCAST_CONFIG, directory }))
  const gateways = await Promise.all(
    Array.from({ length: count }, (_, number) =>
      processes.start(count === 1 ? 'gateway' : `gateway ${number + 1}`, GATEWAY, {
        KEYCAST_CONFIG,
        API_TOKENS: `loadtest:admin:${API_TOKEN}`,
        FETCHER_NODES: delayed && number === count - 1 ? delayed : addresses,
        ...(journal && { JOURNAL_NODES: journal.node }),
        GATEWAY_PORT: '0',
        GATEWAY_INTERNAL_PORT: '0',
        // This limit exists to stop just such a flood.
        GATEWAY_REQUESTS_PER_SECOND_MAX: '1000000000',
        // All clients come from this host.
        GATEWAY_SESSIONS_PER_ADDRESS_MAX: '0',
        ...content.settings,
        ...inspection(content),
      }),
    ),
  )
  // A gateway listens before it hears a fetcher. Requests until then would wait, and spoil the latencies.
  const found = { fetcher: nodes.length, ...(journal && { journal: 1 }) }
  await Promise.all(gateways.map(({ name, listening }) => untilLinked(name, listening.internalPort, found)))
  const ports = gateways.map(({ listening }) => listening.port as number)
  const proxy = tls ? await startProxy(processes, ports, directory) : undefined
  const edge = content.edge ? await startEdge(processes, ports, directory) : undefined
  const living = [...gateways]
  return {
    urls: proxy ? [proxy.url] : ports.map(port => `ws://127.0.0.1:${port}/ws`),
    providerUrl,
    fetchers: nodes.map(({ pid, metricsUrl }) => ({ metricsUrl, kill: () => processes.kill(pid) })),
    edgeUrl: edge?.url,
    delayGateway: relay?.delay,
    killGateway: () => processes.kill((living.shift() as (typeof living)[number]).pid),
    calls: {
      origins: gateways.map(({ listening }) => `http://127.0.0.1:${listening.internalPort}`),
      apiToken: API_TOKEN,
    },
    tellChanged: (keys: string[]) => tellChanged(living[0].listening.internalPort, keys),
    watched: [
      ...gateways.map(({ name, pid, listening, inspectorUrl }) => ({
        name,
        role: 'gateway',
        pid,
        inspectorUrl,
        metricsUrl: `http://127.0.0.1:${listening.internalPort}/metrics`,
      })),
      ...nodes.map(({ name, pid, metricsUrl }) => ({ name, role: 'fetcher', pid, metricsUrl })),
      ...(journal ? journal.watched : []),
      {
        name: provider.name,
        role: provider.name,
        pid: provider.pid,
        metricsUrl: content.still || content.told ? undefined : `${providerUrl}/metrics`,
      },
      ...(proxy ? [{ name: 'proxy', role: 'proxy', pid: proxy.pid }] : []),
      ...(edge ? [{ name: 'edge', role: 'edge', pid: edge.pid }] : []),
    ],
  }
}

function startBackend(
  processes: Processes,
  { still, told, documentBytes = DOCUMENT_BYTES, latencyMs = 0, changeMs = 0 }: Content,
) {
  if (still) {
    const options = ['--bytes', `${documentBytes}`, '--latency', `${latencyMs}`]
    return processes.start('backend', ['loadtest/reference/still-backend.ts', ...options], {})
  }
  if (told) return processes.start('backend', ['loadtest/reference/told-backend.ts'], {})
  return processes.start('data-provider', ['services/data-provider/main.js'], {
    PROVIDER_PORT: '0',
    PROVIDER_DOCUMENT_BYTES: String(documentBytes),
    PROVIDER_LATENCY_MS: String(latencyMs),
    PROVIDER_CHANGE_MS: String(changeMs),
  })
}

async function startJournal(
  processes: Processes,
  { log, KEYCAST_CONFIG, directory }: { log: 'lmdb' | 'memory' | 'valkey'; KEYCAST_CONFIG: string; directory: string },
) {
  const valkey = log === 'valkey' ? await startValkey(processes, directory) : undefined
  const { pid, listening } = await processes.start('journal', ['services/journal/main.js'], {
    KEYCAST_CONFIG,
    JOURNAL_LOG: log,
    JOURNAL_DATA: join(directory, 'journal'),
    ...(valkey && { VALKEY_URL: valkey.url }),
    JOURNAL_PUBLICATIONS_PORT: '0',
    JOURNAL_DELIVERIES_PORT: '0',
    JOURNAL_METRICS_PORT: '0',
  })
  const { publicationsPort, deliveriesPort, metricsPort } = listening
  return {
    node: `127.0.0.1:${publicationsPort}:${deliveriesPort}`,
    watched: [
      { name: 'journal', role: 'journal', pid, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` },
      ...(valkey ? [valkey.watched] : []),
    ],
  }
}

/**
 * Not by its health page: a gateway without a fetcher is ready, and serves what it holds.
 *
 * @param nodes the numbers that it must have found, by service
 */
async function untilLinked(name: string, internalPort: number, nodes: Record<string, number>) {
  const lines = Object.entries(nodes).map(([service, count]) => `\nkeycast_gateway_${service}_nodes_alive ${count}\n`)
  for (const giveUpMs = performance.now() + READY_MS; performance.now() < giveUpMs; ) {
    const metrics = await (await fetch(`http://127.0.0.1:${internalPort}/metrics`)).text()
    if (lines.every(line => metrics.includes(line))) return
    await new Promise(resolve => setTimeout(resolve, READY_LOOK_MS))
  }
  throw new SystemError(`${name} has not found ${Object.keys(nodes).join(' and ')} after ${READY_MS} ms`)
}

/** @param internalPort of a gateway */
async function tellChanged(internalPort: number, keys: string[]) {
  const response = await fetch(`http://127.0.0.1:${internalPort}/v1/refresh`, {
    method: 'POST',
    headers: { authorization: `Bearer ${API_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ keys }),
  })
  if (!response.ok) throw new Error(`POST /v1/refresh answered ${response.status}: ${await response.text()}`)
}

/** @param options `gateways`: processes that share its port */
async function startReference(
  processes: Processes,
  kind: keyof typeof references,
  { gateways, tls, content }: { gateways: number; tls: boolean; content: Content },
) {
  const { documentBytes = DOCUMENT_BYTES, tickMs = 500 } = content
  const { file, workers: workersMin } = references[kind]
  const workers = Math.max(workersMin, gateways)
  const { pid, listening, inspectorUrl } = await processes.start(
    file,
    [
      `loadtest/reference/${file}.ts`,
      ...['--port', '0', '--bytes', String(documentBytes), '--change', `${tickMs}ms`, '--workers', String(workers)],
    ],
    inspection(content),
  )
  const proxy = tls ? await startProxy(processes, [listening.port], processes.directory()) : undefined
  // Of several processes any may answer, so that their metrics would be those of another at each look.
  const metricsUrl = workers === 1 && kind !== 'http' ? `http://127.0.0.1:${listening.port}/metrics` : undefined
  return {
    urls: [proxy ? proxy.url : listening.url],
    killGateway: workers === 1 ? undefined : () => processes.kill(childrenOf(pid)[0]),
    watched: [
      { name: file, role: 'gateway', pid, inspectorUrl, metricsUrl },
      ...(proxy ? [{ name: 'proxy', role: 'proxy', pid: proxy.pid }] : []),
    ],
  }
}

/** The environment of a process that can be told to collect garbage. */
const inspection = ({ collectable }: Content): Record<string, string> =>
  collectable ? { NODE_OPTIONS: '--inspect=127.0.0.1:0' } : {}
