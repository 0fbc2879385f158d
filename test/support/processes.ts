// Services as real processes on free ports: starts them, keeps what they log, leaves none behind.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { atEnd } from './cleanup.ts'
import { eventually, within } from './deadline.ts'
import { ofNode } from './node-process.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Enough to see how a failure came about, little enough to read. */
const LINES_SHOWN = 40

export interface ServiceProcess {
  name: string
  pid: number
  /** The fields of its `listening` line: its ports. */
  listening: Record<string, any>
  /** Its log so far. */
  log: () => Record<string, any>[]
  signal: (signal: NodeJS.Signals) => void
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** SIGKILL to the process and everything it started; resolves once it is gone. */
  kill: () => Promise<void>
}

/** What a gateway is started with wherever it is run: its memory is then that of production. */
const GATEWAY_ARGUMENTS = ['--max-semi-space-size=4']

/** Of services that run: process groups by their leader's pid, with what was logged. */
const running = new Map<number, { title: string; lines: string[] }>()

/**
 * @param env beside PATH; nothing else of the test's own environment reaches a service
 * @returns once it listens
 */
export async function startService(
  name: 'gateway' | 'fetcher' | 'journal' | 'data-provider',
  env: Record<string, string>,
): Promise<ServiceProcess> {
  const options = name === 'gateway' ? GATEWAY_ARGUMENTS : []
  const child = spawn(process.execPath, [...options, `services/${name}/main.js`], {
    cwd: root,
    env: { ...ofNode, LOG_FORMAT: 'json', KEYCAST_PROFILE: 'try', ...env },
    // A process group of its own, so that the workers of a killed primary can be killed with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const pid = child.pid as number
  const kept = { title: `${name} ${pid}`, lines: [] as string[] }
  running.set(pid, kept)

  const exited: ServiceProcess['exited'] = new Promise(resolve =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  )
  const kill = async () => {
    killGroup(pid)
    await exited
  }
  atEnd(async () => {
    await kill()
    running.delete(pid)
  })

  const records: Record<string, any>[] = []
  const listening = new Promise<Record<string, any>>((resolve, reject) => {
    createInterface(child.stdout).on('line', line => {
      kept.lines.push(line)
      const record = readRecord(line)
      records.push(record)
      if (record.msg === 'listening') resolve(record)
    })
    createInterface(child.stderr).on('line', line => kept.lines.push(line))
    exited.then(({ code, signal }) => {
      reject(new Error(`${name} ended with ${code ?? signal} before it listened:\n${kept.lines.join('\n')}`))
    })
  })
  return {
    name,
    pid,
    listening: await within(listening, () => `${name} listening:\n${kept.lines.join('\n')}\nthis`),
    log: () => records,
    signal: signal => process.kill(pid, signal),
    exited,
    kill,
  }
}

/**
 * Prints the end of every running service's log; called when a test fails.
 *
 * @param test its name
 */
export function showLogs(test: string) {
  for (const { title, lines } of running.values()) {
    process.stderr.write(`\n── ${title}, when "${test}" failed ──\n${lines.slice(-LINES_SHOWN).join('\n')}\n`)
  }
}

/** Other things to end at once. */
const endings = new Set<() => void>()

/**
 * Has processes that another program starts ended, too, however the test file ends.
 *
 * @param kill those that run then
 */
export function killAtEnd(kill: () => void) {
  endings.add(kill)
  atEnd(() => {
    kill()
    endings.delete(kill)
  })
}

/** Ends every service at once, for when there is no time to wait. */
export function killServices() {
  for (const pid of running.keys()) killGroup(pid)
  for (const kill of endings) kill()
}

/** Whether a process runs. One that has ended and was not yet reaped by its parent does not. */
export function isAlive(pid: number) {
  const [state = ''] = statOf(pid)
  return !['', 'Z', 'X'].includes(state)
}

/**
 * Finds which of some processes is behind the last of some requests. Asks again: the kernel's list may leave out a
 * connection while others come and go, and a request may have been given up and made again.
 *
 * @param requests as the server has them now
 */
export const pidBehind = (requests: () => { remotePort: number }[], pids: () => number[]) =>
  eventually(() => pidOfPort(requests().at(-1)?.remotePort ?? 0, pids()), 'a process being found behind a request')

function pidOfPort(port: number, pids: number[]): number | undefined {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  for (const pid of pids) {
    const inodes = new Set(
      contentOf(`/proc/${pid}/net/tcp`)
        .split('\n')
        .map(row => row.trim().split(/\s+/))
        .filter(columns => columns[1]?.endsWith(`:${wanted}`))
        .map(columns => `socket:[${columns[9]}]`),
    )
    if (openFilesOf(pid).some(file => inodes.has(file))) return pid
  }
  return undefined
}

/** Stops a process, and waits until none of its threads runs. */
export async function stopNow(pid: number) {
  process.kill(pid, 'SIGSTOP')
  await eventually(() => !isAlive(pid) || statOf(pid)[0] === 'T', 'a process standing still')
}

/** The processes another one has started and that still run. */
export function childrenOf(pid: number) {
  // Not /proc/…/children: that list may lack some while others end.
  return readdirSync('/proc')
    .map(Number)
    .filter(other => parentOf(other) === pid && isAlive(other))
}

function parentOf(pid: number) {
  const [, parent] = statOf(pid)
  return Number(parent)
}

/** The fields of a process's stat from its state on (proc(5)); what comes before ends in a name of any form. */
function statOf(pid: number) {
  const stat = contentOf(`/proc/${pid}/stat`)
  return stat
    .slice(stat.lastIndexOf(')') + 1)
    .trim()
    .split(' ')
}

/** @param path of a file that is gone when its process is */
function contentOf(path: string) {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

/** @returns what they are: paths, and `socket:[inode]` */
function openFilesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map(fd => linkOf(`/proc/${pid}/fd/${fd}`))
  } catch {
    return []
  }
}

function linkOf(path: string) {
  try {
    return readlinkSync(path)
  } catch {
    return '' // closed since it was listed
  }
}

function killGroup(pid: number) {
  killNow(-pid)
}

/** @param pid of a process that may have ended, or a group's, negative */
export const killNow = (pid: number) => signalNow(pid, 'SIGKILL')

/** @param pid of a process that may have ended, or a group's, negative */
export function signalNow(pid: number, signal: NodeJS.Signals) {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function readRecord(line: string): Record<string, any> {
  try {
    return JSON.parse(line)
  } catch {
    return { msg: line }
  }
}
