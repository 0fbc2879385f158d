// The whole system under pm2 on one host. `npm start` runs it in the foreground and takes all of it away at the end;
// `npx pm2 start ecosystem.config.cjs` leaves it running. CommonJS, because pm2 loads it by name as such; it reads the
// environment itself, because settings are a module it cannot load.

const { env } = process

/** @param {string} name @param {number} fallback */
const number = (name, fallback) => {
  if (!env[name]) return fallback
  const value = Number(env[name])
  if (Number.isInteger(value) && value >= 0) return value
  throw new Error(`${name}=${env[name]}: must be a plain whole number here`)
}

/** A size as the services read it. @param {string} name @param {number} fallback */
const bytes = (name, fallback) => {
  const [, amount, unit = ''] = /^(\d+)(KiB|MiB|GiB)?$/.exec(env[name] || String(fallback)) ?? []
  if (amount === undefined) throw new Error(`${name}=${env[name]}: must be bytes, as in 1048576, 64KiB or 4MiB`)
  return Number(amount) * 1_024 ** ['', 'KiB', 'MiB', 'GiB'].indexOf(unit)
}

const MIB = 1_024 ** 2

/** Further gateways take ports this far apart: the ones between are those of other services. */
const GATEWAY_PORT_STEP = 10

/** pm2 waits this much longer than a service's own grace before it kills it. */
const KILL_MARGIN_MS = 2_000

/**
 * What a process may take beside what its settings let it hold: node itself and values replaced but not yet collected
 * take 150 MiB under load. The rest is room, so that only a leak gets there.
 */
const OTHER_BYTES = 384 * MIB

/** What the settings let a service hold: the services' own defaults where they are not set. */
const cacheBytesMax = {
  gateway: bytes('GATEWAY_CACHE_BYTES_MAX', 256 * MIB),
  fetcher: bytes('FETCHER_CACHE_BYTES_MAX', 256 * MIB),
}

/** What clients that do not read may hold of a gateway's memory. */
const unsentBytesMax = bytes('GATEWAY_UNSENT_TOTAL_BYTES_MAX', 256 * MIB)

/** An idle session takes half of it; those who watch hundreds of keys more. */
const SESSION_BYTES = 16 * 1_024
const sessionsBytesMax = number('GATEWAY_SESSIONS_MAX', 18_000) * SESSION_BYTES

/** The services' own default. */
const graceMs = number('SHUTDOWN_GRACE_MS', 10_000)

const host = env.FETCHER_HOST && env.FETCHER_HOST !== '0.0.0.0' ? env.FETCHER_HOST : '127.0.0.1'
const node = `${host}:${number('FETCHER_REQUESTS_PORT', 7001)}:${number('FETCHER_ANSWERS_PORT', 7002)}`

/**
 * @param {string} name
 * @param {string} service its folder
 * @param {object} options
 * @param {number} options.heldBytesMax what it may hold beside {@link OTHER_BYTES}
 * @param {Record<string, string | number>} [options.own] of its environment
 * @param {string[]} [options.nodeArguments]
 */
const app = (name, service, { heldBytesMax, own = {}, nodeArguments = [] }) => ({
  name,
  script: `services/${service}/main.js`,
  cwd: __dirname,
  env: { SHUTDOWN_GRACE_MS: graceMs, ...own },
  node_args: nodeArguments,
  // One process each: the fetcher is a cluster of its own, and gateways have a port, health and metrics each.
  exec_mode: 'fork',
  instances: 1,
  // The signal goes to the service alone: the fetcher's primary stops its workers in order.
  treekill: false,
  kill_timeout: graceMs + KILL_MARGIN_MS,
  // Started is what said so, after it listens. One that has not by then is let be, and counts as started.
  wait_ready: true,
  listen_timeout: 20_000,
  // 100 ms, half as much again each time, 15 s at most; from the start again after 30 s without an end. So pm2 never
  // counts 16 ends within 16 s, at which it would give up.
  exp_backoff_restart_delay: 100,
  // Settings that are wrong (2) do not get better by trying again.
  stop_exit_codes: [2],
  // In bytes; looked at every 30 s. Stops it as a reload does, clients told. Of a fetcher pm2 sees the primary alone: a
  // worker's caches have bounds of their own, and one that the kernel ends is replaced by its primary.
  max_memory_restart: heldBytesMax + OTHER_BYTES,
  // One file by the service's name, without a number that changes: PM2_HOME/logs/gateway-out.log.
  merge_logs: true,
  // No probes, no look at git: the services export their own metrics.
  pmx: false,
  vizion: false,
})

/** How many gateways, and simulated backends: none for who has a backend. */
const gateways = number('GATEWAYS', 1)
const providers = number('PROVIDERS', 1)
if (providers > 1) throw new Error(`PROVIDERS=${providers}: must be 0 or 1`)

/** In the order they are started: by npm start one by one, by pm2 itself two at a time, and that does no harm. */
exports.apps = [
  ...Array.from({ length: providers }, () => app('data-provider', 'data-provider', { heldBytesMax: 128 * MIB })),
  app('fetcher', 'fetcher', { heldBytesMax: cacheBytesMax.fetcher }),
  ...Array.from({ length: gateways }, (_, index) =>
    app(index === 0 ? 'gateway' : `gateway-${index + 1}`, 'gateway', {
      heldBytesMax: cacheBytesMax.gateway + sessionsBytesMax + unsentBytesMax,
      own: {
        FETCHER_NODES: env.FETCHER_NODES || node,
        GATEWAY_PORT: number('GATEWAY_PORT', 8080) + index * GATEWAY_PORT_STEP,
        GATEWAY_INTERNAL_PORT: number('GATEWAY_INTERNAL_PORT', 8081) + index * GATEWAY_PORT_STEP,
      },
      // Else V8 holds more of what is gone at once: services/gateway/README.md.
      nodeArguments: ['--max-semi-space-size=4'],
    }),
  ),
]
