// The settings of a fetcher. No other file reads the environment.
import { curveKeyProblems, isLoopback } from '@keycast/backbone'
import { common, setting } from '@keycast/service'

export const settings = {
  ...common,
  configPath: setting.text({
    env: 'KEYCAST_CONFIG',
    default: 'keycast.yaml',
    doc: 'The file that says where each namespace of keys gets its content.',
  }),
  host: setting.text({
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
  metricsHost: setting.text({
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
    doc: "Pulls from a server of its own that compile a worker's code before the first lease, for a second at most. 0: the worker starts sooner, and its first thousand keys are slower.",
  }),
  inFlightMax: setting.integer({
    env: 'FETCHER_IN_FLIGHT_MAX',
    default: 1_024,
    min: 1,
    unit: 'requests',
    doc: 'Requests that this node has in flight to one backend (scheme, host and port) at most. It finds out by itself how many make no backend slower, from 256 on. Nodes do not share it: two may have twice as many.',
  }),
  authorizeInFlightMax: setting.integer({
    env: 'FETCHER_AUTHORIZE_IN_FLIGHT_MAX',
    default: 64,
    min: 1,
    unit: 'requests',
    doc: 'Requests that this node has in flight to one backend to ask whether viewers may read, beside those of FETCHER_IN_FLIGHT_MAX.',
  }),
  cacheBytesMax: setting.bytes({
    env: 'FETCHER_CACHE_BYTES_MAX',
    default: 256 * 1024 ** 2,
    min: 1024 ** 2,
    doc: 'Values held, and what gateways want. Watched keys stay; where they fill it, a new key gets the error capacity.',
  }),
  deltaBytesMax: setting.bytes({
    env: 'FETCHER_DELTA_BYTES_MAX',
    default: 64 * 1024 ** 2,
    doc: 'Last bodies that each worker holds to make deltas from. 0: no deltas.',
  }),
  backboneSecretKey: setting.secret({
    env: 'BACKBONE_SECRET_KEY',
    doc: 'CURVE secret key (Z85) of this node: encrypts the backbone. Goes with BACKBONE_CLIENT_KEYS.',
  }),
  backboneClientKeys: setting.secret({
    env: 'BACKBONE_CLIENT_KEYS',
    doc: 'CURVE public keys (Z85) of the gateways that are admitted, separated by spaces.',
  }),
}

/** @typedef {import('@keycast/service').Config<typeof settings>} Settings */

/**
 * Settings that are well-formed one by one, and wrong together.
 *
 * @param {Pick<Settings, 'host' | 'backboneSecretKey' | 'backboneClientKeys'>} config
 * @returns {string[]}
 */
export function conflictsOf({ host, backboneSecretKey, backboneClientKeys }) {
  const keys = {
    BACKBONE_SECRET_KEY: backboneSecretKey === undefined ? [] : [backboneSecretKey],
    BACKBONE_CLIENT_KEYS: keysIn(backboneClientKeys),
  }
  const problems = curveKeyProblems(keys)
  if (problems.length === 0 && !backboneSecretKey && !isLoopback(host)) {
    problems.push(`FETCHER_HOST=${host} is no loopback address: beyond this host the backbone needs the BACKBONE_ keys`)
  }
  return problems
}

/**
 * The keys of an encrypted backbone, or `undefined` for a plain one.
 *
 * @param {Pick<Settings, 'backboneSecretKey' | 'backboneClientKeys'>} config without conflicts
 * @returns {{ secretKey: string, clientKeys: string[] } | undefined}
 */
export function curveOf({ backboneSecretKey: secretKey, backboneClientKeys }) {
  return secretKey === undefined ? undefined : { secretKey, clientKeys: keysIn(backboneClientKeys) }
}

/** @param {string | undefined} text */
const keysIn = text => (text ?? '').split(/[\s,]+/).filter(Boolean)
