// Starts the processes of a system under load, and ends them with the run, however it ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { childrenOf } from './proc.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const START_MS = 20_000
/** Above the services' own grace. */
const STOP_MS = 12_000
/** The last lines of a log say why a process ended. */
const LINES_KEPT = 30

/** The system could not be started; the message says why. */
export class SystemError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message)
    this.name = 'SystemError'
  }
}

/** @typedef {ReturnType<typeof createProcesses>} Processes */

/** Processes that end with the run, however it ends. */
export function createProcesses() {
  /** @type {{ name: string, pid: number, exited: Promise<unknown>, lines: string[] }[]} */
  const running = []
  /** @type {string | undefined} */
  let directory
  let stopping = false
  /** Those that a scenario has killed. @type {Set<number>} */
  const killed = new Set()
  /** @type {(what: string) => void} */
  let tellDeath = () => {}
  /** @type {Promise<string>} */
  const died = new Promise(resolve => {
    tellDeath = resolve
  })
  // Also when the load test itself fails: a service left behind would disturb every later run.
  const killAll = () => {
    for (const { pid } of running) killTree(pid)
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
  }
  process.on('exit', killAll)

  return {
    died,

    /** For configuration; gone after the run. */
    directory() {
      directory ??= mkdtempSync(join(tmpdir(), 'keycast-loadtest-'))
      return directory
    },

    /**
     * @param {string} name
     * @param {string[]} args of node, or of another `program`
     * @param {Record<string, string>} env over the environment, so that a service's other settings can be given there
     * @param {(line: string) => Record<string, any> | undefined} [readiness] reads a line of its output that reports
     *   readiness
     * @param {string} [program]
     * @returns {Promise<{ name: string, pid: number, listening: Record<string, any>, inspectorUrl: string | undefined }>}
     */
    async start(name, args, env, readiness = readListening, program = process.execPath) {
      const child = spawn(program, args, {
        cwd: root,
        env: { ...process.env, LOG_FORMAT: 'json', ...env },
        // A process group of its own: else Ctrl-C would stop the services while the load test still measures.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      if (child.pid === undefined) {
        const [error] = await once(child, 'error')
        throw new SystemError(`${name} cannot be started: ${error.message}`)
      }
      const { pid } = child
      /** @type {string[]} */
      const lines = []
      const exited = new Promise(resolve =>
        child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`)),
      )
      running.push({ name, pid, exited, lines })
      exited.then(how => {
        if (!stopping && !killed.has(pid)) tellDeath(`${name} ended (${how}): ${lines.slice(-3).join(' | ')}`)
      })
      const listening = await new Promise((resolve, reject) => {
        for (const stream of [child.stdout, child.stderr]) {
          createInterface(stream).on('line', line => {
            lines.push(line)
            if (lines.length > LINES_KEPT) lines.shift()
            const said = readiness(line)
            if (said !== undefined) resolve(said)
          })
        }
        const why = () => `\n${lines.join('\n')}`
        exited.then(how => reject(new SystemError(`${name} did not start (${how}):${why()}`)))
        setTimeout(
          () => reject(new SystemError(`${name} is not ready after ${START_MS} ms:${why()}`)),
          START_MS,
        ).unref()
      })
      // Node says so on stderr before anything else runs.
      const [inspectorUrl] =
        /ws:\/\/127\.0\.0\.1:\d+\/[0-9a-f-]+/.exec(lines.find(line => line.startsWith('Debugger')) ?? '') ?? []
      return { name, pid, listening, inspectorUrl }
    },

    /** As a crash would, without a word; the run goes on. @param {number} pid */
    kill(pid) {
      killed.add(pid)
      killTree(pid)
    },

    /** In the reverse order of starting, each as its supervisor would. */
    async stop() {
      stopping = true
      for (const { pid, exited } of running.splice(0).reverse()) {
        signalProcess(pid, 'SIGTERM')
        const timer = setTimeout(() => killTree(pid), STOP_MS)
        await exited
        clearTimeout(timer)
      }
      killAll()
      process.off('exit', killAll)
    },
  }
}

/** @param {string} line @returns {Record<string, any> | undefined} a service's `listening` line */
function readListening(line) {
  try {
    const record = JSON.parse(line)
    return record.msg === 'listening' ? record : undefined
  } catch {
    return undefined
  }
}

/** @param {number} pid @param {NodeJS.Signals} signal */
function signalProcess(pid, signal) {
  try {
    process.kill(pid, signal)
  } catch {
    // gone already
  }
}

/** A process and its children, in whatever group: nginx has one of its own. @param {number} pid */
function killTree(pid) {
  for (const child of childrenOf(pid)) killTree(child)
  signalProcess(pid, 'SIGKILL')
}
