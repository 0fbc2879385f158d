// Two projects: unit tests lie beside the file they test; the end-to-end suite in test/ starts real processes.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

// For all Node processes that tests start: what those before have compiled, which takes a third off the CPU time of a start.
// Those that are not killed add to it when they end.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'keycast-compile-cache')

const shared = {
  transform: {},
  testRunner: '<rootDir>/test/support/native.js',
  testEnvironment: '<rootDir>/test/support/node-environment.js',
}

/**
 * Test files that drive a program npm does not bring, by name or by path in this repository, or that mount a file system.
 * In CI they are always run, and fail where it is missing.
 */
const needs = {
  'test/access/rights.test.ts': ['nginx', 'openssl'],
  'test/access/doors.test.ts': ['nginx', 'openssl'],
  'test/access/oidc.test.ts': ['openssl'],
  'test/access/python-tokens.test.ts': ['clients/python/.venv/bin/pytest', 'openssl'],
  'test/access/recipes.test.ts': ['nginx'],
  'test/access/certificates.test.ts': ['openssl'],
  'test/clients/chat.test.ts': ['chromium'],
  'test/clients/browser.test.ts': ['chromium'],
  'test/clients/browsers.test.ts': ['chromium', 'firefox-esr', 'nginx', 'openssl'],
  'test/clients/python.test.ts': ['clients/python/.venv/bin/pytest'],
  'test/strangers/fuzz-python.test.ts': ['clients/python/.venv/bin/pytest'],
  'test/clients/compression.test.ts': ['chromium', 'python3'],
  'test/access/cors.test.ts': ['chromium', 'nginx', 'openssl'],
  'test/operation/deploy-pages.test.ts': ['nginx', 'openssl', 'ip', 'curl', 'the right to mount'],
  'test/faults/starved.test.ts': ['taskset'],
  'test/access/jwks-tls.test.ts': ['openssl'],
  'test/loadtest/scenarios.test.ts': ['chromium', 'nginx'],
  'test/operation/monitoring.test.ts': ['prometheus', 'promtool', 'prometheus-node-exporter', 'nginx', 'openssl'],
  'test/clients/page.test.ts': ['chromium'],
  'test/values/postgresql.test.ts': [
    'pg_ctlcluster',
    'postgrest',
    'clients/python/.venv/bin/uvicorn',
    'chromium',
    'nginx',
  ],
  'test/strangers/firewall.test.ts': ['nft', 'ip', 'the right to mount'],
  'test/strangers/floods.test.ts': ['an nginx that counts connections by address', 'openssl'],
  'test/operation/proxy-operation.test.ts': ['nginx', 'openssl'],
  'test/operation/proxy.test.ts': ['nginx', 'openssl'],
  'test/operation/systemd.test.ts': ['systemd-analyze'],
  'test/values/waits.test.ts': ['nginx'],
  'test/journal/full.test.ts': ['the right to mount'],
  'test/journal/disk.test.ts': ['cc'],
  'test/journal/valkey.test.ts': ['valkey-server'],
  'test/faults/rooms-valkey.test.ts': ['valkey-server'],
  'test/rooms/notify.test.ts': ['valkey-server'],
  'services/journal/log/lmdb/full.test.ts': ['the right to mount'],
  'services/journal/log/lmdb/faults.test.ts': ['cc'],
  'services/journal/log/valkey/valkey.test.ts': ['valkey-server'],
  'services/journal/log/valkey/faults.test.ts': ['valkey-server'],
  'services/journal/log/valkey/checks.test.ts': ['valkey-server'],
}

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin', import.meta.dirname]
const has = (/** @type {string} */ need) => {
  if (need === 'the right to mount') return mayMount()
  if (need === 'an nginx that counts connections by address') return countsByAddress()
  return folders.some(folder => existsSync(join(folder, need)))
}

/** From 1.25.5 on, with the stream module. */
function countsByAddress() {
  const env = { PATH: folders.join(delimiter) }
  return (
    spawnSync('/bin/sh', ['-c', '. proxy/settings.sh && [ $PROXY_STREAM = on ]'], { cwd: import.meta.dirname, env })
      .status === 0
  )
}

/** CAP_SYS_ADMIN, among the effective capabilities of this process. */
function mayMount() {
  const status = existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : ''
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? []
  return (BigInt(`0x${effective}`) & (1n << 21n)) !== 0n
}

const left = Object.entries(needs).flatMap(([file, programs]) => {
  const missing = programs.filter(program => !has(program))
  if (missing.length === 0 || process.env.CI) return []
  if (process.argv.includes(file.startsWith('test/') ? 'e2e' : 'unit'))
    console.error(`NOT RUN: ${file} needs ${missing.join(' and ')}, which this machine lacks`)
  return [`<rootDir>/${file}$`]
})

export default {
  // Far above what a test takes, also on a busy machine. In test/, what never comes is named by the wait for it
  // (deadline.ts), and not by jest.
  testTimeout: 300_000,
  // Tests that wait for the most part, and say so (`test.concurrent`), go on beside each other in their file.
  maxConcurrency: 12,
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: ['<rootDir>/{packages,services,cli,examples,scripts,loadtest}/**/*.test.{js,ts}'],
      testPathIgnorePatterns: ['/node_modules/', ...left],
    },
    {
      ...shared,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.test.{js,ts}'],
      testPathIgnorePatterns: ['/node_modules/', ...left],
      testEnvironment: '<rootDir>/test/support/environment.ts',
      runner: '<rootDir>/test/support/runner.ts',
      setupFilesAfterEnv: ['<rootDir>/test/support/setup.ts'],
    },
  ],
}
