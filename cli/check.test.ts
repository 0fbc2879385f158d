// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { settings as fetcher } from '../services/fetcher/settings.ts'
import { settings as gateway } from '../services/gateway/settings.ts'
import { settings as journal } from '../services/journal/settings.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

const folder = mkdtempSync(join(tmpdir(), 'keycast-check-'))
afterAll(() => rmSync(folder, { recursive: true }))

function check(args: string[], env: Record<string, string> = {}) {
  const words = ['cli/keycast.js', 'check', ...args]
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: root, env, encoding: 'utf8' })
  return { status, stdout, stderr }
}

/** @returns its path */
function config(text: string) {
  const path = join(folder, 'keycast.yaml')
  writeFileSync(path, text)
  return path
}

test('the shipped file is for trying: in production it is refused, and what to do said', () => {
  const { status, stderr } = check([])
  expect(status).toBe(1)
  expect(stderr).toMatch(
    /^gateway: Invalid access in keycast\.yaml:\n {2}line \d+: access\.anonymous\.publish: .*accept: \[anonymous-publish\].*\n {2}line \d+: access\.anonymous\.join: .*\n$/,
  )
  const fine = { status: 0, stdout: 'gateway, fetcher, journal: no problem\n', stderr: '' }
  expect(check([], { KEYCAST_PROFILE: 'try' })).toEqual(fine)
})

test('every problem of settings and file is printed, each once, with the services that have it', () => {
  const path = config(
    'namespaces:\n  doc: { source: http, url: "ftp://h/{id}", headers: { authorization: "${SECRET}" } }\n' +
      'access: { anonymous: { raed: ["doc:*"] } }\n',
  )
  const env = { KEYCAST_CONFIG: path, GATEWAY_HOST: '0.0.0.0', FETCHER_WORKERS: 'many' }
  const { status, stderr } = check([], env)
  expect(status).toBe(1)
  expect(stderr).toMatch(/^gateway: Invalid settings of gateway .*\n {2}GATEWAY_HOST=0\.0\.0\.0: /m)
  expect(stderr).toMatch(/^fetcher: Invalid settings of fetcher .*\n {2}FETCHER_WORKERS=many: /m)
  expect(stderr).toMatch(/^gateway, journal: Invalid namespaces in .*\n {2}line 2: /m)
  expect(stderr).toMatch(/^fetcher: Invalid namespaces in .*\n.*SECRET/m)
  expect(stderr).toMatch(/^gateway: Invalid access in .*\n {2}line 3: access\.anonymous\.raed/m)
})

test('a service with an environment of its own is checked alone', () => {
  expect(check(['journal'], { GATEWAY_PORT: 'none' })).toEqual({
    status: 0,
    stdout: 'journal: no problem\n',
    stderr: '',
  })
  expect(check(['gatway'])).toMatchObject({
    status: 2,
    stderr: 'keycast check: "gatway" is none of gateway, fetcher, journal\n',
  })
})

test('a variable with a slip in its name, which nothing would read, is named with the one that was meant', () => {
  const path = config('namespaces: { doc: { source: http, url: "http://h/{id}" } }\n')
  const env = { KEYCAST_CONFIG: path, GATEWAY_ORIGIN: 'https://h', FETCHER_NODE: '127.0.0.1', JOURNAL_DAAT: '/data' }
  const { status, stderr } = check([], { ...env, GATEWAY_SERVICE_PORT: '1', JOURNAL_STREAM: '8:1', GATEWAYS: '2' })
  expect(status).toBe(1)
  expect(stderr).toBe(
    'gateway: Unknown variables:\n' +
      '  GATEWAY_ORIGIN: nothing reads it: did you mean GATEWAY_ORIGINS?\n' +
      '  FETCHER_NODE: nothing reads it: did you mean FETCHER_NODES?\n' +
      'journal: Unknown variables:\n' +
      '  JOURNAL_DAAT: nothing reads it: did you mean JOURNAL_DATA?\n',
  )
})

test('no setting is taken for a slip of another', () => {
  const path = config('namespaces: { doc: { source: http, url: "http://h/{id}" } }\n')
  const all = Object.values({ ...gateway, ...fetcher, ...journal }).map(({ env }) => [env, ''])
  expect(check([], { ...Object.fromEntries(all), KEYCAST_CONFIG: path })).toMatchObject({ status: 0, stderr: '' })
})
