// The settings of `npm start`. The services inherit the environment, and so their own settings.
import { type Config as ConfigOf, common, setting } from '@keycast/service'
import { settings as provider } from '../../services/data-provider/settings.ts'
import { settings as fetcher } from '../../services/fetcher/settings.ts'
import { settings as gateway } from '../../services/gateway/settings.ts'
import { settings as journal } from '../../services/journal/settings.ts'

/** Each gateway is a process with ports of its own; more than this is no job for one host. */
const GATEWAYS_MAX = 16

export const settings = {
  gateways: setting.integer({
    env: 'GATEWAYS',
    default: 1,
    min: 1,
    max: GATEWAYS_MAX,
    unit: 'gateways',
    doc: "Gateways to start. Each further one's ports are 10 higher.",
  }),
  providers: setting.integer({
    env: 'PROVIDERS',
    default: 1,
    max: 1,
    doc: 'Simulated backends to start. Set 0 when keycast.yaml names a backend of yours. 0 where KEYCAST_PROFILE is production.',
  }),
  configPath: gateway.configPath,
  gatewayHost: gateway.host,
  gatewayPort: gateway.port,
  gatewayInternalHost: gateway.internalHost,
  gatewayInternalPort: gateway.internalPort,
  fetcherHost: fetcher.host,
  fetcherRequestsPort: fetcher.requestsPort,
  fetcherAnswersPort: fetcher.answersPort,
  fetcherMetricsHost: fetcher.metricsHost,
  fetcherMetricsPort: fetcher.metricsPort,
  journalLogKind: journal.logKind,
  journalFolder: journal.folder,
  journalHost: journal.host,
  journalPublicationsPort: journal.publicationsPort,
  journalDeliveriesPort: journal.deliveriesPort,
  journalMetricsHost: journal.metricsHost,
  journalMetricsPort: journal.metricsPort,
  providerHost: provider.host,
  providerPort: provider.port,
  logFormat: setting.choice({
    env: 'LOG_FORMAT',
    values: ['pretty', 'json'],
    default: 'pretty',
    doc: "pretty: the services' log lines for a person. json: the lines as the services write them.",
  }),
  profile: common.profile,
  shutdownGraceMs: common.shutdownGraceMs,
  pm2Home: setting.path({
    env: 'PM2_HOME',
    default: '',
    doc: 'Folder of the pm2 that npm start runs; a pm2 in another folder is not touched. Empty: .pm2 beside package.json.',
  }),
}

export type Config = ConfigOf<typeof settings>
