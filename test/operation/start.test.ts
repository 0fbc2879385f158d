// npm start as a person uses it: everything comes up, a client gets a value, and however it ends no process is left.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually, within } from '../support/deadline.ts'
import { freePorts } from '../support/free-ports.ts'
import { ofNode } from '../support/node-process.ts'
import { createMark, root } from '../support/pm2.ts'
import { isAlive } from '../support/processes.ts'

const pm2 = join(root, 'node_modules/pm2/bin/pm2')

const portVariables = [
  'GATEWAY_PORT',
  'GATEWAY_INTERNAL_PORT',
  'FETCHER_REQUESTS_PORT',
  'FETCHER_ANSWERS_PORT',
  'FETCHER_METRICS_PORT',
  'JOURNAL_PUBLICATIONS_PORT',
  'JOURNAL_DELIVERIES_PORT',
  'JOURNAL_METRICS_PORT',
  'PROVIDER_PORT',
]

/** The services start one after the other: on a busy machine each takes its time. */
const START_MS = 90_000

/** @returns a free port for each variable */
async function portsForAll(): Promise<Record<string, string>> {
  const ports = await freePorts(portVariables.length)
  return Object.fromEntries(portVariables.map((variable, index) => [variable, String(ports[index])]))
}

/**
 * Settings of a start that is looked at for its processes: one worker and no simulated backend are enough for that, and
 * start sooner.
 */
async function lean(): Promise<Record<string, string>> {
  const fewer = { FETCHER_WORKERS: '1', FETCHER_WARM_UP_PULLS: '0', PROVIDERS: '0' }
  return { ...(await portsForAll()), PM2_HOME: newFolder(), ...fewer }
}

/**
 * The system as a person starts it.
 *
 * @param options the command, and the typed input; scripts/start.js unless given
 */
function start(
  env: Record<string, string>,
  { command = [process.execPath, 'scripts/start.js'], input = '' }: { command?: string[]; input?: string } = {},
) {
  const mark = createMark()
  const [program, ...args] = command
  const child = spawn(program, args, {
    cwd: root,
    env: { ...ofNode, HOME: process.env.HOME, ...mark.env, JOURNAL_DATA: newFolder(), ...env },
    // The leader of a process group, as a shell makes it: Ctrl-C reaches the whole group.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.write(input)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (text += chunk))
  const pid = child.pid as number
  const exited = once(child, 'close').then(([code]) => code)
  return {
    pid,
    text: () => text,
    left: mark.pids,
    /** @param signal to the process group */
    signal: (signal: NodeJS.Signals) => process.kill(-pid, signal),
    said: (part: string) =>
      eventually(() => text.includes(part), 'it being said', { deadlineMs: START_MS }).catch(error => {
        throw new Error(`“${part}” is not said in\n${text}`, { cause: error })
      }),
    ended: () => within(exited, () => `the end of\n${text}\n`),
    /** Every process is gone, by the mark they carry and by the pids seen while all ran. */
    async gone(seen: number[]) {
      try {
        await eventually(() => mark.pids().length === 0 && !seen.some(isAlive), 'the end of every process')
        await within(exited, 'the last of what they said')
      } catch (error) {
        const left = mark.pids().map(pid => `${pid} ${commandOf(pid)}`)
        throw new Error(`left behind:\n${left.join('\n')}\nafter\n${text}`, { cause: error })
      }
    },
  }
}

function commandOf(pid: number) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return '' // ended meanwhile
  }
}

test('everything comes up, a client gets a value, and Ctrl-C leaves no process behind and another pm2 alone', async () => {
  const otherHome = newFolder()
  execFileSync(process.execPath, [pm2, 'ping'], { env: { ...ofNode, PM2_HOME: otherHome }, stdio: 'pipe' })
  const otherPm2 = Number(readFileSync(join(otherHome, 'pm2.pid'), 'utf8'))
  atEnd(() => isAlive(otherPm2) && process.kill(otherPm2, 'SIGTERM'))

  const ports = await portsForAll()
  // A duration as the services read it: pm2's own file must take it, too.
  const folder = newFolder()
  const system = start({
    ...ports,
    JOURNAL_DATA: folder,
    PM2_HOME: newFolder(),
    GATEWAYS: '1',
    SHUTDOWN_GRACE_MS: '9s',
  })
  await system.said('Keycast is running')
  expect(system.text()).toContain(`http://127.0.0.1:${ports.GATEWAY_PORT}/`)

  const client = await connect(`ws://127.0.0.1:${ports.GATEWAY_PORT}/ws`)
  await client.subscribe(['conversation:1'])
  await client.until(() => client.of('conversation:1').data?.messages.length > 0, 'the conversation')
  const token = execFileSync(process.execPath, ['cli/keycast.js', 'token', '--sub', 'ann'], {
    cwd: root,
    env: { ...ofNode },
  })
  expect(await client.request({ type: 'auth', token: token.toString().trim() })).toMatchObject({ user: 'ann' })
  const page = await fetch(`http://127.0.0.1:${ports.GATEWAY_PORT}/`)
  expect(await page.text()).toContain('<title>Keycast</title>')
  expect(system.text()).toContain(`Messages       ${folder}`)
  expect(existsSync(join(folder, 'data.mdb'))).toBe(true)

  // As npm does it: Ctrl-C reaches the group, and npm passes it on once more.
  system.signal('SIGINT')
  system.signal('SIGINT')
  expect(await system.ended()).toBe(0)
  expect(system.left()).toEqual([])
  expect(system.text()).toMatch(/stopping gateway(.|\n)*stopping fetcher, journal(.|\n)*stopping data-provider/)
  expect(isAlive(otherPm2)).toBe(true)
})

test('Ctrl-C while it starts leaves nothing either', async () => {
  const system = start(await lean())
  await system.said('starting fetcher')
  system.signal('SIGINT')
  expect(await system.ended()).toBe(0)
  expect(system.left()).toEqual([])
})

test('a port in use is named before anything is started', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  atEnd(() => new Promise(resolve => server.close(resolve)))
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const system = start({ ...(await lean()), GATEWAY_PORT: String(port) })
  expect(await system.ended()).toBe(1)
  expect(system.text()).toMatch(
    new RegExp(`Port ${port} on 127.0.0.1, which gateway needs.*GATEWAY_PORT=\\d+ npm start`),
  )
  expect(system.text()).not.toContain('starting')
  expect(system.left()).toEqual([])
})

test('a start beside one whose pm2 is not up yet says so, and starts nothing', async () => {
  const env = await lean()
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)', 'scripts/start.js'], { stdio: 'ignore' })
  atEnd(() => other.kill('SIGKILL'))
  writeFileSync(join(env.PM2_HOME, 'starter.pid'), `${other.pid}\n`)
  const system = start(env)
  expect(await system.ended()).toBe(1)
  expect(system.text()).toContain(`already running, started by process ${other.pid}`)
  expect(system.left()).toEqual([])
})

test('a service that cannot start is named with its last lines, and everything is stopped', async () => {
  const system = start({ ...(await lean()), FETCHER_WORKERS: 'none' })
  expect(await system.ended()).toBe(1)
  expect(system.text()).toMatch(/fetcher ended with exit code 2 before it was ready(.|\n)*FETCHER_WORKERS=none/)
  expect(system.left()).toEqual([])
})

test('a start that was killed is cleaned up after', async () => {
  const system = start(await lean())
  await system.said('Keycast is running')
  const seen = system.left()
  expect(seen.length).toBeGreaterThan(5)
  system.signal('SIGKILL')
  await system.ended()
  await system.gone(seen)
})

test('what a start leaves behind that was killed together with its cleanup, the next start ends', async () => {
  const env = await lean()
  const killed = start(env)
  await killed.said('Keycast is running')
  const cleanup = killed.left().filter(pid => commandOf(pid).includes('after-kill.ts'))
  expect(cleanup).toHaveLength(1)
  process.kill(cleanup[0], 'SIGKILL')
  killed.signal('SIGKILL')
  await killed.ended()
  expect(killed.left().length).toBeGreaterThan(3)

  const system = start(env)
  await system.said('Keycast is running')
  expect(killed.left()).toEqual([])
  system.signal('SIGTERM')
  expect(await system.ended()).toBe(0)
  expect(system.left()).toEqual([])
})

describe('npm start', () => {
  const npm = ['npm', 'start', '--no-update-notifier']

  test('SIGTERM to npm alone stops everything in order, and npm waits for it', async () => {
    const system = start({ ...(await lean()), PROVIDERS: '1' }, { command: npm })
    await system.said('Keycast is running')
    const seen = system.left()
    expect(seen).toContain(system.pid)
    process.kill(system.pid, 'SIGTERM')
    await system.ended()
    expect(system.left()).toEqual([])
    expect(seen.filter(isAlive)).toEqual([])
    expect(system.text()).toMatch(/stopping gateway(.|\n)*stopping fetcher, journal(.|\n)*stopping data-provider/)
  })

  test.each(['SIGHUP', 'SIGKILL'] as const)('%s to npm alone stops everything in order', async signal => {
    const system = start({ ...(await lean()), PROVIDERS: '1' }, { command: npm })
    await system.said('Keycast is running')
    const seen = system.left()
    process.kill(system.pid, signal)
    await system.gone(seen)
    expect(system.text()).toMatch(/stopping gateway(.|\n)*stopping fetcher, journal(.|\n)*stopping data-provider/)
  })

  test.each([
    ['npm start in the foreground', 'npm start\n'],
    ['npm start in the background', 'npm start &\n'],
  ])('a terminal that is closed takes %s with it', async (_, input) => {
    // `script` is the terminal: with it the other side of the shell's own terminal goes.
    const command = ['script', '--quiet', '--command', 'bash --norc -i', '/dev/null']
    const system = start(await lean(), { command, input })
    await system.said('Keycast is running')
    const seen = system.left()
    process.kill(system.pid, 'SIGKILL')
    await system.gone(seen)
  })
})
