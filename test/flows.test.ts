// A changed value's way from the backend to the socket, counted by the files whose functions run: whoever follows it reads
// those. docs/architecture.md lists the gateway's part of it.
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answers, startBackend } from './support/backend.ts'
import { connect } from './support/client.ts'
import { eventually } from './support/deadline.ts'
import { childrenOf } from './support/processes.ts'
import { startSystem } from './support/system.ts'

/** Of gateway, primary and worker together. To be lowered with every file that goes. */
const FILES_MAX = 95

const CHANGES_MAX = 50

const root = new URL('../', import.meta.url).href
const ours = /^(services|packages)\/(?!.*node_modules)/

const folder = mkdtempSync(join(tmpdir(), 'keycast-flows-'))

/** What the processes wrote down at the last look. */
function linesOf(pid: number): string[] {
  try {
    return readFileSync(join(folder, String(pid)), 'utf8')
      .trim()
      .split('\n')
  } catch {
    return []
  }
}

function createLook(pids: number[]) {
  let looks = 0
  /** @returns the files in which functions ran since the last look */
  return async () => {
    looks++
    for (const pid of pids) process.kill(pid, 'SIGUSR2')
    await eventually(() => pids.every(pid => linesOf(pid).length === looks), 'a look at the files that were entered')
    const urls: string[] = pids.flatMap(pid => JSON.parse(linesOf(pid)[looks - 1]))
    return new Set(urls.map(url => url.replace(root, '')).filter(path => ours.test(path)))
  }
}

test(`a changed value enters ${FILES_MAX} files at most, from the backend to the socket`, async () => {
  const backend = await startBackend()
  const { gateways, fetchers } = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/doc/{id}`, refresh: '50ms' } },
    env: {
      NODE_OPTIONS: `--import=${root}test/support/entered-files.js`,
      ENTERED_FILES_FOLDER: folder,
      // V8 counts less of what was compiled before.
      NODE_DISABLE_COMPILE_CACHE: '1',
    },
  })
  const { pid } = fetchers[0].process
  const look = createLook([gateways[0].process.pid, pid, ...childrenOf(pid)])
  const client = await connect(gateways[0].url)
  const publish = (revision: number) => backend.on('/doc/1', answers.json(JSON.stringify({ revision })))
  publish(0)
  await client.subscribe(['doc:1'])
  await client.reaches('doc:1', 0)

  let revision = 0
  async function filesOfOneChange() {
    await look()
    publish(++revision)
    await client.reaches('doc:1', revision)
    return look()
  }

  let files = [...(await filesOfOneChange())]
  // What runs by the clock, such as beats, runs during some changes and not during all.
  for (let change = 1; change < CHANGES_MAX && files.length > FILES_MAX; change++) {
    const others = await filesOfOneChange()
    files = files.filter(file => others.has(file))
  }
  if (files.length > FILES_MAX) throw new Error(`${files.length} files:\n${files.sort().join('\n')}`)
  for (const part of ['services/gateway', 'services/fetcher/primary', 'services/fetcher/worker']) {
    expect(files.some(file => file.startsWith(part))).toBe(true)
  }
})
