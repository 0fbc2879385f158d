// The settings of a fetcher. Beside `${NAME}` in keycast.yaml nothing else reads the environment.
import { hubKeyProblems, hubKeySettings } from '@keycast/backbone'
import { type Config, common, setting } from '@keycast/service'

export const settings = {
  ...common,
  configPath: setting.path({
    env: 'KEYCAST_CONFIG',
    default: 'keycast.yaml',
    doc: 'The file that says where each namespace of keys gets its content.',
  }),
  host: setting.host({
    env: 'FETCHER_HOST',
    default: '127.0.0.1',
    doc: 'Address that gateways connect to. Without the two BACKBONE_ keys a loopback address only.',
  }),
  requestsPort: setting.port({
    env: 'FETCHER_REQUESTS_PORT',
    default: 7001,
    doc: 'Port on which gateways send their requests.',
  }),
  answersPort: setting.port({
    env: 'FETCHER_ANSWERS_PORT',
    default: 7002,
    doc: 'Port on which gateways get values and failures.',
  }),
  metricsHost: setting.host({
    env: 'FETCHER_METRICS_HOST',
    default: '127.0.0.1',
    doc: 'Address of the internal listener. Never one that the public reaches.',
  }),
  metricsPort: setting.port({
    env: 'FETCHER_METRICS_PORT',
    default: 8082,
    doc: 'Port for metrics and health.',
  }),
  workers: setting.integer({
    env: 'FETCHER_WORKERS',
    default: 0,
    max: 64,
    unit: 'processes',
    doc: 'Workers that pull over HTTP. 0: one for each CPU, four at most.',
  }),
  warmUpPulls: setting.integer({
    env: 'FETCHER_WARM_UP_PULLS',
    default: 300,
    max: 10_000,
    unit: 'pulls',
    doc: 'Pulls from a server of its own by which a worker warms up, for a second at most. 0: it starts sooner, and its first thousand keys are slower.',
  }),
  inFlightMax: setting.integer({
    env: 'FETCHER_IN_FLIGHT_MAX',
    default: 1_024,
    min: 1,
    unit: 'requests',
    doc: 'Requests that this node has in flight to one backend (scheme, host and port) at most. Below that it finds out how many do not make the backend slower. No namespace of several has more than three quarters. Two nodes may have twice as many.',
  }),
  authorizeInFlightMax: setting.integer({
    env: 'FETCHER_AUTHORIZE_IN_FLIGHT_MAX',
    default: 64,
    min: 1,
    unit: 'requests',
    doc: 'Questions whether viewers may read that this node has in flight to one backend, and as many whether messages may be published, beside FETCHER_IN_FLIGHT_MAX.',
  }),
  cacheBytesMax: setting.bytes({
    env: 'FETCHER_CACHE_BYTES_MAX',
    default: 256 * 1024 ** 2,
    min: 1024 ** 2,
    doc: 'Values held, and what gateways want. Watched keys stay; where they fill it, a new key gets the error capacity. No user or address may hold more than its share.',
  }),
  deltaBytesMax: setting.bytes({
    env: 'FETCHER_DELTA_BYTES_MAX',
    default: 64 * 1024 ** 2,
    doc: 'Last bodies that each worker holds to make deltas from. 0: no deltas.',
  }),
  ...hubKeySettings,
}

type Settings = Config<typeof settings>

/** Settings that are well-formed one by one, and wrong together. */
export const conflictsOf = (config: Pick<Settings, 'host' | 'backboneSecretKey' | 'backboneClientKeys'>): string[] =>
  hubKeyProblems(config, 'FETCHER_HOST')
