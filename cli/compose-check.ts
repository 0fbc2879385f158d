// Checks on a running compose stack what the containers promise: few fetches, connections spread over the gateways,
// replicas that may die, messages that are kept, tight confinement, an orderly end. Not for a stack in use: it kills containers and stops them all.
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Container,
  containers,
  crash,
  docker,
  evaluate,
  inspect,
  isHealthy,
  request,
} from './compose-check/docker.ts'
import { startPublishers } from './compose-check/publishers.ts'
import { startViewers } from './compose-check/viewers.ts'
import { createChecks, readTimeout, readUrl, type Target } from './support/client.ts'
import { readCount, runCommand } from './support/command.ts'

const usage = `Usage: keycast compose-check [--url URL] [--viewers N] [--keys N] [--timeout SECONDS] [--insecure]

Checks the stack of docker-compose.yml, which must run with several replicas:

  docker compose up --detach --build --wait --scale gateway=4 --scale fetcher=2

or, with COMPOSE_FILE=docker-compose.yml:docker-compose.valkey.yml set for both commands, two journals on a Valkey.
Viewers connect through the proxy while containers are killed, crash and restart, and publishers while each journal is
killed, and Valkey. Each check is printed.
At the end the stack is stopped and stays stopped: do not run this on a stack in use.

  --url URL          where clients connect               (default wss://localhost)
  --viewers N        how many clients                    (default 40)
  --keys N           conversation:0, conversation:1, …   (default 100)
  --timeout SECONDS  for each check                      (default 90)
  --insecure         accept any certificate; on localhost any is accepted anyway

Exits with 0 when every check passed, with 1 when one failed, with 2 when it could not run.`

/** As keycast.yaml has it for conversations. */
const REFRESH_MS = 1_000

/** Refreshes over which fetches are counted. */
const REFRESHES = 10

/** The interval at which a waiting check looks again. */
const LOOK_MS = 250

/** The longest stop_grace_period of docker-compose.yml. */
const GRACE_MS = 20_000

/** Our services and nginx, which promise to stop in order. */
const OURS = ['secrets', 'data-provider', 'fetcher', 'journal', 'gateway', 'proxy']

/** Each with a room of its own. */
const PUBLISHERS = 10

/** Publishes acknowledged before a fault, and after it. */
const PUBLISHES = 300

type Options = Target & { viewers: number; keys: number; timeoutMs: number }

/** @returns the exit code */
async function checkStack(options: Options): Promise<number> {
  const all = await containers()
  const of = (service: string) => all.filter(container => container.service === service)
  const [backend] = of('data-provider')
  const [proxy] = of('proxy')
  const journals = of('journal')
  const [valkey] = of('valkey')
  const gateways = of('gateway')
  const fetchers = of('fetcher')
  if (!backend || !proxy || journals.length === 0 || gateways.length < 2 || fetchers.length < 2) {
    throw new Error('no stack with several gateways and fetchers runs here (--help says how to start one)')
  }

  const { check, conclude } = createChecks(options.timeoutMs)
  const keys = Array.from({ length: options.keys }, (_, index) => `conversation:${index}`)

  /** The backend's own present content of the last key. */
  const revision = async () => {
    const url = `http://127.0.0.1:3000/conversations/${options.keys - 1}`
    return Number(await evaluate(backend, `console.log((await (await fetch('${url}')).json()).revision)`))
  }

  const healthy = async (container: Container, signal: AbortSignal) => {
    while (!(await isHealthy(container))) {
      signal.throwIfAborted()
      await delay(LOOK_MS)
    }
  }

  await check('every container runs, and is healthy if it has a health check', async signal => {
    for (const container of all) if (container.service !== 'secrets') await healthy(container, signal)
    return `${all.length} containers`
  })
  await check(
    'no container runs as root, has a capability, can write to its root file system, or logs without bound',
    () => checkConfinement(all),
  )
  await check('only the proxy is published beyond this host', () => checkPorts(all))

  const viewers = startViewers(options, options.viewers, keys)
  try {
    await check(`${options.viewers} viewers hold ${options.keys} keys each`, async signal => {
      await viewers.reach(await revision(), signal)
      return undefined
    })
    await check('their connections are spread over all gateways', () => checkSpread(gateways, options.viewers))
    await check(`each key is fetched once per refresh, ${REFRESHES} times`, signal =>
      countFetches(backend, keys, signal),
    )

    /** Does something to the stack, and waits until every viewer holds a change that the backend made afterwards. */
    const survive = (what: string, act: (signal: AbortSignal) => Promise<unknown>) =>
      check(`${what}: every viewer gets the next change`, async signal => {
        const before = viewers.connections()
        await act(signal)
        await viewers.reach((await revision()) + 1, signal)
        return `${viewers.connections() - before} reconnected`
      })

    for (const container of [gateways[0], fetchers[0]]) {
      await survive(`docker kill ${container.name}`, () => docker('kill', container.id))
      // To Docker a kill is an operator's wish, like a stop: no restart policy brings the container back.
      await check(`docker start ${container.name}: it is healthy again`, async signal => {
        await docker('start', container.id)
        await healthy(container, signal)
        return undefined
      })
    }
    for (const container of [gateways[1], fetchers[1], journals[0], proxy]) {
      const { RestartCount: before } = await inspect(container)
      await survive(`a crash in ${container.name}`, () => crash(container))
      await check(`${container.name} was restarted by its policy, and is healthy`, async signal => {
        while ((await inspect(container)).RestartCount <= before) {
          signal.throwIfAborted()
          await delay(LOOK_MS)
        }
        await healthy(container, signal)
        return undefined
      })
    }
    /**
     * Publishers go on through a kill: without the container where others do its work, else once it is there again.
     */
    const keep = (container: Container, isReplaced: boolean) =>
      check(`docker kill ${container.name} under load: no acknowledged message is lost`, async signal => {
        const publishers = startPublishers(options, PUBLISHERS)
        try {
          await publishers.goOn(PUBLISHES, signal)
          await docker('kill', container.id)
          if (isReplaced) await publishers.goOn(PUBLISHES, signal)
          await docker('start', container.id)
          await healthy(container, signal)
          await publishers.goOn(PUBLISHES, signal)
          const retries = publishers.retries()
          const count = await publishers.conclude(signal, { mayBeginEpoch: container.service === 'valkey' })
          return `${count} acknowledged, ${retries} tries again`
        } finally {
          publishers.stop()
        }
      })
    for (const journal of journals) await keep(journal, journals.length > 1)
    if (valkey) await keep(valkey, false)
    await survive('docker compose restart data-provider', async signal => {
      await docker('compose', 'restart', 'data-provider')
      await healthy(backend, signal)
    })
    await check('each key is still fetched once per refresh', signal => countFetches(backend, keys, signal))
    await check('no viewer ever got an older revision after a newer one', async () => {
      const fallen = viewers.fallen()
      if (fallen.length > 0) throw new Error(`${fallen.length} did: ${fallen.slice(0, 5).join('; ')}`)
      return `${viewers.connections()} connections`
    })

    await check('docker compose stop ends every service in order', () => checkStop(all))
  } finally {
    viewers.stop()
  }
  return conclude()
}

async function checkConfinement(all: Container[]) {
  for (const container of all) {
    const { HostConfig } = await inspect(container)
    const wrong = [
      !HostConfig.ReadonlyRootfs && 'may write to its root',
      HostConfig.Privileged && 'is privileged',
      !HostConfig.CapDrop?.includes('ALL') && 'keeps capabilities',
      (HostConfig.CapAdd ?? []).length > 0 && 'is given capabilities',
      !HostConfig.SecurityOpt?.some(option => option.startsWith('no-new-privileges')) && 'may gain privileges',
      HostConfig.LogConfig.Type === 'json-file' && !HostConfig.LogConfig.Config['max-size'] && 'logs without end',
      container.service !== 'secrets' && (await docker('exec', container.id, 'id', '-u')) === '0' && 'runs as root',
    ].filter(Boolean)
    if (wrong.length > 0) throw new Error(`${container.name} ${wrong.join(', ')}`)
  }
  return undefined
}

async function checkPorts(all: Container[]) {
  const published = []
  for (const container of all) {
    const { NetworkSettings } = await inspect(container)
    const addresses = Object.values(NetworkSettings.Ports).flatMap(bindings => bindings ?? [])
    for (const { HostIp, HostPort } of addresses) {
      if (container.service !== 'proxy' && HostIp !== '127.0.0.1') {
        throw new Error(`${container.name} is published on ${HostIp}:${HostPort}`)
      }
      published.push(`${container.service} ${HostIp}:${HostPort}`)
    }
  }
  return published.join(', ')
}

async function checkSpread(gateways: Container[], viewers: number) {
  const sessions = []
  for (const gateway of gateways) {
    const metrics = await request(gateway, 'http://127.0.0.1:8081/metrics')
    sessions.push(Number(/^keycast_gateway_sessions (\d+)$/m.exec(metrics)?.[1]))
  }
  const said = sessions.join(' + ')
  // Half of an equal share: another client may be connected too, and counts are a moment apart.
  const least = Math.floor(viewers / gateways.length / 2)
  if (!sessions.every(count => count >= least)) throw new Error(`${said}, ${least} expected of each`)
  return said
}

/** Counts fetches where they arrive, at the backend. */
async function countFetches(backend: Container, keys: string[], signal: AbortSignal) {
  const paths = keys.map(key => key.replace('conversation:', '/conversations/'))
  await request(backend, 'http://127.0.0.1:3000/stats/reset', 'POST')
  const startedAt = performance.now()
  for (;;) {
    const { byKey } = JSON.parse(await request(backend, 'http://127.0.0.1:3000/stats'))
    const elapsedMs = performance.now() - startedAt
    const totals = paths.map(path => byKey[path]?.total ?? 0)
    const [least, most] = [Math.min(...totals), Math.max(...totals)]
    // One more than the time holds, because a refresh may lie at either end of it.
    const allowed = Math.ceil(elapsedMs / REFRESH_MS) + 1
    const said = `${least} to ${most} a key in ${(elapsedMs / 1_000).toFixed(1)} s`
    if (most > allowed) throw new Error(said)
    if (least >= REFRESHES) return said
    signal.throwIfAborted()
    await delay(LOOK_MS)
  }
}

async function checkStop(all: Container[]) {
  const startedAt = performance.now()
  await docker('compose', 'stop')
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  for (const container of all) {
    if (!OURS.includes(container.service)) continue
    const { State } = await inspect(container)
    if (State.Status !== 'exited' || State.ExitCode !== 0 || State.OOMKilled) {
      throw new Error(`${container.name} is ${State.Status} with exit code ${State.ExitCode}`)
    }
  }
  // Services stop one after the other, dependents first. One that outlasts its grace is killed, with exit code 137.
  if (seconds * 1_000 > GRACE_MS * 3) throw new Error(`took ${seconds} s`)
  return `exit code 0, ${seconds} s`
}

const options = {
  url: { type: 'string', default: 'wss://localhost' },
  viewers: { type: 'string', default: '40' },
  keys: { type: 'string', default: '100' },
  timeout: { type: 'string', default: '90' },
  insecure: { type: 'boolean', default: false },
} as const

export const run = (args: string[]) =>
  runCommand(
    { name: 'keycast compose-check', usage, options },
    ({ values: { url, viewers, keys, timeout, insecure } }) =>
      checkStack({
        ...readUrl(url, insecure),
        viewers: readCount('viewers', viewers, 1),
        keys: readCount('keys', keys, 1),
        timeoutMs: readTimeout(timeout),
      }),
    args,
  )
