// Reloading everything under pm2, one service after another, while clients watch values that never stop changing.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd } from '../support/cleanup.ts'
import { connectViewer } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { freePorts } from '../support/free-ports.ts'
import { writeConfig } from '../support/keycast-yaml.ts'
import { createPm2 } from '../support/pm2.ts'

const KEYS = Array.from({ length: 20 }, (_, id) => `doc:${id}`)
const APPS = ['fetcher', 'gateway', 'gateway-2']

/** Shorter than the period of refreshes, so that each finds something new. */
const CHANGE_MS = 20
const REFRESH = '100ms'

/** A backend all of whose documents change all the time, until told to stop. */
async function startChanging() {
  const backend = await startBackend()
  let revision = 1
  for (const key of KEYS) {
    const path = `/docs/${key.slice('doc:'.length)}`
    backend.on(path, (request, response) => answers.json(documentOf(revision, 2_000))(request, response))
  }
  const timer = setInterval(() => {
    revision += 1
  }, CHANGE_MS)
  const stop = () => clearInterval(timer)
  atEnd(stop)
  return { origin: backend.origin, revision: () => revision, stop }
}

/** The second gateway's ports are those of the first and this much, as ecosystem.config.cjs has it. */
const GATEWAY_PORT_STEP = 10

/** Those of the first gateway come first. */
async function portsForTwoGateways(): Promise<number[]> {
  const ports = await freePorts(5)
  const ofSecond = ports.slice(0, 2).map(port => port + GATEWAY_PORT_STEP)
  const usable = !ofSecond.some(port => ports.includes(port)) && (await areFree(ofSecond))
  return usable ? ports : portsForTwoGateways()
}

async function areFree(ports: number[]) {
  const servers = ports.map(port => createServer().listen(port, '127.0.0.1'))
  const listening = await Promise.allSettled(servers.map(server => once(server, 'listening')))
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return listening.every(({ status }) => status === 'fulfilled')
}

/** @param origin of the backend */
async function startSystem(origin: string) {
  const [gateway, internal, requests, answersPort, metrics] = await portsForTwoGateways()
  const pm2 = createPm2({
    GATEWAYS: '2',
    GATEWAY_PORT: String(gateway),
    GATEWAY_INTERNAL_PORT: String(internal),
    FETCHER_REQUESTS_PORT: String(requests),
    FETCHER_ANSWERS_PORT: String(answersPort),
    FETCHER_METRICS_PORT: String(metrics),
    FETCHER_WORKERS: '1',
    KEYCAST_CONFIG: writeConfig({ doc: { url: `${origin}/docs/{id}`, refresh: REFRESH } }),
  })
  await pm2.run('start', 'ecosystem.config.cjs', '--only', APPS.join())
  const urlAt = (port: number) => `ws://127.0.0.1:${port}/ws`
  return { pm2, first: urlAt(gateway), second: urlAt(gateway + GATEWAY_PORT_STEP) }
}

test('the fetcher, then the gateways are reloaded: no client misses the newest revision or sees one fall', async () => {
  const backend = await startChanging()
  const { pm2, first, second } = await startSystem(backend.origin)
  const viewers = {
    'at the first gateway': await connectViewer([first, second], KEYS),
    'at the second': await connectViewer([second, first], KEYS),
    'that knows no other than the second': await connectViewer([second], KEYS),
  }
  const everybodySees = async (revision: number, when: string) => {
    for (const [which, { sights, until }] of Object.entries(viewers)) {
      const lacking = () => KEYS.filter(key => (sights.of(key).revision ?? 0) < revision)
      await until(() => lacking().length === 0, `a viewer ${which} seeing revision ${revision} ${when}`)
    }
  }
  await everybodySees(backend.revision(), 'at the start')

  for (const app of APPS) {
    const before = await pm2.pidOf(app)
    const at = performance.now()
    await pm2.run('reload', app)
    show(`pm2 reload ${app}: ${msSince(at)}`)
    expect(await pm2.pidOf(app)).not.toBe(before)
    // Only the new process can have fetched or passed on the backend's content from now on.
    await everybodySees(backend.revision(), `after ${app} was reloaded`)
  }

  backend.stop()
  await everybodySees(backend.revision(), 'at the end')
  for (const [which, viewer] of Object.entries(viewers)) {
    const times = viewer.offlineMs().map(ms => `${Math.round(ms)} ms`)
    show(`a viewer ${which}: ${viewer.connections()} connections, without one for ${times.join(', ') || 'no time'}`)
    expect(viewer.connections()).toBeGreaterThan(1)
    for (const key of KEYS) expect(viewer.sights.of(key).revision).toBe(backend.revision())
    viewer.stop()
  }

  await pm2.run('kill')
  await eventually(() => pm2.pids().length === 0, 'the end of everything pm2 started')
})
