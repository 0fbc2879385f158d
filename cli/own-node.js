// Where the Node that was started is too old, the one that npm brought does the work; this process passes signals on to it
// and ends as it does. Any Node reads this file.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const own = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))

if (Number.parseInt(process.versions.node, 10) < 24 && existsSync(own)) {
  const child = spawn(own, process.argv.slice(1), { stdio: 'inherit' })
  /** @type {NodeJS.Signals[]} */
  const passedOn = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGHUP', 'SIGUSR1']
  for (const signal of passedOn) process.on(signal, () => child.kill(signal))
  const [code, signal] = await once(child, 'exit')
  process.exit(code ?? 128 + constants.signals[/** @type {NodeJS.Signals} */ (signal)])
}
