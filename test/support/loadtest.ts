// The load test, from its command line.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from './cleanup.ts'
import { within } from './deadline.ts'
import { ofNode } from './node-process.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** One worker is enough for a small run, and starts sooner without a warm-up. */
export const SMALL = { FETCHER_WORKERS: '1', FETCHER_WARM_UP_PULLS: '0' }

/** A run is mostly starts of processes, and four test files have those at one time: 20 s alone, over a minute beside others. */
export const RUN_MS_MAX = 150_000

/** @returns the process, and what it said once it has ended */
export function startLoadTest(...args: string[]) {
  const child = spawn(process.execPath, ['loadtest/main.js', ...args], {
    cwd: root,
    env: { ...ofNode, ...SMALL },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  atEnd(() => child.kill('SIGKILL'))
  const said = { out: '', err: '' }
  child.stdout.on('data', chunk => (said.out += chunk))
  child.stderr.on('data', chunk => (said.err += chunk))
  const ended = within(
    once(child, 'close').then(([code]) => ({ code, ...said })),
    () => `the end of loadtest ${args.join(' ')}:\n${said.err}\nthis`,
    RUN_MS_MAX,
  )
  return { child, ended }
}
