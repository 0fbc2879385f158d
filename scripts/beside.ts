// Runs scripts of package.json beside each other, and fails where any fails, naming it. What the last one prints is shown at
// once, what the others print when they end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import process from 'node:process'

const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const names = process.argv.slice(2)

async function run(name: string) {
  const output = name === names.at(-1) ? 'inherit' : 'pipe'
  const child = spawn(scripts[name], { shell: true, stdio: ['ignore', output, output] })
  const printed: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => printed.push(chunk))
  const [code] = await once(child, 'close')
  process.stdout.write(Buffer.concat([Buffer.from(`── ${name} ──\n`), ...printed]))
  return { name, failed: code !== 0 }
}

const runs = await Promise.all(names.map(run))
const failed = runs.filter(({ failed }) => failed).map(({ name }) => name)
if (failed.length > 0) {
  console.error(`failed: ${failed.join(', ')}`)
  process.exitCode = 1
}
