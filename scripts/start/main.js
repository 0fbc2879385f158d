// npm start, told in order: check, start each service and wait until it is ready, say what to open, and on a signal or
// a failure take everything away again.
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readSettings } from '@keycast/service'
import { cleanUpAfterKill } from './cleanup.js'
import { endMarked } from './end-processes.js'
import { terminalIsGone, watchOrphaned } from './orphan.js'
import { createOutput } from './output.js'
import { canLook, claim, fitsSockets, homeFor, inspect, release } from './pm2-home.js'
import { requireFreePorts } from './ports.js'
import { untilReady } from './ready.js'
import { planServices, reachable } from './services.js'
import { settings } from './settings.js'
import { StartError } from './start-error.js'
import { loadSupervisor } from './supervisor.js'

const READY_DEADLINE_MS = 20_000
const DAEMON_WATCH_MS = 1_000

const config = readSettings(settings, {
  name: 'npm start',
  about:
    'Runs the whole system on this host until Ctrl-C: data-provider, fetcher and gateway, under a pm2 of its own. ' +
    'The settings of the services reach them too (node services/gateway/main.js --help).',
})
const { apps } = createRequire(import.meta.url)('../../ecosystem.config.cjs')
const services = planServices(config, apps)
const gateways = services.filter(({ name }) => name.startsWith('gateway'))
/** Together what may be stopped together: clients are told first, and nobody asks one that is gone. */
const stopOrder = [gateways.map(({ name }) => name), ['fetcher'], ['data-provider']]
/** All of them at their slowest, killed by pm2 in the end, and some more for pm2 itself. */
const STOP_DEADLINE_MS = stopOrder.length * (config.shutdownGraceMs + 5_000) + 5_000

const home = homeFor({
  given: config.pm2Home,
  repository: fileURLToPath(new URL('../../', import.meta.url)),
  temporary: tmpdir(),
})
// A terminal that was closed takes no more text; stopping in order matters more.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
const output = createOutput({
  write: text => process.stdout.write(text),
  services: services.map(({ name }) => name),
  format: config.logFormat,
  colour: process.stdout.isTTY && process.stdout.hasColors(),
})

/** Aborted with what ends the run: a text, such as a signal's name, or the error that says what failed. */
const ending = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // Ctrl-C comes twice where npm passes it on, and more often from the impatient: stopping is bounded all the same.
  process.on(signal, () => ending.abort(signal))
}
watchOrphaned(why => ending.abort(why))
// A mistake here must not leave processes behind either.
for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, error => ending.abort(error))

/** Services that are ready: one that ends before it was will not be by itself. @type {Set<string>} */
const ready = new Set()

/** Told to start, so that they are to be stopped. @type {Set<string>} */
const started = new Set()

/** The service whose last lines say why all ends. @type {string | undefined} */
let failed

/** @param {import('./supervisor.js').Exit} exit */
function onExit({ service, code, final }) {
  if (ending.signal.aborted || !started.has(service)) return
  const what = code === 0 ? `${service} ended` : `${service} ended with exit code ${code}`
  if (ready.has(service) && !final) return output.say(`${what}.`)
  failed = service
  ending.abort(new StartError(ready.has(service) ? `${what}.` : `${what} before it was ready. Its last lines:`))
}

/** @param {string} service */
function onOnline(service) {
  if (ready.has(service)) output.say(`${service} is started again.`)
}

async function clearHome() {
  if (!fitsSockets(home))
    throw new StartError(`PM2_HOME=${home}: the path is too long for pm2's sockets; use a shorter one.`)
  const { daemon, starter, abandoned, left } = inspect(home)
  if (daemon && starter) {
    throw new StartError(
      `Keycast runs already, started by process ${starter} (pm2 in ${home}). Stop it with Ctrl-C there.`,
    )
  }
  if (left.length > 0) {
    output.say('A former run was killed: stopping what it left behind.')
    return endMarked(home, { patienceMs: config.shutdownGraceMs })
  }
  if (daemon && !abandoned) throw foreignPm2()
  // Nothing is left, and the daemon's number is another process's by now; unless that cannot be known here.
  if (daemon && !canLook) {
    throw new StartError(`A former run was killed. End its pm2 first: PM2_HOME=${home} npx pm2 kill`)
  }
}

function foreignPm2() {
  return new StartError(
    `A pm2 runs in ${home} that is not ours: set PM2_HOME to another folder, or let it run Keycast:\n` +
      '  npx pm2 start ecosystem.config.cjs',
  )
}

/** @param {import('./supervisor.js').Supervisor} supervisor @param {import('./services.js').Service} service */
async function start(supervisor, service) {
  const { name, app } = service
  output.say(`starting ${name}`)
  started.add(name)
  // Rendered here; what pm2 would also write to files is on the terminal already.
  const own = { env: { ...app.env, LOG_FORMAT: 'json' }, out_file: '/dev/null', error_file: '/dev/null' }
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
  const supervisor = await loadSupervisor({ home, onOutput: output.took, onExit, onOnline })
  let ours = false
  /** @type {NodeJS.Timeout | undefined} */
  let watch
  try {
    ours = !(await supervisor.connect())
    if (!ours) throw foreignPm2()
    ending.signal.throwIfAborted()
    watch = setInterval(watchDaemon, DAEMON_WATCH_MS)
    for (const service of services) await start(supervisor, service)
    output.stream()
    output.say(welcome())
    await aborted
  } finally {
    clearInterval(watch)
    if (ours) await Promise.race([stop(supervisor), delay(STOP_DEADLINE_MS)])
    await endMarked(home, { patienceMs: config.shutdownGraceMs })
    release(home)
  }
}

function watchDaemon() {
  if (!inspect(home).daemon) ending.abort(new StartError(`The pm2 in ${home} has ended: stopping what it ran.`))
}

/** @param {import('./supervisor.js').Supervisor} supervisor */
async function stop(supervisor) {
  // Without its daemon nobody answers; what it ran ends with the marked.
  if (!inspect(home).daemon) return
  for (const group of stopOrder) {
    const names = group.filter(name => started.has(name))
    if (names.length === 0) continue
    output.say(`stopping ${names.join(', ')}`)
    await supervisor.stop(names)
  }
  await supervisor.kill()
}

function welcome() {
  const [{ app }] = gateways
  const at = `${reachable(config.gatewayHost)}:${app.env.GATEWAY_PORT}`
  return `
Keycast is running. Ctrl-C stops it.

  In a browser   http://${at}/
  In a terminal  npx wscat -c ws://${at}/ws
                 {"type":"subscribe","id":1,"keys":["conversation:1"]}
  pm2            PM2_HOME=${home} npx pm2 list
`
}

try {
  await run()
} catch (error) {
  // Whatever was under way when all was to end failed of that, each in its own words.
  const reason = ending.signal.aborted ? ending.signal.reason : error
  if (typeof reason !== 'string') {
    const { message, stack } = /** @type {Error} */ (reason)
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
// pm2's client keeps sockets that it opens again: nothing is left to wait for.
process.exit()
