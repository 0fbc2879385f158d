// The monitoring of a running system: a real Prometheus scrapes it under a short load, and every figure of the
// dashboards, rules and alerts exists.
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import WebSocket from 'ws'
import { parse } from 'yaml'
import { answers, startBackend } from '../support/backend.ts'
import { newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { freePorts } from '../support/free-ports.ts'
import { env, type Prometheus, prometheusFolder, startNodeExporter, startPrometheus } from '../support/prometheus.ts'
import { startProxy } from '../support/proxy.ts'
import { joinRooms } from '../support/rooms.ts'
import { writeRuleTests } from '../support/rule-tests.ts'
import { run } from '../support/run.ts'
import { startProvider, startSystem } from '../support/system.ts'

const config = readFileSync(join(prometheusFolder, 'prometheus.yml'), 'utf8')
const dashboardFolder = new URL('../../monitoring/grafana/dashboards/', import.meta.url)

/** Every query of every panel. */
const panelQueries: { where: string; expr: string }[] = readdirSync(dashboardFolder).flatMap(file => {
  const { panels } = JSON.parse(readFileSync(new URL(file, dashboardFolder), 'utf8'))
  return panels.flatMap(({ title, targets = [] }: any) =>
    targets.map(({ expr }: any) => ({ where: `${file}: ${title}`, expr: inserted(expr) })),
  )
})

test('Prometheus takes the configuration, and its rules do what their tests say', async () => {
  const promtool = (...args: string[]) => run('promtool', args, { env })
  expect((await promtool('check', 'config', join(prometheusFolder, 'prometheus.yml'))).stdout).toContain('SUCCESS')
  await promtool('test', 'rules', ...writeRuleTests(prometheusFolder, newFolder()))
})

describe('scraping a system under load', () => {
  let prometheus: Prometheus
  const stops: (() => Promise<void>)[] = []

  beforeAll(async () => {
    const provider = await startProvider({ PROVIDER_CHANGE_MS: '1000' })
    const forgetful = await startBackend() // says nothing that a conditional request could name
    forgetful.on('/1', answers.content('the same again', 'text/plain'))
    forgetful.on('/may-read/1', answers.status(200))
    const { gateways, fetchers, journal } = await startSystem({
      access: { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } },
      journals: 1,
      namespaces: {
        room: { source: 'journal', members: 'named' },
        plain: { url: `${forgetful.origin}/{id}`, refresh: '500ms' },
        conversation: { url: `${provider.origin}/conversations/{id}`, refresh: '500ms', maxAge: '2s' },
        decided: {
          url: `${forgetful.origin}/{id}`,
          authorize: { url: `${forgetful.origin}/may-read/{id}`, keep: '1s' },
        },
        missing: { url: `${provider.origin}/nothing/{id}`, refresh: '1s' },
      },
      gateways: 2,
    })
    const internals = gateways.map(({ process }) => `127.0.0.1:${process.listening.internalPort}`)
    const metrics = fetchers.map(({ process }) => `127.0.0.1:${process.listening.metricsPort}`)
    const [metricsPort] = await freePorts(1)
    const ports = gateways.map(({ process }) => Number(process.listening.port))
    await startProxy(ports, { env: { PROXY_METRICS_PORT: String(metricsPort) } })
    const targets = {
      gateway: internals,
      fetcher: metrics,
      journal: [`127.0.0.1:${journal.process().listening.metricsPort}`],
      'data-provider': [`127.0.0.1:${provider.process.listening.port}`],
      node: [await startNodeExporter()],
      nginx: [`127.0.0.1:${metricsPort}`],
      proxy: [], // found in files, of which there are none
    }
    prometheus = await startPrometheus(config, targets)

    for (const { url } of gateways) stops.push(await putUnderLoad(url))
  })

  afterAll(() => Promise.all(stops.map(stop => stop())))

  test('every target is up, found by the name of its service', async () => {
    await eventually(async () => {
      const all = await prometheus.targets()
      return all.length === 8 && all.every(({ health }: any) => health === 'up')
    }, 'every target being up')
    const names = parse(config).scrape_configs.flatMap(({ dns_sd_configs = [] }: any) => dns_sd_configs[0]?.names ?? [])
    expect(names).toEqual(['gateway', 'fetcher', 'journal', 'data-provider', 'proxy', 'node-exporter'])
  })

  test('every recording rule has a result', async () => {
    const rules = (await prometheus.rules()).filter(({ type }) => type === 'recording')
    expect(rules.length).toBeGreaterThan(20)
    await allHaveData(rules.map(({ name }) => ({ where: 'recorded', expr: name })))
  })

  test('every query of every panel has data', async () => {
    expect(panelQueries.length).toBeGreaterThan(50)
    await allHaveData(panelQueries.filter(({ expr }) => isConfigured(expr)))
  })

  test('no alert fires without a reason, and none speaks of metrics that nobody exports', async () => {
    const rules = await prometheus.rules()
    const alerts = rules.filter(({ type }) => type === 'alerting')
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([])
    const firing = alerts.filter(({ state }) => state === 'firing').map(({ name }) => name)
    expect(firing).toEqual(['KeycastWatchdog']) // it always does

    const recorded = new Set(rules.filter(({ type }) => type === 'recording').map(({ name }) => name))
    const queries = [...rules.map(({ query }) => query), ...panelQueries.map(({ expr }) => expr)]
    const used = new Set(queries.flatMap(query => query.match(/\b(keycast|node)_[a-z0-9_]+\b(?!:)/gi) ?? []))
    const names = new Set(await prometheus.names())
    const unknown = [...used].filter(name => !names.has(name) && ![...recorded].some(rule => rule.includes(name)))
    expect(unknown.filter(isConfigured)).toEqual([])
  })

  /** Some are there only where keycast.yaml names a key set, a stream of changes, a request for many keys, or who rules. */
  function isConfigured(name: string) {
    return !/\bkeycast_(gateway_jwks|fetcher_changes|fetcher_batch_keys|gateway_rulings|fetcher_rulings?)_/.test(name)
  }

  async function allHaveData(queries: { where: string; expr: string }[]) {
    let missing = queries
    const complete = async () => {
      const answers = await Promise.all(missing.map(({ expr }) => prometheus.query(expr)))
      missing = missing.filter((_, index) => !answers[index].some(({ value }) => Number.isFinite(value)))
      return missing.length === 0
    }
    await eventually(complete, 'data', { everyMs: 1_000 }).catch(() => {})
    expect(missing).toEqual([])
  }
})

/**
 * Makes everything happen that the panels show, and go on happening: subscriptions, gets, polls, errors, a viewer who
 * is slow again and again, viewers who leave and who are refused, a room that is joined, published into and read.
 *
 * @param url of a gateway
 * @returns stops it
 */
async function putUnderLoad(url: string): Promise<() => Promise<void>> {
  const keys = Array.from({ length: 30 }, (_, index) => `conversation:${index}`)
  const viewer = await connect(url)
  await viewer.subscribe([...keys, 'plain:1', 'decided:1', 'missing:1'])
  await viewer.reaches(keys[0], 1)

  const slow = await connect(url)
  await slow.subscribe(keys)

  const member = await joinRooms(url)
  await member.subscribe('room:1')

  const comeAndGo = async () => {
    await member.publish('room:1', 'Good morning')
    await member.request({ type: 'join', key: 'room:1', name: 'Ann' })
    await member.request({ type: 'leave', key: 'room:1' })
    await viewer.request({ type: 'get', key: keys[0] })
    await viewer.request({ type: 'get', key: 'missing:1' }) // an error
    await fetch(new URL(`/v1/values/${keys[0]}`, url.replace('ws', 'http')))
    const leaving = await connect(url)
    await leaving.subscribe(keys.slice(0, 2))
    leaving.close()
    await leaving.gone()
    await once(new WebSocket(url, ['keycast.v99']), 'error')
  }
  let stopped = false
  const going = (async () => {
    for (let round = 0; !stopped; await pause(250), round++) {
      await comeAndGo()
      if (round % 12 === 0) slow.stall()
      if (round % 12 === 10) slow.resume()
    }
  })()
  going.catch(() => {}) // told by whoever stops it
  return () => {
    stopped = true
    return going
  }
}

/** A panel's query as Grafana would send it. */
function inserted(expr: string) {
  return expr.replaceAll(/\$(gateway|fetcher|origin)/g, '.*').replaceAll('$__rate_interval', '1m')
}
