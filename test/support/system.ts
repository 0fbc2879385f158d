// A whole Keycast on free ports: gateways and fetcher nodes as real processes, the simulated backend where asked for.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from './cleanup.ts'
import { eventually } from './deadline.ts'
import { freePorts } from './free-ports.ts'
import { ask } from './http.ts'
import { type ServiceProcess, startService } from './processes.ts'

export const API_TOKEN = 'a-token-for-tests'

/**
 * A `timeout` of namespaces whose backend is the test itself: where it stands still for seconds it must not be taken for a
 * backend that hangs.
 */
export const PATIENCE = '20s'

export type System = Awaited<ReturnType<typeof startSystem>>

export type Gateway = Awaited<ReturnType<System['startGateway']>>

/** A namespace as in keycast.yaml; `source` is http where it is not given. */
export interface NamespaceSettings {
  url?: string
  batch?: { url: string; max?: number; items: string; id: string }
  method?: 'POST'
  body?: Record<string, unknown>
  refresh?: string | number
  maxAge?: string
  timeout?: string
  maxBytes?: string
  headers?: Record<string, string>
  redirects?: 'same-origin'
  token?: { file: string } | { url: string; client: string; secret: string }
  query?: string[]
  asHeaders?: Record<string, string>
  ids?: { segments: number }
  changes?: { sse: string }
  per?: 'user'
  credentials?: 'viewer'
  authorize?: { url: string; method?: 'HEAD' | 'GET'; keep?: string }
  notify?: { url: string; secretFiles: string[]; viewers: true }
}

interface Options {
  namespaces: Record<string, NamespaceSettings>
  /** As in keycast.yaml: anybody may read everything, unless given; `null`: no such section. */
  access?: object | null
  gateways?: number
  /** Nodes. */
  fetchers?: number
  /** Of gateways and fetchers. */
  env?: Record<string, string>
  /** Of fetchers alone. */
  fetcherEnv?: Record<string, string>
}

export async function startSystem({
  namespaces,
  access,
  gateways: gatewayCount = 1,
  fetchers: fetcherCount = 1,
  env = {},
  fetcherEnv = {},
}: Options) {
  const services: ServiceProcess[] = []
  const configPath = writeConfig(namespaces, access)
  const common = { KEYCAST_CONFIG: configPath, API_TOKENS: `test:admin:${API_TOKEN}`, ...env }

  /** @param given those of a node that is to come back */
  const startFetcher = async (given?: { requestsPort: number; answersPort: number }) => {
    const [requestsPort, answersPort] = given ? [given.requestsPort, given.answersPort] : await freePorts(2)
    const process = await startService('fetcher', {
      FETCHER_WORKERS: '1',
      // It takes a third of a worker's start, and no test asks how fast the first keys are.
      FETCHER_WARM_UP_PULLS: '0',
      ...common,
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

  /** @param env of this gateway alone */
  const startGateway = async (nodes: string[], env: Record<string, string> = {}) => {
    const process = await startService('gateway', {
      ...common,
      ...env,
      FETCHER_NODES: nodes.join(','),
      GATEWAY_PORT: String((await freePorts(1))[0]),
      GATEWAY_INTERNAL_PORT: '0',
    })
    services.push(process)
    const { port, internalPort } = process.listening
    const internal = `http://127.0.0.1:${internalPort}`
    const headers = { authorization: `Bearer ${API_TOKEN}`, 'content-type': 'application/json' }
    const gateway = {
      process,
      port,
      internal,
      url: `ws://127.0.0.1:${port}/ws`,
      http: `http://127.0.0.1:${port}`,

      /** Says that the backend's content changed. */
      async refresh(keys: string[], users?: string[]) {
        const body = JSON.stringify({ keys, users })
        const response = await ask(`${internal}/v1/refresh`, { method: 'POST', headers, body })
        if (response.status !== 202) throw new Error(`refresh: ${response.status} ${response.body}`)
      },

      /** Hands over a value. */
      put: (key: string, body: string, given: Record<string, string> = {}) =>
        ask(`${internal}/v1/values/${key}`, { method: 'PUT', headers: { ...headers, ...given }, body }),

      /** Hands over many, each a line. */
      putAll: (lines: object[]) =>
        ask(`${internal}/v1/values`, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/jsonl' },
          body: lines.map(line => JSON.stringify(line)).join('\n'),
        }),

      /** Says that a key has no value. */
      remove: (key: string) =>
        ask(`${internal}/v1/values/${key}`, { method: 'DELETE', headers: { authorization: headers.authorization } }),

      /** "Why is this stale?" */
      async inspect(key: string): Promise<any> {
        return (await ask(`${internal}/v1/keys/${encodeURIComponent(key)}`, { headers })).json()
      },

      metric: (name: string) => readMetric(internal, name),

      /** Waits until it gives keys to all nodes: on a busy machine it may have taken one for lost, for a while. */
      async usesAllNodes() {
        const inUse = async () =>
          (await gateway.metric('keycast_gateway_fetcher_nodes_alive')) -
          (await gateway.metric('keycast_gateway_nodes_held{service="fetcher"}'))
        await eventually(async () => (await inUse()) === nodes.length, 'a gateway that uses all nodes')
      },
    }
    await eventually(async () => (await ask(`${internal}/health/ready`)).status === 200, 'the gateway getting ready')
    return gateway
  }

  const fetchers = await Promise.all(Array.from({ length: fetcherCount }, () => startFetcher()))
  const nodes = fetchers.map(({ node }) => node)
  const gateways = await Promise.all(Array.from({ length: gatewayCount }, () => startGateway(nodes)))
  return {
    /** The keycast.yaml of all of it, unless `env` names another. */
    configPath,
    fetchers,
    gateways,
    nodes,
    startFetcher,
    startGateway,
    /** Kills all of it, where a file goes on with another system. */
    stop: () => Promise.all(services.map(service => service.kill())),
  }
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
 * @param access `null`: the section is left out
 * @returns the path of a keycast.yaml
 */
export function writeConfig(
  namespaces: Record<string, NamespaceSettings>,
  access: object | null = { anonymous: { read: ['*:**'] } },
): string {
  const directory = mkdtempSync(join(tmpdir(), 'keycast-test-'))
  atEnd(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'keycast.yaml')
  writeFileSync(path, configText(namespaces, access))
  return path
}

/** JSON, which is YAML. @param access `null`: the section is left out */
export function configText(
  namespaces: Record<string, NamespaceSettings>,
  access: object | null = { anonymous: { read: ['*:**'] } },
): string {
  const entries = Object.entries(namespaces).map(([name, settings]) => [name, { source: 'http', ...settings }])
  return JSON.stringify({ namespaces: Object.fromEntries(entries), ...(access && { access }) })
}

/** The sum of a metric over its labels; `name` may carry some (`fetches_total{lane="cold"}`). */
async function readMetric(origin: string, name: string) {
  const series = await readSeries(origin, name)
  return series.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

async function readSeries(origin: string, name: string) {
  const { body } = await ask(`${origin}/metrics`)
  const lines = body.toString().split('\n')
  return lines.filter(line => line.startsWith(name) && ' {'.includes(line[name.length]))
}
