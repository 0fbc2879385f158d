// The whole system under pm2 on one host. `npm start` runs it in the foreground and stops all of it at the end;
// `npx pm2 start ecosystem.config.cjs` leaves it running. CommonJS, because pm2 reads it with require(); for the same
// reason it cannot read the services' own settings, which are ES modules.
const { duration, integer, size } = require('./packages/service/quantities.cjs')

const { env } = process

/**
 * @param {string} name of a variable
 * @param {import('./packages/service/quantities.cjs').Rule} rule
 * @param {number} fallback used where the variable is unset or empty
 */
const read = (name, rule, fallback) => {
  if (!env[name]) return fallback
  const value = rule.read(env[name])
  if (!Number.isNaN(value)) return value
  // By its name npm start knows that the operator can mend it, and shows no stack.
  throw Object.assign(new Error(`${name}=${env[name]}: must be ${rule.expects}`), { name: 'SettingsError' })
}

/** @param {string} name @param {number} fallback */
const readPort = (name, fallback) => read(name, integer({ max: 65_535 }), fallback)

const MIB = 1_024 ** 2

/** Each further gateway's ports lie this much higher, so that they do not meet those of other services. */
const GATEWAY_PORT_STEP = 10

/** pm2 waits this much longer than the service's own grace: a service that stops at the last moment is not killed. */
const KILL_MARGIN_MS = 2_000

/**
 * The memory of a process beyond the bytes that its settings let it hold. Node itself and replaced values not yet
 * collected take 150 MiB under load; the rest is room, so that only a leak gets there.
 */
const OTHER_BYTES = 384 * MIB

/** The bytes that the settings let a service hold. The defaults are the services' own; a test compares them. */
const cacheBytesMax = {
  gateway: read('GATEWAY_CACHE_BYTES_MAX', size({ minBytes: MIB }), 256 * MIB),
  fetcher: read('FETCHER_CACHE_BYTES_MAX', size({ minBytes: MIB }), 256 * MIB),
}

/** The part of a gateway's memory that slow clients may hold. */
const unsentBytesMax = read('GATEWAY_UNSENT_TOTAL_BYTES_MAX', size({ minBytes: MIB }), 256 * MIB)

/** Newest messages of rooms. */
const tailBytesMax = read('GATEWAY_TAIL_BYTES_MAX', size({ minBytes: 4 * MIB }), 32 * MIB)

/** Three times an idle session (docs/capacity.md): one that watches hundreds of keys takes more. */
const SESSION_BYTES = 16 * 1_024
const sessionsBytesMax = read('GATEWAY_SESSIONS_MAX', integer({ min: 1, unit: 'sessions' }), 18_000) * SESSION_BYTES

const graceMs = read('SHUTDOWN_GRACE_MS', duration({ minMs: 100, plainMs: true }), 10_000)

/** The address at which gateways find a service of this host. @param {string | undefined} host that it listens on */
const reachable = host => (host && host !== '0.0.0.0' ? host : '127.0.0.1')

const fetcherNode = [
  reachable(env.FETCHER_HOST),
  readPort('FETCHER_REQUESTS_PORT', 7001),
  readPort('FETCHER_ANSWERS_PORT', 7002),
].join(':')
const journalNode = [
  reachable(env.JOURNAL_HOST),
  readPort('JOURNAL_PUBLICATIONS_PORT', 7003),
  readPort('JOURNAL_DELIVERIES_PORT', 7004),
].join(':')

/**
 * @param {string} name
 * @param {string} service its folder
 * @param {object} options
 * @param {number} [options.heldBytesMax] the bytes that it may hold beside {@link OTHER_BYTES}; unlimited if left out
 * @param {Record<string, string | number>} [options.own] of its environment
 * @param {string[]} [options.nodeArguments]
 */
const app = (name, service, { heldBytesMax, own = {}, nodeArguments = [] } = {}) => ({
  name,
  script: `services/${service}/main.js`,
  // The Node that runs pm2 runs the services: pm2 would look for one, or for another runtime, on PATH.
  interpreter: process.execPath,
  cwd: __dirname,
  env: { SHUTDOWN_GRACE_MS: graceMs, ...own },
  node_args: nodeArguments,
  // One process each: the fetcher is a cluster of its own, and gateways have a port, health and metrics each.
  exec_mode: 'fork',
  instances: 1,
  // The signal goes to the service alone: sent to its workers too, it would stop them before the fetcher's primary does.
  treekill: false,
  kill_timeout: graceMs + KILL_MARGIN_MS,
  // A service says that it has started once it listens. After listen_timeout pm2 counts it as started all the same.
  wait_ready: true,
  listen_timeout: 20_000,
  // 100 ms, half as much again each time, 15 s at most; after 30 s without an end it starts at 100 ms again. Without the
  // backoff pm2 would count 16 ends within 16 s, and give up.
  exp_backoff_restart_delay: 100,
  // Exit code 2: the settings are wrong, and another start would not change that.
  stop_exit_codes: [2],
  // In bytes, checked every 30 s. pm2 then restarts the service as a reload does: clients are told. Of a fetcher pm2 sees
  // the primary alone; a worker's caches have bounds of their own, and its primary replaces one that the kernel kills.
  ...(heldBytesMax === undefined ? {} : { max_memory_restart: heldBytesMax + OTHER_BYTES }),
  // One log file by the service's name, PM2_HOME/logs/gateway-out.log, without pm2's number, which changes.
  merge_logs: true,
  // No probes into the services, which export their own metrics; no look at git.
  pmx: false,
  vizion: false,
})

const gateways = read('GATEWAYS', integer({ min: 1, max: 16, unit: 'gateways' }), 1)

const isTrial = env.KEYCAST_PROFILE === 'try'

/** Simulated backends, for trying: 0 where keycast.yaml names a backend of one's own. */
const providers = read('PROVIDERS', integer({ max: 1 }), isTrial ? 1 : 0)

/** npm start starts them at once, pm2 itself two at a time; they find each other in any order. */
exports.apps = [
  ...Array.from({ length: providers }, () => app('data-provider', 'data-provider', { heldBytesMax: 128 * MIB })),
  app('fetcher', 'fetcher', {
    heldBytesMax: cacheBytesMax.fetcher,
    // Who tries it waits for the start, not for the first thousand keys: it takes a third of a worker's start.
    own: isTrial ? { FETCHER_WARM_UP_PULLS: env.FETCHER_WARM_UP_PULLS || '0' } : {},
  }),
  // Its log is a mapped file: pm2 would take every part of it that was read lately for memory of the process.
  app('journal', 'journal'),
  ...Array.from({ length: gateways }, (_, index) =>
    app(index === 0 ? 'gateway' : `gateway-${index + 1}`, 'gateway', {
      heldBytesMax: cacheBytesMax.gateway + sessionsBytesMax + unsentBytesMax + tailBytesMax,
      own: {
        FETCHER_NODES: env.FETCHER_NODES || fetcherNode,
        JOURNAL_NODES: env.JOURNAL_NODES || journalNode,
        GATEWAY_PORT: readPort('GATEWAY_PORT', 8080) + index * GATEWAY_PORT_STEP,
        GATEWAY_INTERNAL_PORT: readPort('GATEWAY_INTERNAL_PORT', 8081) + index * GATEWAY_PORT_STEP,
      },
      // With V8's default a gateway takes more memory for each session: services/gateway/README.md.
      nodeArguments: ['--max-semi-space-size=4'],
    }),
  ),
]
