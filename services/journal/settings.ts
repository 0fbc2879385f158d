// The settings of a journal. Beside `${NAME}` in keycast.yaml nothing else reads the environment.
import { hubKeyProblems, hubKeySettings } from '@keycast/backbone'
import { type Config, common, setting } from '@keycast/service'
import { valkeyUrlProblem } from './log/valkey/url.ts'

export const settings = {
  ...common,
  configPath: setting.path({
    env: 'KEYCAST_CONFIG',
    default: 'keycast.yaml',
    doc: 'The file that says which namespaces are of messages, and how much of each room is kept.',
  }),
  logKind: setting.choice({
    env: 'JOURNAL_LOG',
    values: ['lmdb', 'valkey', 'memory'],
    default: 'lmdb',
    doc: 'Where messages are kept. lmdb: on this disk, acknowledged once flushed. valkey: in a Valkey that many journals share. memory: nothing outlives a restart.',
  }),
  folder: setting.path({
    env: 'JOURNAL_DATA',
    default: '.keycast/journal',
    doc: 'The folder of an lmdb log. One journal process has it at a time.',
  }),
  valkeyUrl: setting.secret({
    env: 'VALKEY_URL',
    doc: 'The primary of a valkey log: valkey://[[user]:password@]host[:port][/database], or valkeys:// with TLS.',
  }),
  valkeyReplicasMin: setting.integer({
    env: 'VALKEY_REPLICAS_MIN',
    default: 0,
    min: 0,
    max: 16,
    unit: 'replicas',
    doc: 'Of a valkey log: replicas that must have a message on disk, too, before it is acknowledged. With 0 a failover may lose acknowledged messages.',
  }),
  valkeyAllowsLoss: setting.flag({
    env: 'VALKEY_ALLOW_LOSS',
    default: false,
    doc: 'true: a Valkey is used, too, that may lose acknowledged messages. The log says at each start how.',
  }),
  bytesMax: setting.bytes({
    env: 'JOURNAL_BYTES_MAX',
    default: 4 * 1024 ** 3,
    min: 1024 ** 2,
    doc: 'All messages held, their ids, and rooms. Past it a publish gets the error log_full. The file takes more than that.',
  }),
  outboxBytesMax: setting.bytes({
    env: 'JOURNAL_OUTBOX_BYTES_MAX',
    default: 256 * 1024 ** 2,
    min: 1024 ** 2,
    doc: 'Messages that backends are still to be told (`notify`), beside JOURNAL_BYTES_MAX. Past it the oldest are dropped, and a call names the gap.',
  }),
  shortenMs: setting.milliseconds({
    env: 'JOURNAL_SHORTEN_MS',
    default: 3_600_000,
    min: 0,
    doc: 'Time after which a shorter `history` trims, and on lmdb a clock that jumped forward by over a minute counts. 0: at once.',
  }),
  host: setting.host({
    env: 'JOURNAL_HOST',
    default: '127.0.0.1',
    doc: 'Address gateways connect to. Without the two BACKBONE_ keys a loopback address only.',
  }),
  publicationsPort: setting.port({
    env: 'JOURNAL_PUBLICATIONS_PORT',
    default: 7003,
    doc: 'Port on which gateways publish and say what they watch.',
  }),
  deliveriesPort: setting.port({
    env: 'JOURNAL_DELIVERIES_PORT',
    default: 7004,
    doc: 'Port on which they are sent messages and results.',
  }),
  metricsHost: setting.host({
    env: 'JOURNAL_METRICS_HOST',
    default: '127.0.0.1',
    doc: 'Address of the internal listener. Never one the public reaches.',
  }),
  metricsPort: setting.port({
    env: 'JOURNAL_METRICS_PORT',
    default: 8083,
    doc: 'Port for metrics, health and GET /v1/rooms/{key}.',
  }),
  ...hubKeySettings,
}

type Settings = Config<typeof settings>

/** Finds conflicts between settings that are well-formed one by one. */
export function conflictsOf({
  logKind,
  valkeyUrl,
  ...keys
}: Pick<Settings, 'host' | 'backboneSecretKey' | 'backboneClientKeys' | 'logKind' | 'valkeyUrl'>): string[] {
  const problems = hubKeyProblems(keys, 'JOURNAL_HOST')
  if (logKind === 'valkey') {
    const problem = valkeyUrl === undefined ? 'JOURNAL_LOG=valkey needs it' : valkeyUrlProblem(valkeyUrl)
    if (problem) problems.push(`VALKEY_URL: ${problem}`) // its text may hold a password
  }
  return problems
}
