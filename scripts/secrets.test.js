import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { curvePairOf } from '@keycast/backbone'

const script = fileURLToPath(new URL('secrets.js', import.meta.url))
/** @type {string} */
let folder
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-secrets-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** @param {string} path */
const read = path => readFileSync(join(folder, path), 'utf8')

test('keys are made that fit together, and only their owner may read them', () => {
  execFileSync('node', [script, folder])

  expect(curvePairOf(read('gateway/curve-secret-key')).publicKey).toBe(read('fetcher/curve-client-keys'))
  expect(curvePairOf(read('fetcher/curve-secret-key')).publicKey).toBe(read('gateway/curve-server-key'))
  expect(statSync(join(folder, 'gateway/api-token')).mode & 0o777).toBe(0o400)
})

test('secrets that are there are kept', () => {
  execFileSync('node', [script, folder])
  const before = read('gateway/api-token')

  expect(execFileSync('node', [script, folder], { encoding: 'utf8' })).toContain('kept')
  expect(read('gateway/api-token')).toBe(before)
})

test('a set with a gap is refused, and says what is missing', () => {
  execFileSync('node', [script, folder])
  rmSync(join(folder, 'fetcher/curve-secret-key'))

  const { status, stderr } = spawnSync('node', [script, folder], { encoding: 'utf8' })

  expect(status).toBe(2)
  expect(stderr).toContain('lacks fetcher/curve-secret-key')
})

test('--help shows the files, and no folder is an error', () => {
  expect(execFileSync('node', [script, '--help'], { encoding: 'utf8' })).toContain('gateway/api-token')
  expect(spawnSync('node', [script]).status).toBe(2)
})
