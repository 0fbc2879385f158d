// Two projects: unit tests lie beside the file they test; the end-to-end suite in test/ starts real processes.
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const shared = { transform: {}, testEnvironment: 'node' }

/**
 * Test files that drive a program npm does not bring, by name or by path in this repository. In CI they are always run, and
 * fail where it is missing.
 */
const needs = {
  'test/certificates.test.js': ['openssl'],
  'test/client-browser.test.js': ['chromium'],
  'test/client-python.test.js': ['clients/python/.venv/bin/pytest'],
  'test/compression.test.js': ['chromium', 'python3'],
  'test/jwks-tls.test.js': ['openssl'],
  'test/loadtest.test.js': ['chromium'],
  'test/monitoring.test.js': ['prometheus', 'promtool', 'prometheus-node-exporter', 'nginx', 'openssl'],
  'test/page.test.js': ['chromium'],
  'test/proxy-operation.test.js': ['nginx', 'openssl'],
  'test/proxy.test.js': ['nginx', 'openssl'],
  'test/systemd.test.js': ['systemd-analyze'],
}

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', import.meta.dirname]
const has = (/** @type {string} */ program) => folders.some(folder => existsSync(join(folder, program)))

const left = Object.entries(needs).flatMap(([file, programs]) => {
  const missing = programs.filter(program => !has(program))
  if (missing.length === 0 || process.env.CI) return []
  if (process.argv.includes('e2e'))
    console.error(`NOT RUN: ${file} needs ${missing.join(' and ')}, which this machine lacks`)
  return [`<rootDir>/${file}$`]
})

export default {
  projects: [
    { ...shared, displayName: 'unit', testMatch: ['<rootDir>/{packages,services,scripts,loadtest}/**/*.test.js'] },
    {
      ...shared,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.test.js'],
      testPathIgnorePatterns: ['/node_modules/', ...left],
      testEnvironment: '<rootDir>/test/support/environment.js',
      setupFilesAfterEnv: ['<rootDir>/test/support/setup.js'],
    },
  ],
}
