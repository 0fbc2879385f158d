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
/** A busy machine takes long: a process that cannot start ends, which is noticed at once. */
const START_MS = 60_000
/** Above the services' own grace. */
const STOP_MS = 12_000
/** What a process says of itself once it listens. */
type Listening = Record<
  'port' | 'internalPort' | 'metricsPort' | 'requestsPort' | 'answersPort' | 'publicationsPort' | 'deliveriesPort',
  number
> & { url: string }

/** The last lines of a log say why a process ended. */
const LINES_KEPT = 30

/** The system could not be started; the message says why. */
export class SystemError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SystemError'
  }
}

export type Processes = ReturnType<typeof createProcesses>

/** Processes that end with the run, however it ends. */
export function createProcesses() {
  const running: { name: string; pid: number; exited: Promise<unknown>; lines: string[] }[] = []
  let directory: string | undefined
  let stopping = false
  /** Those that a scenario has killed. */
  const killed = new Set<number>()
  let tellDeath: (what: string) => void = () => {}
  const died = new Promise<string>(resolve => {
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
     * @param args of node, or of another `program`
     * @param env over the environment, so that a service's other settings can be given there
     * @param readiness reads a line of its output that reports readiness
     */
    async start(
      name: string,
      args: string[],
      env: Record<string, string>,
      readiness: (line: string) => Partial<Listening> | undefined = readListening,
      program: string = process.execPath,
    ): Promise<{ name: string; pid: number; listening: Listening; inspectorUrl: string | undefined }> {
      const child = spawn(program, args, {
        cwd: root,
        env: { ...process.env, LOG_FORMAT: 'json', KEYCAST_PROFILE: 'try', ...env },
        // A process group of its own: else Ctrl-C would stop the services while the load test still measures.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      if (child.pid === undefined) {
        const [error] = await once(child, 'error')
        throw new SystemError(`${name} cannot be started: ${error.message}`)
      }
      const { pid } = child
      const lines: string[] = []
      const exited = new Promise(resolve =>
        child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`)),
      )
      running.push({ name, pid, exited, lines })
      exited.then(how => {
        if (!stopping && !killed.has(pid)) tellDeath(`${name} ended (${how}): ${lines.slice(-3).join(' | ')}`)
      })
      const listening = await new Promise<Listening>((resolve, reject) => {
        for (const stream of [child.stdout, child.stderr]) {
          createInterface(stream).on('line', line => {
            lines.push(line)
            if (lines.length > LINES_KEPT) lines.shift()
            const said = readiness(line)
            if (said !== undefined) resolve(said as Listening)
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

    /** As a crash would, without a word; the run goes on. */
    kill(pid: number) {
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

/** @returns a service's `listening` line */
function readListening(line: string): Listening | undefined {
  try {
    const record = JSON.parse(line)
    return record.msg === 'listening' ? record : undefined
  } catch {
    return undefined
  }
}

function signalProcess(pid: number, signal: NodeJS.Signals) {
  try {
    process.kill(pid, signal)
  } catch {
    // gone already
  }
}

/** A process and its children, in whatever group: nginx has one of its own. */
function killTree(pid: number) {
  for (const child of childrenOf(pid)) killTree(child)
  signalProcess(pid, 'SIGKILL')
}
