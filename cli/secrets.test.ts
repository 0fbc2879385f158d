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
import { ensureSecrets } from './secrets.ts'

const script = fileURLToPath(new URL('keycast.js', import.meta.url))
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-secrets-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const read = (path: string) => readFileSync(join(folder, path), 'utf8')

test('keys are made that fit together, and only their owner may read them', () => {
  ensureSecrets(folder)

  expect(curvePairOf(read('gateway/curve-secret-key')).publicKey).toBe(read('fetcher/curve-client-keys'))
  expect(curvePairOf(read('fetcher/curve-secret-key')).publicKey).toBe(read('gateway/curve-server-key'))
  expect(statSync(join(folder, 'gateway/api-tokens')).mode & 0o777).toBe(0o400)
})

test('existing secrets are kept', () => {
  ensureSecrets(folder)
  const before = read('gateway/api-tokens')

  expect(ensureSecrets(folder)).toEqual([])
  expect(read('gateway/api-tokens')).toBe(before)
})

test('the missing files of one unit are made without the others', () => {
  ensureSecrets(folder)
  const before = read('fetcher/curve-secret-key')
  rmSync(join(folder, 'gateway/api-tokens'))

  expect(ensureSecrets(folder)).toEqual(['gateway/api-tokens'])
  expect(read('gateway/api-tokens')).not.toBe('')
  expect(read('fetcher/curve-secret-key')).toBe(before)
})

test.each([
  ['after the first file', ['gateway/curve-secret-key', 'gateway/curve-server-key', 'fetcher/curve-client-keys']],
  ['after the second', ['gateway/curve-server-key', 'fetcher/curve-client-keys']],
  ['after the third', ['fetcher/curve-client-keys']],
])('making the keys goes on where it was broken off %s', (_, missing) => {
  ensureSecrets(folder)
  for (const path of missing) rmSync(join(folder, path))
  writeFileSync(join(folder, `${missing[0]}.new`), 'half')

  ensureSecrets(folder)

  expect(curvePairOf(read('gateway/curve-secret-key')).publicKey).toBe(read('fetcher/curve-client-keys'))
  expect(curvePairOf(read('fetcher/curve-secret-key')).publicKey).toBe(read('gateway/curve-server-key'))
  expect(readdirSync(join(folder, 'gateway')).sort()).toEqual([
    'api-tokens',
    'curve-secret-key',
    'curve-server-key',
    'jwt-secret',
    'jwt-secret-old',
  ])
})

test('a missing secret key is not made anew unasked, because it would not fit its public key', () => {
  ensureSecrets(folder)
  rmSync(join(folder, 'fetcher/curve-secret-key'))

  expect(() => ensureSecrets(folder)).toThrow('fetcher/curve-secret-key is missing')
})

test('keys that do not fit together are named', () => {
  ensureSecrets(folder)
  rmSync(join(folder, 'gateway/curve-server-key'))
  writeFileSync(join(folder, 'gateway/curve-server-key'), read('fetcher/curve-client-keys'))

  expect(() => ensureSecrets(folder)).toThrow('gateway/curve-server-key does not fit fetcher/curve-secret-key')
})

test('further gateways may be admitted beside our own', () => {
  ensureSecrets(folder)
  const own = read('fetcher/curve-client-keys')
  rmSync(join(folder, 'fetcher/curve-client-keys'))
  writeFileSync(join(folder, 'fetcher/curve-client-keys'), `${read('gateway/curve-server-key')} ${own}\n`)

  expect(ensureSecrets(folder)).toEqual([])
})

test('--renew makes a unit anew and leaves the others', () => {
  ensureSecrets(folder)
  const [token, key] = [read('gateway/api-tokens'), read('gateway/curve-secret-key')]

  ensureSecrets(folder, ['keys'])
  expect(read('gateway/api-tokens')).toBe(token)
  expect(read('gateway/curve-secret-key')).not.toBe(key)
  expect(curvePairOf(read('gateway/curve-secret-key')).publicKey).toBe(read('fetcher/curve-client-keys'))

  ensureSecrets(folder, ['token'])
  expect(read('gateway/api-tokens')).not.toBe(token)
  expect(() => ensureSecrets(folder, ['all'])).toThrow('--renew all')
})

test('the secret that signs is kept beside the one that replaces it, until it is dropped', () => {
  ensureSecrets(folder)
  const [first, token] = [read('gateway/jwt-secret'), read('gateway/api-tokens')]
  expect(read('gateway/jwt-secret-old')).toBe('')

  ensureSecrets(folder, ['signing'])
  const second = read('gateway/jwt-secret')
  expect(second).not.toBe(first)
  expect(read('gateway/jwt-secret-old')).toBe(first)

  expect(() => ensureSecrets(folder, ['signing'])).toThrow('run --drop-old-signing first')
  expect([read('gateway/jwt-secret'), read('gateway/jwt-secret-old')]).toEqual([second, first])

  expect(() => ensureSecrets(folder, ['signing'], { dropOldSigning: true })).toThrow('would refuse every token')
  ensureSecrets(folder, [], { dropOldSigning: true })
  expect(read('gateway/jwt-secret-old')).toBe('')
  expect([read('gateway/jwt-secret'), read('gateway/api-tokens')]).toEqual([second, token])
  expect(statSync(join(folder, 'gateway/jwt-secret-old')).mode & 0o777).toBe(0o400)
})

test('a renewal of the secret that signs that was broken off is done by the next', () => {
  ensureSecrets(folder)
  const first = read('gateway/jwt-secret')
  rmSync(join(folder, 'gateway/jwt-secret-old'))
  writeFileSync(join(folder, 'gateway/jwt-secret-old'), first)
  ensureSecrets(folder, ['signing'])
  expect(read('gateway/jwt-secret')).not.toBe(first)
  expect(read('gateway/jwt-secret-old')).toBe(first)
})

test('a folder from before there was an old secret has an empty one', () => {
  ensureSecrets(folder)
  const signing = read('gateway/jwt-secret')
  rmSync(join(folder, 'gateway/jwt-secret-old'))
  ensureSecrets(folder)
  expect([read('gateway/jwt-secret'), read('gateway/jwt-secret-old')]).toEqual([signing, ''])
})

describe('as a program', () => {
  function run(...args: string[]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, 'secrets', ...args], { encoding: 'utf8' })
    return { status, stdout, stderr }
  }

  test('it says what it made, and where nothing was missing', () => {
    const files = [
      'gateway/api-tokens',
      'gateway/jwt-secret-old',
      'gateway/jwt-secret',
      'fetcher/curve-secret-key',
      'gateway/curve-secret-key',
      'gateway/curve-server-key',
      'fetcher/curve-client-keys',
      'grafana/admin-password',
    ]
    expect(run(folder)).toEqual({ status: 0, stdout: `secrets in ${folder}: made ${files.join(', ')}\n`, stderr: '' })
    expect(run(folder).stdout).toBe(`secrets in ${folder}: all are there, none was changed\n`)
  })

  test('it takes --renew and --drop-old-signing, and ends with 2 where they cannot be done', () => {
    ensureSecrets(folder)
    const [token, key, signing] = ['api-tokens', 'curve-secret-key', 'jwt-secret'].map(name => read(`gateway/${name}`))
    expect(run(folder, '--renew', 'token', '--renew', 'signing').status).toBe(0)
    expect(read('gateway/api-tokens')).not.toBe(token)
    expect(read('gateway/curve-secret-key')).toBe(key)
    expect(read('gateway/jwt-secret-old')).toBe(signing)
    expect(run(folder, '--renew', 'signing')).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining('run --drop-old-signing first'),
    })
    expect(run(folder, '--drop-old-signing').status).toBe(0)
    expect(read('gateway/jwt-secret-old')).toBe('')
  })

  test('it runs from a path with a space and through a symbolic link', () => {
    mkdirSync(join(folder, 'release 1'))
    const link = join(folder, 'release 1', 'cli')
    symlinkSync(fileURLToPath(new URL('.', import.meta.url)), link)

    execFileSync(process.execPath, [join(link, 'keycast.js'), 'secrets', join(folder, 'made')])

    expect(read('made/gateway/api-tokens')).not.toBe('')
  })

  test('--help shows the files; no folder, two or an empty one are errors', () => {
    expect(run('--help').stdout).toContain('gateway/api-tokens')
    for (const folders of [[], [''], [folder, folder]]) expect(run(...folders).status).toBe(2)
  })
})
