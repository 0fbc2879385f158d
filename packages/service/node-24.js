// Imported first by each .js file that a person or a supervisor starts, and that then imports TypeScript. A Node before 24
// cannot run it, and would say so with a stack that names no remedy. Any Node reads this file.
import module from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MIN = 24

const { node } = process.versions
if (Number.parseInt(node, 10) < NODE_MIN) {
  const own = [relative('', process.argv[1]), ...process.argv.slice(2)].join(' ')
  console.error(`Keycast needs Node ${NODE_MIN}; this is ${node}. On Linux npm ci brings one: npx node ${own}`)
  process.exit(1)
}

// Compiled code is kept for the next start: a service is up in two thirds of the time. Where the folder cannot be
// written, nothing is kept.
module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url)))
