import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { realWorld } from './world.ts'

/** Folders whose code is given the world. The others follow. */
const FOLDERS = [
  'packages/backbone/gateway',
  'packages/backbone/hub',
  'packages/backbone/wire',
  'packages/protocol',
  'packages/service',
  'services/fetcher',
  'services/gateway',
  'services/journal',
]

/** Files that are about this very process, or make the world. */
const OF_THE_PROCESS = new Set([
  'packages/service/metrics/process-metrics.ts',
  'packages/service/run.ts',
  'packages/service/world.ts',
])

const OF_TESTS = /\.(test|fixture)\.ts$|\/test-\w+\.ts$/

/** What only the world may ask for: of the language and of Node, by name, or by import. */
const READINGS = [
  /(?<![\w$.])(?<!typeof )(?:performance\.now|process\.hrtime|Date\.now|Math\.random)\b/g,
  /(?<![\w$.])new Date\(\)/g,
  /(?<![\w$.])(?<!typeof )set(?:Timeout|Interval|Immediate)\b/g,
  /import \{[^}]*\brandom[A-Z]\w*[^}]*\} from 'node:crypto'/g,
  /from 'node:timers(?:\/promises)?'/g,
]

const sources = (folder: string) =>
  (readdirSync(folder, { recursive: true }) as string[])
    .map(name => join(folder, name))
    .filter(path => path.endsWith('.ts') && !path.includes('node_modules') && !OF_TESTS.test(path))

function readingsIn(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, '')
  return READINGS.flatMap(reading => code.match(reading) ?? [])
}

test.each(FOLDERS)('%s is given its clock, its timers and its chance', folder => {
  const found = sources(folder)
    .filter(path => !OF_THE_PROCESS.has(path))
    .flatMap(path => readingsIn(readFileSync(path, 'utf8')).map(reading => `${path}: ${reading}`))
  expect(found).toEqual([])
})

test.each([
  ['const at = performance.now() // performance.now()', 1],
  ['function f(now = Date.now, random = Math.random) {}', 2],
  ['setTimeout(run, 5); const at = new Date()', 2],
  ["import { createHash, randomBytes } from 'node:crypto'", 1],
  ["import { setImmediate } from 'node:timers/promises'", 2],
  ['const at = new Date(now()); performance.eventLoopUtilization(); world.setTimeout(); randomBytes(9)', 0],
  ['/** As setTimeout has it. */ let timer: ReturnType<typeof setTimeout>', 0],
])('%s: %d readings', (text, count) => {
  expect(readingsIn(text)).toHaveLength(count)
})

test('the real world goes on by itself', async () => {
  const { now, wallNow, random, randomBytes, every, after, turn } = realWorld
  const startedAt = now()
  expect(Math.abs(wallNow() - Date.now())).toBeLessThan(60_000)
  expect(random()).toBeLessThan(1)
  expect(randomBytes(9)).toHaveLength(9)
  const seen: string[] = []
  turn(() => seen.push('turn'))
  const cancel = after(0, () => seen.push('cancelled'))
  cancel()
  await new Promise<void>(resolve => {
    const stop = every(1, () => {
      stop()
      seen.push('tick')
      after(1, resolve)
    })
  })
  expect(seen).toEqual(['turn', 'tick'])
  expect(now()).toBeGreaterThan(startedAt)
})

test('what is to come in a month does not come at once', async () => {
  let hasCome = false
  const cancel = realWorld.after(30 * 86_400_000, () => {
    hasCome = true
  })
  await new Promise<void>(resolve => realWorld.after(5, resolve))
  cancel()
  expect(hasCome).toBe(false)
})
