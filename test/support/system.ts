// A whole Keycast on free ports: gateways, fetcher nodes and journals as real processes, the simulated backend where asked for.
import { eventually } from './deadline.ts'
import { freePorts } from './free-ports.ts'
import { ask } from './http.ts'
import { startJournal } from './journal.ts'
import { type NamespaceSettings, writeConfig } from './keycast-yaml.ts'
import { type ServiceProcess, startService } from './processes.ts'

export const API_TOKEN = 'a-token-for-tests'

/**
 * A `timeout` of namespaces whose backend is the test itself: where it stands still for seconds it must not be taken for a
 * backend that hangs.
 */
export const PATIENCE = '20s'

export type System = Awaited<ReturnType<typeof startSystem>>

export type Gateway = Awaited<ReturnType<System['startGateway']>>

interface Options {
  namespaces: Record<string, NamespaceSettings>
  /** As in keycast.yaml: anybody may read everything, unless given; `null`: no such section. */
  access?: object | null
  gateways?: number
  /** Nodes. */
  fetchers?: number
  /** Several share a log, which `journalEnv` names. */
  journals?: number
  /** Of gateways and fetchers. */
  env?: Record<string, string>
  /** Of fetchers alone. */
  fetcherEnv?: Record<string, string>
  journalEnv?: Record<string, string>
}

export async function startSystem({
  namespaces,
  access,
  gateways: gatewayCount = 1,
  fetchers: fetcherCount = 1,
  journals: journalCount = 0,
  env = {},
  fetcherEnv = {},
  journalEnv = {},
}: Options) {
  const services: ServiceProcess[] = []
  const configPath = writeConfig(namespaces, access)
  const common = { KEYCAST_CONFIG: configPath, API_TOKENS: `test:admin:${API_TOKEN}` }

  /** @param given those of a node that is to come back */
  const startFetcher = async (given?: { requestsPort: number; answersPort: number }) => {
    const [requestsPort, answersPort] = given ? [given.requestsPort, given.answersPort] : await freePorts(2)
    const process = await startService('fetcher', {
      FETCHER_WORKERS: '1',
      // It takes a third of a worker's start, and no test asks how fast the first keys are.
      FETCHER_WARM_UP_PULLS: '0',
      ...common,
      ...env,
      ...fetcherEnv,
      FETCHER_REQUESTS_PORT: String(requestsPort),
      FETCHER_ANSWERS_PORT: String(answersPort),
      FETCHER_METRICS_PORT: '0',
    })
    services.push(process)
    const { metricsPort } = process.listening
    const ports = { requestsPort: process.listening.requestsPort, answersPort: process.listening.answersPort }
    return {
      process,
      ports,
      node: nodeAt(ports),
      metric: (name: string) => readMetric(`http://127.0.0.1:${metricsPort}`, name),
      /** The lines of a metric. */
      series: (name: string) => readSeries(`http://127.0.0.1:${metricsPort}`, name),
    }
  }

  /** @param own settings of this gateway alone, its nodes among them: all of the system unless given */
  const startGateway = async (own: Record<string, string> = {}) => {
    const settings: Record<string, string> = {
      ...common,
      ...(fetchers.length > 0 && { FETCHER_NODES: nodes.join() }),
      ...(journals.length > 0 && { JOURNAL_NODES: journals.map(({ node }) => node).join() }),
      GATEWAY_PORT: String((await freePorts(1))[0]),
      ...env,
      ...own,
      GATEWAY_INTERNAL_PORT: '0',
    }
    const process = await startService('gateway', settings)
    services.push(process)
    const { port, internalPort } = process.listening
    const internal = `http://127.0.0.1:${internalPort}`
    const authorization = `Bearer ${API_TOKEN}`
    const call = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
      ask(internal + path, { method, headers: { authorization, 'content-type': 'application/json', ...headers }, body })
    const gateway = {
      process,
      port: port as number,
      internal,
      url: `ws://127.0.0.1:${port}/ws`,
      http: `http://127.0.0.1:${port}`,

      /** A call of its internal listener. A text is sent as it is. */
      call: (path: string, body?: object | string, method = body ? 'POST' : 'GET') =>
        call(method, path, typeof body === 'object' ? JSON.stringify(body) : body),

      /** Says that the backend's content changed. */
      async refresh(keys: string[], users?: string[]) {
        const response = await gateway.call('/v1/refresh', { keys, users })
        if (response.status !== 202) throw new Error(`refresh: ${response.status} ${response.body}`)
      },

      /** Hands over a value. */
      put: (key: string, body: string, headers: Record<string, string> = {}) =>
        call('PUT', `/v1/values/${key}`, body, headers),

      /** Hands over many, each a line. */
      putAll: (lines: object[]) =>
        call('POST', '/v1/values', lines.map(line => JSON.stringify(line)).join('\n'), {
          'content-type': 'application/jsonl',
        }),

      /** Says that a key has no value. */
      remove: (key: string, headers: Record<string, string> = {}) =>
        call('DELETE', `/v1/values/${key}`, undefined, headers),

      /** "Why is this stale?" */
      async inspect(key: string): Promise<any> {
        return (await gateway.call(`/v1/keys/${encodeURIComponent(key)}`)).json()
      },

      metric: (name: string) => readMetric(internal, name),

      /** Waits until it gives keys to all nodes: on a busy machine it may have taken one for lost, for a while. */
      async usesAllNodes() {
        const inUse = async () =>
          (await gateway.metric('keycast_gateway_fetcher_nodes_alive')) -
          (await gateway.metric('keycast_gateway_nodes_held{service="fetcher"}'))
        const count = settings.FETCHER_NODES.split(',').length
        await eventually(async () => (await inUse()) === count, 'a gateway that uses all nodes')
      },
    }
    await eventually(async () => (await gateway.call('/health/ready')).status === 200, 'the gateway getting ready')
    const journalsAlive = () => gateway.metric('keycast_gateway_journal_nodes_alive')
    // Of those that the test itself has named some may be away.
    const wanted = settings.JOURNAL_NODES ? Math.max(1, journals.length) : 0
    await eventually(async () => wanted === 0 || (await journalsAlive()) >= wanted, 'the journals answering')
    return gateway
  }

  const journals = await Promise.all(
    Array.from({ length: journalCount }, () => startJournal({ config: configPath, env: journalEnv })),
  )
  const fetchers = await Promise.all(Array.from({ length: fetcherCount }, () => startFetcher()))
  const nodes = fetchers.map(({ node }) => node)
  const gateways = await Promise.all(Array.from({ length: gatewayCount }, () => startGateway()))
  return {
    /** The keycast.yaml of all of it, unless `env` names another. */
    configPath,
    fetchers,
    gateways,
    journal: journals[0],
    journals,
    nodes,
    startFetcher,
    startGateway,
    /** Kills its gateways and fetchers, where a file goes on with another system. */
    stop: () => Promise.all(services.map(service => service.kill())),
  }
}

/** Rooms of a journal, into which anybody may publish, without a fetcher. */
export const startRooms = ({
  namespaces = { room: {} },
  access = { anonymous: { read: ['*:**'], publish: ['*:**'] } },
  journals = 1,
  ...rest
}: Omit<Partial<Options>, 'fetchers'> = {}) => {
  const entries = Object.entries(namespaces).map(([name, settings]) => [name, { source: 'journal', ...settings }])
  return startSystem({ namespaces: Object.fromEntries(entries), access, fetchers: 0, journals, ...rest })
}

/** A fetcher node as FETCHER_NODES names it. */
export function nodeAt({ requestsPort, answersPort }: { requestsPort: number; answersPort: number }) {
  return `127.0.0.1:${requestsPort}:${answersPort}`
}

/** The simulated backend, with its own counters. */
export async function startProvider(env: Record<string, string> = {}) {
  const process = await startService('data-provider', { ...env, PROVIDER_PORT: '0' })
  const origin = `http://127.0.0.1:${process.listening.port}`
  return {
    process,
    origin,
    stats: async (): Promise<any> => (await ask(`${origin}/stats`)).json(),
    reset: () => ask(`${origin}/stats/reset`, { method: 'POST' }),
  }
}

/**
 * The sum of a metric over its labels; `name` may carry some (`fetches_total{lane="cold"}`).
 *
 * @throws for a name that is none of the service's: it would be 0 for ever
 */
async function readMetric(origin: string, name: string) {
  const series = await readSeries(origin, name)
  return series.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

async function readSeries(origin: string, name: string) {
  const { body } = await ask(`${origin}/metrics`)
  const lines = body.toString().split('\n')
  const [metric] = name.split('{')
  const isThere = [metric, metric.replace(/_(count|sum|bucket)$/, '')].some(each =>
    lines.some(line => line.startsWith(`# TYPE ${each} `)),
  )
  if (!isThere) throw new Error(`${origin}/metrics has no ${metric}`)
  return lines.filter(line => line.startsWith(name) && ' {'.includes(line[name.length]))
}
