import { execFileSync, spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
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

test('existing secrets are kept', () => {
  execFileSync('node', [script, folder])
  const before = read('gateway/api-token')

  expect(execFileSync('node', [script, folder], { encoding: 'utf8' })).toContain('none was changed')
  expect(read('gateway/api-token')).toBe(before)
})

test('the missing files of one unit are made without the others', () => {
  execFileSync('node', [script, folder])
  const before = read('fetcher/curve-secret-key')
  rmSync(join(folder, 'gateway/api-token'))

  expect(execFileSync('node', [script, folder], { encoding: 'utf8' })).toMatch(/made gateway\/api-token$/m)
  expect(read('gateway/api-token')).not.toBe('')
  expect(read('fetcher/curve-secret-key')).toBe(before)
})

test.each([
  ['after the first file', ['gateway/curve-secret-key', 'gateway/curve-server-key', 'fetcher/curve-client-keys']],
  ['after the second', ['gateway/curve-server-key', 'fetcher/curve-client-keys']],
  ['after the third', ['fetcher/curve-client-keys']],
])('making the keys goes on where it was broken off %s', (_, missing) => {
  execFileSync('node', [script, folder])
  for (const path of missing) rmSync(join(folder, path))
  writeFileSync(join(folder, `${missing[0]}.new`), 'half')

  execFileSync('node', [script, folder])

  expect(curvePairOf(read('gateway/curve-secret-key')).publicKey).toBe(read('fetcher/curve-client-keys'))
  expect(curvePairOf(read('fetcher/curve-secret-key')).publicKey).toBe(read('gateway/curve-server-key'))
  expect(readdirSync(join(folder, 'gateway')).sort()).toEqual([
    'api-token',
    'curve-secret-key',
    'curve-server-key',
    'jwt-secret',
    'jwt-secret-old',
  ])
})

test('a missing secret key is not made anew unasked, because it would not fit its public key', () => {
  execFileSync('node', [script, folder])
  rmSync(join(folder, 'fetcher/curve-secret-key'))

  const { status, stderr } = spawnSync('node', [script, folder], { encoding: 'utf8' })

  expect(status).toBe(2)
  expect(stderr).toContain('fetcher/curve-secret-key is missing')
})

test('keys that do not fit together are named', () => {
  execFileSync('node', [script, folder])
  rmSync(join(folder, 'gateway/curve-server-key'))
  writeFileSync(join(folder, 'gateway/curve-server-key'), read('fetcher/curve-client-keys'))

  const { status, stderr } = spawnSync('node', [script, folder], { encoding: 'utf8' })

  expect(status).toBe(2)
  expect(stderr).toContain('gateway/curve-server-key does not fit fetcher/curve-secret-key')
})

test('further gateways may be admitted beside our own', () => {
  execFileSync('node', [script, folder])
  const own = read('fetcher/curve-client-keys')
  rmSync(join(folder, 'fetcher/curve-client-keys'))
  writeFileSync(join(folder, 'fetcher/curve-client-keys'), `${read('gateway/curve-server-key')} ${own}\n`)

  expect(execFileSync('node', [script, folder], { encoding: 'utf8' })).toContain('none was changed')
})

test('--renew makes a unit anew and leaves the others', () => {
  execFileSync('node', [script, folder])
  const [token, key] = [read('gateway/api-token'), read('gateway/curve-secret-key')]

  execFileSync('node', [script, folder, '--renew', 'keys'])
  expect(read('gateway/api-token')).toBe(token)
  expect(read('gateway/curve-secret-key')).not.toBe(key)
  expect(curvePairOf(read('gateway/curve-secret-key')).publicKey).toBe(read('fetcher/curve-client-keys'))

  execFileSync('node', [script, folder, '--renew', 'token'])
  expect(read('gateway/api-token')).not.toBe(token)
  expect(spawnSync('node', [script, folder, '--renew', 'all'], { encoding: 'utf8' }).stderr).toContain('--renew all')
})

test('the secret that signs is kept beside the one that replaces it, until it is dropped', () => {
  execFileSync('node', [script, folder])
  const [first, token] = [read('gateway/jwt-secret'), read('gateway/api-token')]
  expect(read('gateway/jwt-secret-old')).toBe('')

  execFileSync('node', [script, folder, '--renew', 'signing'])
  const second = read('gateway/jwt-secret')
  expect(second).not.toBe(first)
  expect(read('gateway/jwt-secret-old')).toBe(first)

  const again = spawnSync('node', [script, folder, '--renew', 'signing'], { encoding: 'utf8' })
  expect(again.status).toBe(2)
  expect(again.stderr).toContain('run --drop-old-signing first')
  expect([read('gateway/jwt-secret'), read('gateway/jwt-secret-old')]).toEqual([second, first])

  const both = spawnSync('node', [script, folder, '--renew', 'signing', '--drop-old-signing'], { encoding: 'utf8' })
  expect(both.stderr).toContain('would refuse every token')
  execFileSync('node', [script, folder, '--drop-old-signing'])
  expect(read('gateway/jwt-secret-old')).toBe('')
  expect([read('gateway/jwt-secret'), read('gateway/api-token')]).toEqual([second, token])
  expect(statSync(join(folder, 'gateway/jwt-secret-old')).mode & 0o777).toBe(0o400)
})

test('a renewal of the secret that signs that was broken off is done by the next', () => {
  execFileSync('node', [script, folder])
  const first = read('gateway/jwt-secret')
  rmSync(join(folder, 'gateway/jwt-secret-old'))
  writeFileSync(join(folder, 'gateway/jwt-secret-old'), first)
  execFileSync('node', [script, folder, '--renew', 'signing'])
  expect(read('gateway/jwt-secret')).not.toBe(first)
  expect(read('gateway/jwt-secret-old')).toBe(first)
})

test('a folder from before there was an old secret has an empty one', () => {
  execFileSync('node', [script, folder])
  const signing = read('gateway/jwt-secret')
  rmSync(join(folder, 'gateway/jwt-secret-old'))
  execFileSync('node', [script, folder])
  expect([read('gateway/jwt-secret'), read('gateway/jwt-secret-old')]).toEqual([signing, ''])
})

test('it runs from a path with a space and through a symbolic link', () => {
  mkdirSync(join(folder, 'release 1'))
  const link = join(folder, 'release 1', 'scripts')
  symlinkSync(fileURLToPath(new URL('.', import.meta.url)), link)

  execFileSync('node', [join(link, 'secrets.js'), join(folder, 'made')])

  expect(read('made/gateway/api-token')).not.toBe('')
})

test('--help shows the files; no folder, two or an empty one are errors', () => {
  expect(execFileSync('node', [script, '--help'], { encoding: 'utf8' })).toContain('gateway/api-token')
  for (const folders of [[], [''], [folder, folder]]) expect(spawnSync('node', [script, ...folders]).status).toBe(2)
})
