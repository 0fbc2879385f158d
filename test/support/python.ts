// Runs the Python client's tools.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from './cleanup.ts'
import { within } from './deadline.ts'

const folder = fileURLToPath(new URL('../../clients/python/', import.meta.url))

/** pytest with a whole system takes half a minute, far more on a busy machine. */
const PYTHON_MS = 240_000

/** Runs a module of the folder's own Python, and fails with its output. */
export async function python(args: string[], env: Record<string, string> = {}, deadlineMs = PYTHON_MS) {
  const child = spawn(`${folder}.venv/bin/python`, ['-m', ...args], { cwd: folder, env: { ...process.env, ...env } })
  atEnd(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', chunk => {
    output += chunk
  })
  child.stderr.on('data', chunk => {
    output += chunk
  })
  const ended = once(child, 'close')
  const [code] = await within(ended, () => `the end of ${args.join(' ')}, which printed ${output},`, deadlineMs)
  if (code !== 0) throw new Error(output)
  return output
}
