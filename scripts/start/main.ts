// npm start, step by step: check, start the services and wait until they are ready, say what to open, and on a signal or a
// failure stop everything again.
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { needsJournal, readSettings } from '@keycast/service'
import { NamespacesError, readNamespaces } from '@keycast/service/namespaces'
import { ensureSigningSecret } from '../../cli/support/signing-secret.ts'
import { cleanUpAfterKill } from './after-kill.ts'
import { endMarked } from './end-leftovers.ts'
import { terminalIsGone, watchOrphaned } from './orphan.ts'
import { createOutput } from './output.ts'
import { canLook, claim, fitsSockets, homeFor, inspect, isStart, release } from './pm2-home.ts'
import { requireFreePorts } from './ports.ts'
import { untilReady } from './ready.ts'
import { type App, planServices, reachable, type Service } from './services.ts'
import { settings } from './settings.ts'
import { StartError } from './start-error.ts'
import { stop } from './stop.ts'
import { type Exit, loadSupervisor, type Supervisor } from './supervisor.ts'

/** A busy machine takes long: a service that cannot start ends, which is noticed at once. */
const READY_DEADLINE_MS = 60_000
const DAEMON_WATCH_MS = 1_000

/** The folder in which pm2 starts the services. */
const root = fileURLToPath(new URL('../../', import.meta.url))

// It is for trying; pm2 and the services inherit it.
process.env.KEYCAST_PROFILE ||= 'try'
const config = readSettings(settings, {
  name: 'npm start',
  about:
    'runs the whole system on this host until Ctrl-C: data-provider, fetcher, journal and gateway, under a pm2 of its own. ' +
    "The services read their own settings from the same environment: node services/gateway/main.js --help lists a gateway's.",
})
const content = readContent()
const services = planServices(config, readApps(), content)
const gateways = services.filter(({ name }) => name.startsWith('gateway'))

const home = homeFor({
  given: config.pm2Home,
  repository: root,
  temporary: tmpdir(),
})
// Writing to a closed terminal fails; without a listener that would end this process before it has stopped the services.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
const output = createOutput({
  write: text => process.stdout.write(text),
  services: services.map(({ name }) => name),
  format: config.logFormat,
  colour: process.stdout.isTTY && process.stdout.hasColors(),
})

/** Without a secret, tokens for trying are signed with one of this checkout. Only gateways are given it. */
const hasSecret = process.env.JWT_SECRET || process.env.JWT_SECRET_FILE
const signing = hasSecret || config.profile !== 'try' ? {} : makeSigningSecret()

/** Aborted with the reason that ends the run: a text, such as a signal's name, or the error. */
const ending = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // A second signal changes nothing: npm passes Ctrl-C on, so it comes twice, and stopping is bounded anyway.
  process.on(signal, () => ending.abort(signal))
}
watchOrphaned(why => ending.abort(why))
// A programming error here must not leave processes behind either.
for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, error => ending.abort(error))

/** Services that are ready. A service that ends before that would end again. */
const ready = new Set<string>()

/** Services that pm2 was told to start, and so must stop. */
const started = new Set<string>()

/** The service whose failure ends the run, and whose last lines are shown. */
let failed: string | undefined

function onExit({ service, code, final }: Exit) {
  if (ending.signal.aborted || !started.has(service)) return
  const what = code === 0 ? `${service} ended` : `${service} ended with exit code ${code}`
  if (ready.has(service) && !final) return output.say(`${what}.`)
  failed = service
  ending.abort(new StartError(ready.has(service) ? `${what}.` : `${what} before it was ready. Its last lines:`))
}

function onOnline(service: string) {
  if (ready.has(service)) output.say(`${service} was restarted.`)
}

/** @returns of a gateway's environment; empty where the folder cannot be written: nobody can sign then */
function makeSigningSecret(): Record<string, string> {
  try {
    return { JWT_SECRET_FILE: ensureSigningSecret() }
  } catch {
    return {}
  }
}

/** @returns the list that pm2 reads as well */
function readApps(): App[] {
  try {
    return createRequire(import.meta.url)('../../ecosystem.config.cjs').apps
  } catch (error) {
    const { name, message } = error as Error
    if (name !== 'SettingsError') throw error
    process.stderr.write(`Invalid settings of npm start:\n  ${message}\n`)
    process.exit(2)
  }
}

/**
 * Read from keycast.yaml. If it cannot be read the services say why: nothing is left out, and nothing is known of it.
 */
function readContent() {
  try {
    const namespaces = readNamespaces({ path: resolve(root, config.configPath), headers: false })
    return { first: namespaces.all.names[0], needsJournal: needsJournal(namespaces) }
  } catch (error) {
    if (!(error instanceof NamespacesError)) throw error
    return { first: 'conversation', needsJournal: true }
  }
}

async function clearHome() {
  if (!fitsSockets(home))
    throw new StartError(`PM2_HOME=${home}: the path is too long for pm2's sockets. Set PM2_HOME to a shorter one.`)
  const { daemon, starter, abandoned, left } = inspect(home)
  // Its pm2 comes up some time after it: two that wait for one pm2 would wait for ever.
  if (starter && (daemon || isStart(starter))) {
    throw new StartError(
      `Keycast is already running, started by process ${starter} (pm2 in ${home}). Stop it first: kill ${starter}`,
    )
  }
  if (left.length > 0) {
    output.say('An earlier run was killed: stopping the processes it left behind.')
    return endMarked(home, { patienceMs: config.shutdownGraceMs })
  }
  if (daemon && !abandoned) throw foreignPm2()
  // On Linux nothing is left, and the daemon's pid is another process's by now. Elsewhere that cannot be known.
  if (daemon && !canLook) {
    throw new StartError(`An earlier run was killed. End its pm2 first: PM2_HOME=${home} npx pm2 kill`)
  }
}

function foreignPm2() {
  return new StartError(
    `Another pm2 runs in ${home}. Set PM2_HOME to another folder, or let that pm2 run Keycast:\n` +
      '  npx pm2 start ecosystem.config.cjs',
  )
}

async function start(supervisor: Supervisor, service: Service) {
  const { name, app } = service
  output.say(`starting ${name}`)
  started.add(name)
  // JSON, because the lines are formatted here. No files: the terminal shows the lines already.
  const own = {
    env: { ...app.env, ...(name.startsWith('gateway') && signing), LOG_FORMAT: 'json' },
    out_file: '/dev/null',
    error_file: '/dev/null',
  }
  await Promise.race([supervisor.start({ ...app, ...own }), aborted])
  await untilReady(service, { deadlineMs: READY_DEADLINE_MS, signal: ending.signal })
  ready.add(name)
}

const aborted = new Promise((_, reject) => {
  ending.signal.addEventListener('abort', () => reject(ending.signal.reason))
})
aborted.catch(() => {})

async function run() {
  await clearHome()
  await requireFreePorts(services.flatMap(({ ports }) => ports))
  ending.signal.throwIfAborted()
  claim(home)
  cleanUpAfterKill(home, { patienceMs: config.shutdownGraceMs })
  const supervisor = await loadSupervisor({ home, onOutput: output.take, onExit, onOnline })
  let ours = false
  let watch: NodeJS.Timeout | undefined
  try {
    ours = !(await Promise.race([supervisor.connect(), aborted]))
    if (!ours) throw foreignPm2()
    ending.signal.throwIfAborted()
    watch = setInterval(watchDaemon, DAEMON_WATCH_MS)
    // At once: services find each other in any order, and one by one they took a third longer.
    await Promise.all(services.map(service => start(supervisor, service)))
    output.stream()
    output.say(welcome())
    await aborted
  } catch (error) {
    // Before the services are stopped: the end of one would be taken for the reason.
    ending.abort(error)
    throw error
  } finally {
    clearInterval(watch)
    if (ours) await stop(supervisor, { home, started, graceMs: config.shutdownGraceMs, say: output.say })
    await endMarked(home, { patienceMs: config.shutdownGraceMs })
    release(home)
  }
}

function watchDaemon() {
  if (!inspect(home).daemon) ending.abort(new StartError(`The pm2 in ${home} has ended: stopping the services it ran.`))
}

function welcome() {
  const [{ app }] = gateways
  const at = `${reachable(config.gatewayHost)}:${app.env.GATEWAY_PORT}`
  const messages = config.journalLogKind === 'memory' ? 'in memory only' : resolve(config.journalFolder)
  return `
Keycast is running. Ctrl-C stops it.

  In a browser   http://${at}/
  In a terminal  npx wscat -c ws://${at}/ws
                 {"type":"subscribe","id":1,"keys":["${content.first}:1"]}
  With a token   npx keycast token --sub ann --read '${content.first}:*'
                 {"type":"auth","id":2,"token":"…"}
  Messages       ${content.needsJournal ? messages : 'none: keycast.yaml has nothing that a journal keeps, so none runs'}
  pm2            PM2_HOME=${home} npx pm2 list
`
}

try {
  await run()
} catch (error) {
  // Once the run is ending, every step under way fails because of that: only the reason for the end matters.
  const reason = ending.signal.aborted ? ending.signal.reason : error
  if (typeof reason !== 'string') {
    const { message, stack } = reason as Error
    process.stderr.write(
      `\n${reason instanceof StartError ? message : stack}\n${failed ? output.lastLines(failed) : ''}`,
    )
    process.exitCode = 1
  }
}
if (ending.signal.reason === 'SIGHUP' || terminalIsGone()) {
  // Node's own exit resets the terminal, and aborts with a core dump where there is none any more.
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}
// pm2's client reopens its sockets, so the process would never end by itself.
process.exit()
