import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { settings as fetcher } from '../../services/fetcher/settings.ts'
import { settings as gateway } from '../../services/gateway/settings.ts'
import { settings as journal } from '../../services/journal/settings.ts'
import { type App, planServices, reachable } from './services.ts'
import { type Config, settings } from './settings.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The file as pm2 reads it for npm start, in a process of its own: it reads the environment when it is loaded. */
function appsWith(given: Record<string, string> = {}): App[] {
  const env = { KEYCAST_PROFILE: 'try', ...given }
  const script = 'JSON.stringify(require("./ecosystem.config.cjs").apps)'
  return JSON.parse(execFileSync(process.execPath, ['-p', script], { cwd: root, env, encoding: 'utf8', stdio: 'pipe' }))
}

const config = {
  gateways: 1,
  gatewayHost: '127.0.0.1',
  gatewayPort: 8080,
  gatewayInternalHost: '0.0.0.0',
  gatewayInternalPort: 8081,
  fetcherHost: '127.0.0.1',
  fetcherRequestsPort: 7001,
  fetcherAnswersPort: 7002,
  fetcherMetricsHost: '127.0.0.1',
  fetcherMetricsPort: 8082,
  journalHost: '127.0.0.1',
  journalPublicationsPort: 7003,
  journalDeliveriesPort: 7004,
  journalMetricsHost: '127.0.0.1',
  journalMetricsPort: 8083,
  providerHost: '127.0.0.1',
  providerPort: 3000,
} as Config

test('the services are started from the backend outward, each from a file that exists', () => {
  const apps = appsWith()
  expect(apps.map(({ name }) => name)).toEqual(['data-provider', 'fetcher', 'journal', 'gateway'])
  for (const { cwd, script } of apps) expect(existsSync(join(String(cwd), String(script)))).toBe(true)
})

test('PROVIDERS=0 leaves the simulated backend out, as production does', () => {
  expect(appsWith({ KEYCAST_PROFILE: 'production' }).map(({ name }) => name)).toEqual(['fetcher', 'journal', 'gateway'])
  expect(appsWith({ PROVIDERS: '0' }).map(({ name }) => name)).toEqual(['fetcher', 'journal', 'gateway'])
  expect(() => appsWith({ PROVIDERS: '2' })).toThrow('PROVIDERS=2: must be a whole number, from 0 to 1')
})

test('a try does not wait until workers are warm, unless it is told to; production does', () => {
  const warmUpOf = (env: Record<string, string>) =>
    appsWith(env).find(({ name }) => name === 'fetcher')?.env.FETCHER_WARM_UP_PULLS
  expect(warmUpOf({})).toBe('0')
  expect(warmUpOf({ FETCHER_WARM_UP_PULLS: '9' })).toBe('9')
  expect(warmUpOf({ KEYCAST_PROFILE: 'production' })).toBeUndefined()
})

test('each service is one process, gets the stop signal alone, reports when it is ready, and is killed only after its grace', () => {
  for (const app of appsWith({ SHUTDOWN_GRACE_MS: '4000' })) {
    expect(app).toMatchObject({ exec_mode: 'fork', instances: 1, treekill: false, wait_ready: true })
    expect(app.env.SHUTDOWN_GRACE_MS).toBe(4_000)
    expect(app.kill_timeout).toBeGreaterThan(4_000)
  }
})

test('each gateway has ports of its own, and none are those of other services', () => {
  const ports = planServices(config, appsWith({ GATEWAYS: '16' }), { needsJournal: true }).flatMap(({ ports }) =>
    ports.map(({ port }) => port),
  )
  expect(ports).toHaveLength(1 + 3 + 3 + 16 * 2)
  expect(new Set(ports).size).toBe(ports.length)
})

test('gateways find the journal at the ports it was given, unless told of others', () => {
  const gateway = (env: Record<string, string>) => appsWith(env).at(-1)?.env
  expect(gateway({})?.JOURNAL_NODES).toBe('127.0.0.1:7003:7004')
  expect(gateway({ JOURNAL_DELIVERIES_PORT: '9004' })?.JOURNAL_NODES).toBe('127.0.0.1:7003:9004')
  expect(gateway({ JOURNAL_NODES: 'elsewhere' })?.JOURNAL_NODES).toBe('elsewhere')
})

test('pm2 does not restart the journal for the file that it maps', () => {
  const limits = appsWith().map(({ name, max_memory_restart: bytes }) => [name, bytes !== undefined])
  expect(Object.fromEntries(limits)).toEqual({ 'data-provider': true, fetcher: true, journal: false, gateway: true })
})

test('gateways find the fetcher at the ports it was given, unless told of others', () => {
  const gateway = (env: Record<string, string>) => appsWith(env).at(-1)?.env
  expect(gateway({})?.FETCHER_NODES).toBe('127.0.0.1:7001:7002')
  expect(gateway({ FETCHER_REQUESTS_PORT: '9001', FETCHER_HOST: '10.0.0.1' })?.FETCHER_NODES).toBe('10.0.0.1:9001:7002')
  expect(gateway({ FETCHER_NODES: 'elsewhere' })?.FETCHER_NODES).toBe('elsewhere')
})

test('pm2 reads durations and sizes as the services do, and refuses what they refuse in the same words', () => {
  for (const app of appsWith({ SHUTDOWN_GRACE_MS: '2s' })) expect(app.env.SHUTDOWN_GRACE_MS).toBe(2_000)
  const heldBytesMax = (env: Record<string, string>) => Number(appsWith(env)[1].max_memory_restart)
  expect(heldBytesMax({ FETCHER_CACHE_BYTES_MAX: '1GiB' }) - heldBytesMax({ FETCHER_CACHE_BYTES_MAX: '1MiB' })).toBe(
    1_023 * 1_024 ** 2,
  )
  const { sessionsMax, cacheBytesMax, unsentTotalBytesMax, tailBytesMax } = gateway
  const { shutdownGraceMs, gateways, providers } = settings
  for (const { env, expects } of [
    shutdownGraceMs,
    gateways,
    providers,
    sessionsMax,
    cacheBytesMax,
    unsentTotalBytesMax,
    tailBytesMax,
    fetcher.cacheBytesMax,
  ]) {
    expect(() => appsWith({ [env]: 'soon' })).toThrow(`${env}=soon: must be ${expects}`)
  }
  expect(() => appsWith({ GATEWAY_PORT: 'eighty' })).toThrow('GATEWAY_PORT=eighty')
})

test("pm2's defaults are the services' own", () => {
  const declared = [...Object.values(settings), ...[fetcher, journal, gateway].flatMap(each => Object.values(each))]
  const numbers = declared.filter(({ default: standard }) => typeof standard === 'number')
  const env = Object.fromEntries(numbers.map(({ env, default: standard }) => [env, String(standard)]))
  // A try has its own.
  expect(appsWith({ ...env, FETCHER_WARM_UP_PULLS: '' })).toEqual(appsWith())
})

test('every port is checked under the variable that changes it, and health is asked where it can be reached', () => {
  const [provider, fetcher, journal, gateway] = planServices(config, appsWith(), { needsJournal: true })
  expect(provider.ports.map(({ variable }) => variable)).toEqual(['PROVIDER_PORT'])
  expect(fetcher.ports.map(({ variable, port }) => [variable, port])).toEqual([
    ['FETCHER_REQUESTS_PORT', 7001],
    ['FETCHER_ANSWERS_PORT', 7002],
    ['FETCHER_METRICS_PORT', 8082],
  ])
  expect(journal.ports.map(({ variable, port }) => [variable, port])).toEqual([
    ['JOURNAL_PUBLICATIONS_PORT', 7003],
    ['JOURNAL_DELIVERIES_PORT', 7004],
    ['JOURNAL_METRICS_PORT', 8083],
  ])
  expect(journal.healthUrl).toBe('http://127.0.0.1:8083/health/ready')
  expect(gateway.ports.map(({ host, port }) => `${host}:${port}`)).toEqual(['127.0.0.1:8080', '0.0.0.0:8081'])
  expect(gateway.healthUrl).toBe('http://127.0.0.1:8081/health/ready')
})

test('without rooms no journal is started, and its ports are left to others', () => {
  const names = planServices(config, appsWith(), { needsJournal: false }).map(({ name }) => name)
  expect(names).toEqual(['data-provider', 'fetcher', 'gateway'])
})

test('an address to listen on becomes one to connect to', () => {
  expect(['0.0.0.0', '::', '::1', '10.0.0.1', 'host'].map(reachable)).toEqual([
    '127.0.0.1',
    '[::1]',
    '[::1]',
    '10.0.0.1',
    'host',
  ])
})
