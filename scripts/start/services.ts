// The services to run: what pm2 is told, which ports each needs, which URL says that it is ready.
import type { Port } from './ports.ts'
import type { Config } from './settings.ts'

export interface App {
  name: string
  env: Record<string, string | number>
  [option: string]: unknown
}

export interface Service {
  name: string
  app: App
  ports: Port[]
  healthUrl: string
}

/**
 * @param apps of ecosystem.config.cjs
 * @param content of keycast.yaml: without rooms and values handed over no gateway asks a journal
 */
export function planServices(config: Config, apps: App[], { needsJournal }: { needsJournal: boolean }): Service[] {
  const needed = needsJournal ? apps : apps.filter(({ name }) => name !== 'journal')
  return needed.map(app => {
    const { name } = app
    const port = (host: string, port: number, variable: string): Port => ({ service: name, host, port, variable })
    if (name === 'data-provider') {
      const { providerHost, providerPort } = config
      return {
        name,
        app,
        ports: [port(providerHost, providerPort, 'PROVIDER_PORT')],
        healthUrl: healthAt(providerHost, providerPort),
      }
    }
    if (name === 'fetcher') {
      const { fetcherHost, fetcherMetricsHost, fetcherMetricsPort } = config
      return {
        name,
        app,
        ports: [
          port(fetcherHost, config.fetcherRequestsPort, 'FETCHER_REQUESTS_PORT'),
          port(fetcherHost, config.fetcherAnswersPort, 'FETCHER_ANSWERS_PORT'),
          port(fetcherMetricsHost, fetcherMetricsPort, 'FETCHER_METRICS_PORT'),
        ],
        healthUrl: healthAt(fetcherMetricsHost, fetcherMetricsPort),
      }
    }
    if (name === 'journal') {
      const { journalHost, journalMetricsHost, journalMetricsPort } = config
      return {
        name,
        app,
        ports: [
          port(journalHost, config.journalPublicationsPort, 'JOURNAL_PUBLICATIONS_PORT'),
          port(journalHost, config.journalDeliveriesPort, 'JOURNAL_DELIVERIES_PORT'),
          port(journalMetricsHost, journalMetricsPort, 'JOURNAL_METRICS_PORT'),
        ],
        healthUrl: healthAt(journalMetricsHost, journalMetricsPort),
      }
    }
    const { gatewayHost, gatewayInternalHost } = config
    const internalPort = Number(app.env.GATEWAY_INTERNAL_PORT)
    return {
      name,
      app,
      ports: [
        port(gatewayHost, Number(app.env.GATEWAY_PORT), 'GATEWAY_PORT'),
        port(gatewayInternalHost, internalPort, 'GATEWAY_INTERNAL_PORT'),
      ],
      healthUrl: healthAt(gatewayInternalHost, internalPort),
    }
  })
}

/** The address under which a listener can be reached, also one that listens on all addresses. */
export function reachable(host: string) {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function healthAt(host: string, port: number) {
  return `http://${reachable(host)}:${port}/health/ready`
}
