// A Valkey as a real process: started on a free port, killed, started again, made a replica.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from './free-ports.ts'

/** The settings that a journal demands. */
const safe = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction']

/** Characters of its log that are shown where it does not start. */
const SAID_MAX = 10_000

/** @param options `settings`: beside, or instead of, what a journal asks for */
export async function startValkey({ settings = [], port }: { settings?: string[]; port?: number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-valkey-'))
  const taken = port ?? (await freePorts(1))[0]
  const common = ['--port', String(taken), '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...safe, ...settings]
  let child = await run()

  async function run() {
    const started = spawn('valkey-server', common, { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    await new Promise((resolve, reject) => {
      started.stdout.on('data', chunk => {
        if (said.length < SAID_MAX) said += chunk
        if (String(chunk).includes('Ready to accept connections')) resolve(undefined)
      })
      started.once('exit', code => reject(new Error(`valkey-server ended with ${code}:\n${said}`)))
    })
    return started
  }

  const cli = (...args: string[]): string =>
    execFileSync('valkey-cli', ['-p', String(taken), ...args], { encoding: 'utf8' }).trim()

  async function kill() {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  return {
    folder,
    port: taken,
    url: `valkey://127.0.0.1:${taken}`,
    cli,
    kill,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Starts it again on its files, after it has ended; twice if need be: the first start may only mend a file. */
    async restart() {
      child = await run().catch(run)
    },
    /** Ends it, and removes its files. */
    async remove() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
