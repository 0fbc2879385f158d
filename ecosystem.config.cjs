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

/** Further gateways take ports this far apart: the ones between are those of other services. */
const GATEWAY_PORT_STEP = 10

/** pm2 waits this much longer than a service's own grace before it kills it. */
const KILL_MARGIN_MS = 2_000

/** The services' own default. */
const graceMs = number('SHUTDOWN_GRACE_MS', 10_000)

const host = env.FETCHER_HOST && env.FETCHER_HOST !== '0.0.0.0' ? env.FETCHER_HOST : '127.0.0.1'
const node = `${host}:${number('FETCHER_REQUESTS_PORT', 7001)}:${number('FETCHER_ANSWERS_PORT', 7002)}`

/** @param {string} name @param {string} service its folder @param {Record<string, string | number>} own @param {string[]} nodeArguments */
const app = (name, service, own = {}, nodeArguments = []) => ({
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
  // Started is what said so, after it listens.
  wait_ready: true,
  listen_timeout: 20_000,
  exp_backoff_restart_delay: 100,
  // Settings that are wrong (2) do not get better by trying again.
  stop_exit_codes: [2],
  merge_logs: true,
  // No probes, no look at git: the services export their own metrics.
  pmx: false,
  vizion: false,
})

/** In the order they are started; stopped in the reverse one. */
exports.apps = [
  app('data-provider', 'data-provider'),
  app('fetcher', 'fetcher'),
  ...Array.from({ length: number('GATEWAYS', 1) }, (_, index) =>
    app(
      index === 0 ? 'gateway' : `gateway-${index + 1}`,
      'gateway',
      {
        FETCHER_NODES: env.FETCHER_NODES || node,
        GATEWAY_PORT: number('GATEWAY_PORT', 8080) + index * GATEWAY_PORT_STEP,
        GATEWAY_INTERNAL_PORT: number('GATEWAY_INTERNAL_PORT', 8081) + index * GATEWAY_PORT_STEP,
      },
      // Else V8 holds more of what is gone at once: services/gateway/README.md.
      ['--max-semi-space-size=4'],
    ),
  ),
]
