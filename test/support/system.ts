// A whole Keycast on free ports: gateways and fetcher nodes as real processes, the simulated backend where asked for.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from './cleanup.ts'
import { eventually } from './deadline.ts'
import { freePorts } from './free-ports.ts'
import { ask } from './http.ts'
import { startService } from './processes.ts'

export const API_TOKEN = 'a-token-for-tests'

/**
 * @typedef {import('./processes.ts').ServiceProcess} ServiceProcess
 * @typedef {Awaited<ReturnType<typeof startSystem>>} System
 * @typedef {Awaited<ReturnType<System['startGateway']>>} Gateway
 * @typedef {Awaited<ReturnType<System['startFetcher']>>} Fetcher
 *
 * A namespace as in keycast.yaml; `source` is http where it is not given.
 * @typedef {{ url: string, refresh?: string | number, maxAge?: string, timeout?: string, maxBytes?: string,
 *   headers?: Record<string, string>, ids?: { segments: number }, per?: 'user', credentials?: 'viewer',
 *   authorize?: { url: string, method?: 'HEAD' | 'GET', keep?: string } }} NamespaceSettings
 */

/**
 * @param {object} options
 * @param {Record<string, NamespaceSettings>} options.namespaces
 * @param {object | null} [options.access] as in keycast.yaml: anybody may read everything, unless given; `null`: no such
 *   section
 * @param {number} [options.gateways]
 * @param {number} [options.fetchers] nodes
 * @param {Record<string, string>} [options.env] of gateways and fetchers
 * @param {Record<string, string>} [options.fetcherEnv] of fetchers alone
 */
export async function startSystem({
  namespaces,
  access,
  gateways: gatewayCount = 1,
  fetchers: fetcherCount = 1,
  env = {},
  fetcherEnv = {},
}) {
  /** @type {ServiceProcess[]} */
  const services = []
  const common = { KEYCAST_CONFIG: writeConfig(namespaces, access), API_TOKEN, ...env }

  /** @param {{ requestsPort: number, answersPort: number }} [given] those of a node that is to come back */
  const startFetcher = async given => {
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
      /** @param {string} name */
      metric: name => readMetric(`http://127.0.0.1:${metricsPort}`, name),
    }
  }

  /** @param {string[]} nodes @param {Record<string, string>} [env] of this gateway alone */
  const startGateway = async (nodes, env = {}) => {
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

      /** Says that the backend's content changed. @param {string[]} keys */
      async refresh(keys) {
        const body = JSON.stringify({ keys })
        const response = await ask(`${internal}/v1/refresh`, { method: 'POST', headers, body })
        if (response.status !== 202) throw new Error(`refresh: ${response.status} ${response.body}`)
      },

      /** "Why is this stale?" @param {string} key @returns {Promise<any>} */
      async inspect(key) {
        return (await ask(`${internal}/v1/keys/${encodeURIComponent(key)}`, { headers })).json()
      },

      /** @param {string} name */
      metric: name => readMetric(internal, name),
    }
    await eventually(async () => (await ask(`${internal}/health/ready`)).status === 200, 'the gateway getting ready')
    return gateway
  }

  const fetchers = await Promise.all(Array.from({ length: fetcherCount }, () => startFetcher()))
  const nodes = fetchers.map(({ node }) => node)
  const gateways = await Promise.all(Array.from({ length: gatewayCount }, () => startGateway(nodes)))
  return {
    fetchers,
    gateways,
    nodes,
    startFetcher,
    startGateway,
    /** Kills all of it, where a file goes on with another system. */
    stop: () => Promise.all(services.map(service => service.kill())),
  }
}

/** A fetcher node as FETCHER_NODES names it. @param {{ requestsPort: number, answersPort: number }} ports */
export function nodeAt({ requestsPort, answersPort }) {
  return `127.0.0.1:${requestsPort}:${answersPort}`
}

/**
 * The simulated backend, with its own counters.
 *
 * @param {Record<string, string>} [env]
 */
export async function startProvider(env = {}) {
  const process = await startService('data-provider', { ...env, PROVIDER_PORT: '0' })
  const origin = `http://127.0.0.1:${process.listening.port}`
  return {
    process,
    origin,
    /** @returns {Promise<any>} */
    stats: async () => (await ask(`${origin}/stats`)).json(),
    reset: () => ask(`${origin}/stats/reset`, { method: 'POST' }),
  }
}

/**
 * @param {Record<string, NamespaceSettings>} namespaces
 * @param {object | null} [access] `null`: the section is left out
 * @returns {string} the path of a keycast.yaml
 */
export function writeConfig(namespaces, access = { anonymous: { read: ['*:**'] } }) {
  const directory = mkdtempSync(join(tmpdir(), 'keycast-test-'))
  atEnd(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'keycast.yaml')
  const entries = Object.entries(namespaces).map(([name, settings]) => [name, { source: 'http', ...settings }])
  // JSON is YAML.
  writeFileSync(path, JSON.stringify({ namespaces: Object.fromEntries(entries), ...(access && { access }) }))
  return path
}

/**
 * The sum of a metric over its labels; `name` may carry some (`fetches_total{lane="cold"}`).
 *
 * @param {string} origin @param {string} name
 */
async function readMetric(origin, name) {
  const { body } = await ask(`${origin}/metrics`)
  return body
    .toString()
    .split('\n')
    .filter(line => line.startsWith(name) && ' {'.includes(line[name.length]))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
