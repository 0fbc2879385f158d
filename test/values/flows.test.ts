// A changed value's way from the backend to the socket, by the files whose functions run: docs/architecture.md lists them, so
// that whoever reads those has read all there is.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { answers, startBackend } from '../support/backend.ts'
import { newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { childrenOf } from '../support/processes.ts'
import { startSystem } from '../support/system.ts'

/** Of gateway, primary and worker together. To be lowered with every file that goes. */
const FILES_MAX = 74

const CHANGES_MAX = 50

/** The period of beats and sweeps. */
const BY_THE_CLOCK_MS = 1_000

const root = new URL('../../', import.meta.url).href
const ours = /^(services|packages)\/(?!.*node_modules)/

/** These run ten times a second and more, whatever else does. */
const BY_THE_CLOCK = [
  'packages/service/metrics/process-metrics.ts',
  'services/fetcher/primary/workers/watchdog.ts',
  'services/fetcher/primary/workers/worker-clock.ts',
]

const folder = newFolder()

/** The files that the page lists: those of each bullet, in the folder that was named last. */
function filesListed(): Set<string> {
  const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8')
  const [, way] = page.split('### A changed value on its way')
  const files = new Set<string>()
  let listedIn = ''
  for (const line of way.split('\n## ')[0].split('\n')) {
    listedIn = /^In `([^`]+)`/.exec(line)?.[1] ?? listedIn
    if (!/^[- ] /.test(line)) continue
    for (const [, file] of line.matchAll(/`([^`]+\.[jt]s)`/g)) files.add(listedIn + file)
  }
  return files
}

/** Of the looks so far. The last may be half written: it counts once its line has ended. */
function linesOf(pid: number): string[] {
  try {
    return readFileSync(join(folder, String(pid)), 'utf8')
      .split('\n')
      .slice(0, -1)
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
    return new Set(
      urls.map(url => url.replace(root, '')).filter(path => ours.test(path) && !BY_THE_CLOCK.includes(path)),
    )
  }
}

test('a changed value runs through the files that are listed, from the backend to the socket', async () => {
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
  const tookMs: number[] = []
  async function filesOfOneChange() {
    const startedAt = performance.now()
    await look()
    publish(++revision)
    await client.reaches('doc:1', revision)
    const files = await look()
    tookMs.push(performance.now() - startedAt)
    return files
  }

  const listed = filesListed()
  let always = [...(await filesOfOneChange())]
  const ever = new Set(always)
  const unlisted = () => always.filter(file => !listed.has(file))
  const unneeded = () => [...listed].filter(file => !ever.has(file))
  // Work by the clock, such as beats, runs during some changes and not during all. And V8 does not count each call of
  // what it has made fast.
  for (let change = 1; change < CHANGES_MAX && unlisted().length + unneeded().length > 0; change++) {
    const files = await filesOfOneChange()
    always = always.filter(file => files.has(file))
    for (const file of files) ever.add(file)
  }
  // On a busy machine it runs during all of them: it is then among what runs while nothing changes.
  const isBusy = Math.min(...tookMs) > BY_THE_CLOCK_MS
  for (let turn = 0; isBusy && turn < CHANGES_MAX && unlisted().length > 0; turn++) {
    await pause(BY_THE_CLOCK_MS)
    const withoutChange = await look()
    always = always.filter(file => !withoutChange.has(file))
  }
  expect(unlisted()).toEqual([])
  expect(unneeded()).toEqual([])
  expect(listed.size).toBeLessThanOrEqual(FILES_MAX)
})
