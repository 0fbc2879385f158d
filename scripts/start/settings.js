// What `npm start` can be told. The services' own settings reach them too: they inherit the environment.
import { common, setting } from '@keycast/service'
import { settings as provider } from '../../services/data-provider/settings.js'
import { settings as fetcher } from '../../services/fetcher/settings.js'
import { settings as gateway } from '../../services/gateway/settings.js'

/** Each is a process with its own ports; more than this is no longer one host's demo. */
const GATEWAYS_MAX = 16

export const settings = {
  gateways: setting.integer({
    env: 'GATEWAYS',
    default: 1,
    min: 1,
    max: GATEWAYS_MAX,
    unit: 'gateways',
    doc: 'Gateways to start; the ports of further ones are 10 apart.',
  }),
  providers: setting.integer({
    env: 'PROVIDERS',
    default: 1,
    max: 1,
    doc: 'Simulated backends to start. 0: none, where keycast.yaml names a backend of yours.',
  }),
  gatewayHost: gateway.host,
  gatewayPort: gateway.port,
  gatewayInternalHost: gateway.internalHost,
  gatewayInternalPort: gateway.internalPort,
  fetcherHost: fetcher.host,
  fetcherRequestsPort: fetcher.requestsPort,
  fetcherAnswersPort: fetcher.answersPort,
  fetcherMetricsHost: fetcher.metricsHost,
  fetcherMetricsPort: fetcher.metricsPort,
  providerHost: provider.host,
  providerPort: provider.port,
  logFormat: setting.choice({
    env: 'LOG_FORMAT',
    values: ['pretty', 'json'],
    default: 'pretty',
    doc: "pretty: the services' log lines for a person. json: as they are written.",
  }),
  shutdownGraceMs: common.shutdownGraceMs,
  pm2Home: setting.text({
    env: 'PM2_HOME',
    default: '',
    doc: 'Folder of the pm2 that is started for this; another pm2 is never touched. Empty: .pm2 beside package.json.',
  }),
}

/** @typedef {import('@keycast/service').Config<typeof settings>} Config */
