// The settings of a gateway. Beside `${NAME}` in keycast.yaml nothing else reads the environment.
import { curveKeyProblems, hostsBeyondLoopback, readNodes } from '@keycast/backbone'
import { type Config, common, setting } from '@keycast/service'
import { trustedProxiesProblem } from './access/client-address.ts'
import { readApiTokens } from './doors/http/api-tokens.ts'
import { originsProblem } from './sessions/allowed-origins.ts'

export const settings = {
  ...common,
  configPath: setting.path({
    env: 'KEYCAST_CONFIG',
    default: 'keycast.yaml',
    doc: 'The file that says where each namespace of keys gets its content.',
  }),
  host: setting.host({
    env: 'GATEWAY_HOST',
    default: '127.0.0.1',
    doc: 'Address clients, or the proxy before them, connect to.',
  }),
  port: setting.port({
    env: 'GATEWAY_PORT',
    default: 8080,
    doc: 'Port for clients: WebSocket at /ws, values over HTTP, the page.',
  }),
  internalHost: setting.host({
    env: 'GATEWAY_INTERNAL_HOST',
    default: '127.0.0.1',
    doc: 'Address of the internal listener. Never one the public reaches.',
  }),
  internalPort: setting.port({
    env: 'GATEWAY_INTERNAL_PORT',
    default: 8081,
    doc: 'Port for metrics, health, and the calls of the backend and the operator.',
  }),
  fetcherNodes: setting.text({
    env: 'FETCHER_NODES',
    default: '127.0.0.1:7001:7002',
    expects: 'addresses or names with their ports, comma-separated',
    doc: 'The fetcher nodes, host[:requests:answers]. A name stands for all addresses that it resolves to.',
  }),
  journalNodes: setting.text({
    env: 'JOURNAL_NODES',
    default: '127.0.0.1:7003:7004',
    expects: 'addresses or names with their ports, comma-separated',
    doc: 'The journal nodes, host[:publications:deliveries]. Used where KEYCAST_CONFIG has rooms or pushed values.',
  }),
  backboneSecretKey: setting.secret({
    env: 'BACKBONE_SECRET_KEY',
    doc: "This gateway's CURVE key (Z85), which the nodes admit. Needed unless they are all at 127.0.0.1.",
  }),
  backboneServerKey: setting.secret({
    env: 'BACKBONE_SERVER_KEY',
    doc: 'The public CURVE key (Z85) of the nodes. Goes with BACKBONE_SECRET_KEY.',
  }),
  apiTokens: setting.secret({
    env: 'API_TOKENS',
    doc: 'Bearer tokens of the internal calls: entries NAME:SCOPES:TOKEN, separated by white space, as in backend:refresh,publish:… Scopes: refresh, put, publish, revoke; admin may do all. Without any the calls answer 403.',
  }),
  auditLog: setting.path({
    env: 'GATEWAY_AUDIT_LOG',
    default: '',
    doc: 'File that gets a line for each call that ends sessions or deletes messages. Empty: the standard output.',
  }),
  origins: setting.text({
    env: 'GATEWAY_ORIGINS',
    default: '*',
    expects: '* alone, or origins as browsers send them: lower case, no slash at the end, no standard port',
    check: originsProblem,
    doc: 'Origins whose pages may connect and read the answers over HTTP, comma-separated, as in https://example.org. *: any. Programs that are not browsers are not stopped.',
  }),
  sessionsMax: setting.integer({
    env: 'GATEWAY_SESSIONS_MAX',
    default: 18_000,
    min: 1,
    unit: 'sessions',
    doc: 'Sessions at most; further connections get 503. An idle session takes up to 5.5 KB: this many take 100 MB. The limit of open files less 500 applies where it is lower.',
  }),
  sessionsPerUserMax: setting.integer({
    env: 'GATEWAY_SESSIONS_PER_USER_MAX',
    default: 100,
    min: 1,
    unit: 'sessions',
    doc: 'Sessions of one user at this gateway. Together they have the allowance of 4 sessions for requests and keys.',
  }),
  sessionsPerAddressMax: setting.integer({
    env: 'GATEWAY_SESSIONS_PER_ADDRESS_MAX',
    default: 1_000,
    unit: 'sessions',
    doc: 'Sessions without a user of one IPv4 address or IPv6 /64. Together they have the allowance of 10 sessions. 0: addresses are not counted.',
  }),
  trustedProxies: setting.text({
    env: 'GATEWAY_TRUSTED_PROXIES',
    default: '127.0.0.0/8,::1',
    expects: 'addresses and networks, comma-separated',
    check: trustedProxiesProblem,
    doc: 'Proxies whose X-Forwarded-For is believed. Connections from them that name no client are not counted by address.',
  }),
  authMs: setting.milliseconds({
    env: 'GATEWAY_AUTH_MS',
    default: 5_000,
    min: 100,
    doc: 'Where anonymous sessions may do nothing: how long a new session has to send auth.',
  }),
  keysPerSessionMax: setting.integer({
    env: 'GATEWAY_KEYS_PER_SESSION_MAX',
    default: 5_000,
    min: 1,
    unit: 'keys',
    doc: 'Keys one session may subscribe to.',
  }),
  subscriptionsMax: setting.integer({
    env: 'GATEWAY_SUBSCRIPTIONS_MAX',
    default: 1_000_000,
    min: 1,
    unit: 'subscriptions',
    doc: 'Subscriptions of all sessions together, at 128 bytes each; further ones get the error capacity. Of different rooms there may be a quarter as many, at 2 KB each.',
  }),
  requestsPerSecondMax: setting.integer({
    env: 'GATEWAY_REQUESTS_PER_SECOND_MAX',
    default: 1_000,
    min: 1,
    unit: 'requests',
    doc: 'Requests a session may send a second, each KiB counting as one. It may also subscribe to as many keys a second that no other session watches, and to GATEWAY_KEYS_PER_SESSION_MAX at once.',
  }),
  messageBytesMax: setting.bytes({
    env: 'GATEWAY_MESSAGE_BYTES_MAX',
    default: 256 * 1024,
    min: 1024,
    max: 16 * 1024 ** 2,
    doc: "Longest message a client may send. Over server-sent events Keycast's proxy takes less than 1 MB.",
  }),
  getsWaitingMax: setting.integer({
    env: 'GATEWAY_GETS_WAITING_MAX',
    default: 64,
    min: 1,
    unit: 'gets',
    doc: 'Gets of one session that may wait, for the fetcher or for a client that does not read; further ones get an error.',
  }),
  publishMs: setting.milliseconds({
    env: 'GATEWAY_PUBLISH_MS',
    default: 5_000,
    min: 100,
    doc: 'How long the journal may take to say what became of a message; then its publisher is told publish_unknown. A backend that is asked first has its own time.',
  }),
  publishesPendingBytesMax: setting.bytes({
    env: 'GATEWAY_PUBLISHES_PENDING_BYTES_MAX',
    default: 512 * 1024,
    min: 1024,
    doc: 'Publishes of one session under way, with 512 bytes for each; further ones get too_many_waiting. All sessions share 24 MiB.',
  }),
  tailBytesMax: setting.bytes({
    env: 'GATEWAY_TAIL_BYTES_MAX',
    default: 32 * 1024 ** 2,
    min: 4 * 1024 ** 2,
    doc: 'Newest messages of all rooms, held for sessions that are a little behind. For those further behind the journal is asked.',
  }),
  unsentBytesMax: setting.bytes({
    env: 'GATEWAY_UNSENT_BYTES_MAX',
    default: 1024 ** 2,
    min: 64 * 1024,
    doc: 'Answers and errors queued for a client that does not read; above it the client is closed. Values never queue.',
  }),
  unsentTotalBytesMax: setting.bytes({
    env: 'GATEWAY_UNSENT_TOTAL_BYTES_MAX',
    default: 256 * 1024 ** 2,
    min: 1024 ** 2,
    doc: 'Written or queued for all clients that do not read; above it whoever holds most loses the largest. A value written to many counts once. Values sent over HTTP and not read have a limit of the same size.',
  }),
  stallMsMax: setting.milliseconds({
    env: 'GATEWAY_STALL_MS_MAX',
    default: 30_000,
    min: 100,
    doc: 'A client that is behind and has not read a byte for this long is closed. One that reads, however slowly, is not.',
  }),
  heartbeatMs: setting.milliseconds({
    env: 'GATEWAY_HEARTBEAT_MS',
    default: 25_000,
    min: 250,
    doc: 'How often each client is pinged; one that is silent until the next ping is cut. Well below the 60 s of common proxies.',
  }),
  cacheBytesMax: setting.bytes({
    env: 'GATEWAY_CACHE_BYTES_MAX',
    default: 256 * 1024 ** 2,
    min: 1024 ** 2,
    doc: 'Size of the cache. Values that are watched stay; where they leave no room, a new key gets the error capacity. No user or address may hold more than its share.',
  }),
  compression: setting.flag({
    env: 'GATEWAY_COMPRESSION',
    default: false,
    doc: 'Send values of 1 KiB and more compressed (permessage-deflate) to clients that offer it. Each version is compressed once. Over HTTP gzip and br are always there.',
  }),
  drainMs: setting.milliseconds({
    env: 'GATEWAY_DRAIN_MS',
    default: 5_000,
    doc: 'Over how long at most a gateway that stops sends its clients to others. Well below SHUTDOWN_GRACE_MS.',
  }),
}

export type Settings = Config<typeof settings>

/** Time that leaving takes after the last client was sent `closing`: it is closed, and has time to answer. */
const LEAVE_MS = 1_000

/** Finds conflicts between settings that are well-formed one by one. */
export function conflictsOf(config: Settings): string[] {
  const { backboneSecretKey, backboneServerKey } = config
  const isPlain = backboneSecretKey === undefined && backboneServerKey === undefined
  return [
    ...apiTokenProblems(config.apiTokens),
    ...drainProblems(config),
    ...plaintextProblems(config),
    ...nodeProblems('FETCHER_NODES', config.fetcherNodes, { isPlain }),
    ...nodeProblems('JOURNAL_NODES', config.journalNodes, { isPlain, service: 'journal' }),
    ...curveKeyProblems({
      BACKBONE_SECRET_KEY: backboneSecretKey === undefined ? [] : [backboneSecretKey],
      BACKBONE_SERVER_KEY: backboneServerKey === undefined ? [] : [backboneServerKey],
    }),
  ]
}

function apiTokenProblems(text: string | undefined) {
  try {
    readApiTokens(text ?? '')
    return []
  } catch (error) {
    return [`API_TOKENS: ${(error as Error).message}`]
  }
}

function drainProblems({ drainMs, shutdownGraceMs }: Pick<Settings, 'drainMs' | 'shutdownGraceMs'>) {
  if (drainMs + LEAVE_MS < shutdownGraceMs) return []
  return [
    `GATEWAY_DRAIN_MS=${drainMs} must be over ${LEAVE_MS} ms below SHUTDOWN_GRACE_MS=${shutdownGraceMs}: else every stop is cut short`,
  ]
}

/** A gateway has no TLS: a proxy has, on this host or at an address that is named. */
function plaintextProblems({ profile, host, trustedProxies }: Pick<Settings, 'profile' | 'host' | 'trustedProxies'>) {
  const namesProxy = trustedProxies.split(',').some(network => !isLoopback(network.trim()))
  if (profile === 'try' || isLoopback(host) || namesProxy) return []
  return [
    `GATEWAY_HOST=${host}: clients would connect in plaintext. Name the proxy with TLS in GATEWAY_TRUSTED_PROXIES, or listen on 127.0.0.1; KEYCAST_PROFILE=try is for trying`,
  ]
}

/** @param text an address, a network or a name */
const isLoopback = (text: string) => text === 'localhost' || text.startsWith('127.') || /^::1(\/128)?$/.test(text)

/** @param options `isPlain`: no keys are set */
function nodeProblems(
  env: string,
  nodes: string,
  { isPlain, service }: { isPlain: boolean; service?: Parameters<typeof readNodes>[1] },
) {
  try {
    const addresses = readNodes(nodes, service)
    if (!isPlain) return []
    return hostsBeyondLoopback(addresses).map(
      host =>
        `${env}: ${host} is no loopback address: beyond this host the backbone needs BACKBONE_SECRET_KEY and BACKBONE_SERVER_KEY`,
    )
  } catch (error) {
    return [`${env}: ${(error as Error).message}`]
  }
}

/**
 * The keys of an encrypted backbone, or `undefined` for a plain one.
 *
 * @param config without conflicts
 */
export function curveOf({
  backboneSecretKey: secretKey,
  backboneServerKey: serverKey,
}: Pick<Settings, 'backboneSecretKey' | 'backboneServerKey'>): { secretKey: string; serverKey: string } | undefined {
  return secretKey !== undefined && serverKey !== undefined ? { secretKey, serverKey } : undefined
}
