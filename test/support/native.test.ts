import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from './cleanup.ts'

const jestCli = fileURLToPath(new URL('../../node_modules/jest/bin/jest.js', import.meta.url))
const testRunner = fileURLToPath(new URL('native.js', import.meta.url))

/** Runs test files one after the other, in one process. */
async function run(files: Record<string, string>) {
  const folder = newFolder()
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const config = {
    rootDir: folder,
    testRunner,
    transform: {},
    testMatch: ['**/*.test.js'],
    testSequencer: './order.cjs',
  }
  const order = `module.exports = class { shard(tests) { return tests } sort(tests) { return tests.sort((a, b) => a.path < b.path ? -1 : 1) } cacheResults() {} allFailedTests(tests) { return tests } }`
  writeFileSync(join(folder, 'order.cjs'), order)
  const args = [jestCli, '--runInBand', '--json', '--config', JSON.stringify(config)]
  const json = await new Promise<string>(resolve => execFile(process.execPath, args, (_, stdout) => resolve(stdout)))
  const { testResults } = JSON.parse(json)
  return (testResults as any[])
    .flatMap(({ assertionResults }) => assertionResults)
    .map(({ fullName, status, failureMessages }) => ({ fullName, status, why: failureMessages.join().split('\n')[0] }))
}

test('files share the modules that they import, and neither hooks, nor mocks, nor fake timers, nor time-outs', async () => {
  const results = await run({
    'counted.js': 'export const count = { loads: (globalThis.loads = (globalThis.loads ?? 0) + 1), hooks: 0 }',
    '1.test.js': `
      import { count } from './counted.js'
      afterEach(() => { count.hooks++ })
      test('one', () => {
        jest.useFakeTimers()
        jest.spyOn(Date, 'now').mockReturnValue(1)
      }, 10)`,
    '2.test.js': `
      import { count } from './counted.js'
      test('two', async () => {
        expect([count.loads, globalThis.loads]).toEqual([1, 1])
        expect(Date.now()).toBeGreaterThan(1)
        await new Promise(resolve => setTimeout(resolve, 20))
      })
      test('three', () => expect(count.hooks).toBe(1))`,
  })
  expect(results.map(({ fullName, status }) => `${fullName} ${status}`)).toEqual([
    'one passed',
    'two passed',
    'three passed',
  ])
})

test('a failure, and a test that never ends, are told by name', async () => {
  const results = await run({
    '1.test.js': `
      test.each([[1], [2]])('%s is 1', n => expect(n).toBe(1))
      test('never ends', () => new Promise(() => {}), 50)`,
  })
  expect(results).toMatchObject([
    { fullName: '1 is 1', status: 'passed' },
    { fullName: '2 is 1', status: 'failed' },
    { fullName: 'never ends', status: 'failed', why: expect.stringContaining('Exceeded timeout of 50 ms') },
  ])
})
