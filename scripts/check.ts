// Runs scripts of package.json beside each other, shows what each printed, and fails where any fails, naming it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import process from 'node:process'

const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** tsc is written in Go, and collecting garbage costs it a quarter of its CPU time; without, it takes 100 MB more. */
const env = { ...process.env, GOGC: 'off' }

async function run(name: string) {
  const child = spawn(scripts[name], { env, shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => printed.push(chunk))
  const [code] = await once(child, 'close')
  process.stdout.write(Buffer.concat([Buffer.from(`── ${name} ──\n`), ...printed]))
  return { name, failed: code !== 0 }
}

const runs = await Promise.all(process.argv.slice(2).map(run))
const failed = runs.filter(({ failed }) => failed).map(({ name }) => name)
if (failed.length > 0) {
  console.error(`failed: ${failed.join(', ')}`)
  process.exitCode = 1
}
